/** A connection to Redis whose other end is broken: it ends, and nothing of it ends the process or keeps it. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { startRespServer } from "../../../test/redis/resp-server.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile } from "../../../test/tls/files.js";
import type { RedisAddress } from "../src/stores/redis-address.js";
import { RedisConnection } from "../src/stores/redis-connection.js";
import { RedisConnector } from "../src/stores/redis-connector.js";

const authority = newAuthority();

async function listening<Any extends Server>(server: Any): Promise<number> {
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}

function clientAt(port: number): Redis {
  return new Redis({
    Connector: RedisConnector,
    host: "127.0.0.1",
    port,
    lazyConnect: true,
    retryStrategy: () => null,
  });
}

/** As a coordinator has it; it ends with the test. */
async function connectionAt(port: number): Promise<RedisConnection> {
  const address = { host: "127.0.0.1", port, tls: false, database: 0 } as RedisAddress;
  const connection = await RedisConnection.open(address);
  onTestFinished(() => connection.close());
  return connection;
}

/** What Redis answers to PING and to ECHO. */
const echoOf = (word: string) => (word === "" ? "+PONG\r\n" : `$${word.length}\r\n${word}\r\n`);

test("only the first error of a connection is told", async () => {
  const port = await listening(createServer((socket) => socket.on("error", () => {}).resume()));
  const redis = clientAt(port);
  onTestFinished(() => redis.disconnect());
  const told: string[] = [];
  redis.on("error", ({ message }: Error) => void told.push(message));
  redis.connect().catch(() => {});
  await once(redis, "connect");
  const { stream } = redis as unknown as { readonly stream: NodeJS.EventEmitter };
  for (const words of ["the first", "the second", "the third"]) stream.emit("error", new Error(words));
  expect(told.filter((words) => words.startsWith("the "))).toEqual(["the first"]);
});

test("what is to end before it was begun is not begun", async () => {
  let count = 0;
  const port = await listening(createServer((socket) => void (count++, socket.destroy())));
  const redis = clientAt(port);
  const connecting = redis.connect();
  redis.disconnect();
  await expect(connecting).rejects.toThrow();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(count).toBe(0);
});

describe.each(["plain", "TLS"])("over %s", (way) => {
  async function addressOf(answer: string): Promise<RedisAddress> {
    const onSocket = (socket: NodeJS.WritableStream & NodeJS.ReadableStream) => {
      socket.on("error", () => {});
      socket.on("data", () => socket.write(answer));
    };
    const { certificate, key } = authority.issue();
    const server = way === "TLS" ? createTlsServer({ cert: certificate, key }, onSocket) : createServer(onSocket);
    const port = await listening(server);
    const folder = mkdtempSync(join(tmpdir(), "callnumber-connector-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const ca = replaceFile(join(folder, "ca.crt"), authority.certificate);
    return {
      host: "127.0.0.1",
      port,
      tls: way === "TLS",
      tlsFiles: { ca },
      database: 0,
      username: "me",
      password: "geheim",
    } as RedisAddress;
  }

  // Each of these keeps the Redis client busy for ever where it reads them itself: in this test, the whole run.
  test.each(["$*\r\n$1\r\nx\r\n", "*3\r\n$*\r\nxx", "=*\r\nxxxxxxxx", "!*\r\nxxx"])(
    "%j ends the connection",
    async (answer) => {
      await expect(RedisConnection.open(await addressOf(answer))).rejects.toMatchObject({
        code: "store_unavailable",
        message: expect.stringMatching(
          /^Redis at \S+ can't be reached: what answers there does not speak the Redis protocol: the length/,
        ),
      });
    },
  );

  test("what is no Redis is told as that, and nobody is asked to report it", async () => {
    const opening = RedisConnection.open(await addressOf("HTTP/1.1 400 Bad Request\r\n\r\ngeheim"));
    await expect(opening).rejects.toThrow(/does not speak the Redis protocol: a value has no type$/);
  });
});

test("a question that is answered so hears why there is no answer", async () => {
  const redis = await startRespServer(([name = "", word = ""], socket) => {
    if (name.toLowerCase() === "get") socket.write("$*\r\n$1\r\nx\r\n");
    else socket.write(echoOf(word));
  });
  onTestFinished(() => redis.close());
  const connection = await connectionAt(redis.port);
  await expect(connection.ask({ namespace: "main" }, (client) => client.get("x"))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("does not speak the Redis protocol: the length of a text is none"),
  });
  await expect
    .poll(() => connection.ask({ namespace: "main" }, (client) => client.echo("y")).catch(() => "not yet"))
    .toBe("y");
});

/** As Redis does, until `first` hears a word: then these bytes come unasked. */
async function unasked(bytes: string, thenAnswer = "") {
  let count = 0;
  const commands: string[] = [];
  const redis = await startRespServer(([name = "", word = ""], socket) => {
    commands.push(name.toLowerCase());
    if (name.toLowerCase() === "subscribe") socket.write(thenAnswer);
    else socket.write(echoOf(word));
    if (word === "go" && ++count === 1) setTimeout(() => socket.write(bytes), 1);
  });
  onTestFinished(() => redis.close());
  const connection = await connectionAt(redis.port);
  const say = (word: string) => connection.ask({ namespace: "main" }, (client) => client.echo(word));
  await say("go").catch(() => {});
  return { say, commands };
}

test("a message that nobody asked for ends the connection, and nothing that it names is subscribed to", async () => {
  const { say, commands } = await unasked(">3\r\n+subscribe\r\n$6\r\nchan-A\r\n:1\r\n", "-NOPERM no\r\n");
  await expect.poll(() => say("x").catch(({ message }: Error) => message)).toMatch(/nobody had asked|made anew/);
  await expect.poll(() => say("y").catch(() => "not yet")).toBe("y");
  expect(commands).not.toContain("subscribe");
});

test("an answer that nobody asked for ends the connection, and is repeated nowhere", async () => {
  const { say } = await unasked("+geheim\r\n".repeat(1_000));
  await expect
    .poll(() => say("x").catch(({ message }: Error) => message))
    .toMatch(/it answered what nobody had asked$/);
  await expect.poll(() => say("y").catch(() => "not yet")).toBe("y");
});

test("why an earlier connection failed is not told of a later one", async () => {
  let phase: "good" | "http" | "shut" = "good";
  const redis = await startRespServer(([, word = ""], socket) => {
    if (phase === "shut") socket.destroy();
    else if (phase === "http") socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    else socket.write(echoOf(word));
  });
  onTestFinished(() => redis.close());
  const connection = await connectionAt(redis.port);
  const said = () =>
    connection.ask({ namespace: "main" }, (client) => client.echo("x")).catch(({ message }: Error) => message);
  phase = "http";
  await expect.poll(said).toMatch(/does not speak the Redis protocol/);
  phase = "shut";
  await expect.poll(said).toMatch(/the connection broke/);
});
