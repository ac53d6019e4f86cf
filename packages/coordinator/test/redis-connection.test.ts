/**
 * A connection to Redis that breaks, or on which a reply does not come: the command fails, and the next connection starts over. And
 * error replies that repeat a password: no error contains it.
 */
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { unknownCommandReply } from "../../../test/redis/echoing-redis.js";
import { startRespServer } from "../../../test/redis/resp-server.js";
import { RedisConnection } from "../src/stores/redis/connection.js";
import { asStoreError } from "../src/stores/redis/errors.js";

/** What Redis answers to PING and to ECHO. */
const echoOf = (word: string) => (word === "" ? "+PONG\r\n" : `$${word.length}\r\n${word}\r\n`);

/** To a server that answers every command so, or not at all; as a coordinator has it; it ends with the test. */
async function connectionTo(answer: (word: string, connectionCount: number) => string, timeoutMs = 5_000) {
  const sockets = new Set<object>();
  const redis = await startRespServer(([, word = ""], socket) => {
    sockets.add(socket);
    socket.write(answer(word, sockets.size));
  });
  onTestFinished(() => redis.close());
  const address = { host: "127.0.0.1", port: redis.port, tls: false, database: 0 };
  const connection = await RedisConnection.open(address, { timeoutMs });
  onTestFinished(() => connection.close());
  const say = (word: string) => connection.send({ namespace: "main" }, (client) => client.echo(word));
  return { connection, say, connectionCount: () => sockets.size };
}

test("a connection on which an answer does not come in time is dropped, and the next answer is no other question's", async () => {
  const isLost = (word: string, connectionCount: number) => word === "lost" && connectionCount === 1;
  const { say, connectionCount } = await connectionTo((word, count) => (isLost(word, count) ? "" : echoOf(word)), 500);
  await expect(say("lost")).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("timed out"),
  });
  await expect.poll(() => say("next").catch(() => "not yet")).toBe("next");
  expect(await say("lost")).toBe("lost");
  expect(connectionCount()).toBe(2);
});

test("why an earlier connection failed is not told of a later one", async () => {
  let isRedis = true;
  const { say, connection } = await connectionTo((word) =>
    isRedis ? echoOf(word) : "HTTP/1.1 400 Bad Request\r\n\r\n",
  );
  const said = () => say("x").catch(({ message }: Error) => message);
  isRedis = false;
  await expect.poll(said).toMatch(/can't be reached: what answers there does not speak the Redis protocol$/);
  isRedis = true;
  await expect.poll(said).toBe("x");
  connection.reconnect();
  expect(await said()).toMatch(/the connection broke/);
});

test("a second error of a socket, as the end of a TLS connection can bring, is nobody's and ends nothing", async () => {
  const { connection } = await connectionTo(echoOf);
  const failTwice = connection.send({ namespace: "main" }, async ({ stream }) =>
    ["the first", "the second", "the third"].map((words) => stream.emit("error", new Error(words))),
  );
  expect(await failTwice).toEqual([true, true, true]);
});

test("a password that Redis repeats is in no error", () => {
  const refused = Object.assign(new Error(unknownCommandReply(["auth", "callnumber", "geheim"])), {
    name: "ReplyError",
  });
  const error = asStoreError(refused, { namespace: "" }, "h:1");
  expect(error.message).toBe("Redis at h:1 refused: ERR unknown command 'auth'");
  // As deep as a log could go.
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain("geheim");
});
