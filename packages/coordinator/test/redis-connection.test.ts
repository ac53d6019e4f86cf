/**
 * Connections that break or on which no reply comes, what is read of a Cluster's nodes, and error replies that repeat a password. The
 * servers here only speak the protocol of Redis.
 */
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { startRespServer, unknownCommandReply } from "../../../test/redis/resp-server.js";
import { RedisConnection } from "../src/stores/redis/connection.js";
import { discoverCluster } from "../src/stores/redis/discovery.js";
import { asStoreError } from "../src/stores/redis/errors.js";

const LOGIN = { tls: false, database: 0 } as const;

async function respServer(...options: Parameters<typeof startRespServer>) {
  const redis = await startRespServer(...options);
  onTestFinished(() => redis.close());
  return redis;
}

/** What Redis replies to PING and to ECHO. */
const echoOf = (word: string) => (word === "" ? "+PONG\r\n" : `$${word.length}\r\n${word}\r\n`);

/** A connection to a server that replies so to every command; an empty reply is none. */
async function connectionTo(replyTo: (word: string, connectionCount: number) => string, timeoutMs = 5_000) {
  const sockets = new Set<object>();
  const { port } = await respServer(([, word = ""], socket) => {
    sockets.add(socket);
    socket.write(replyTo(word, sockets.size));
  });
  const connection = await RedisConnection.open({ ...LOGIN, host: "127.0.0.1", port }, { timeoutMs });
  onTestFinished(() => connection.close());
  const echo = (word: string) => connection.send("main", (client) => client.echo(word));
  return { connection, echo, connectionCount: () => sockets.size };
}

test("a connection is dropped when a reply does not come in time, and the next command gets its own reply", async () => {
  const isLost = (word: string, connectionCount: number) => word === "lost" && connectionCount === 1;
  const { echo, connectionCount } = await connectionTo((word, count) => (isLost(word, count) ? "" : echoOf(word)), 500);
  const timedOut = { code: "store_unavailable", message: expect.stringContaining("timed out") };
  await expect(echo("lost")).rejects.toMatchObject(timedOut);
  await expect.poll(() => echo("next").catch(() => "not yet")).toBe("next");
  expect(await echo("lost")).toBe("lost");
  expect(connectionCount()).toBe(2);
});

test("a connection reports its own failure, not that of an earlier one", async () => {
  let isRedis = true;
  const { echo, connection } = await connectionTo((word) =>
    isRedis ? echoOf(word) : "HTTP/1.1 400 Bad Request\r\n\r\n",
  );
  const reply = () => echo("x").catch(({ message }: Error) => message);
  isRedis = false;
  await expect.poll(reply).toMatch(/can't be reached: what answers there does not speak the Redis protocol$/);
  isRedis = true;
  await expect.poll(reply).toBe("x");
  connection.reconnect();
  expect(await reply()).toMatch(/the connection broke/);
});

test("a connection survives a second error of its socket, which the end of a TLS connection can bring", async () => {
  const { connection } = await connectionTo(echoOf);
  const failures = await connection.send("main", async ({ stream }) =>
    [1, 2, 3].map((number) => stream.emit("error", new Error(`error ${number}`))),
  );
  expect(failures).toEqual([true, true, true]);
});

test("no error includes a password that Redis repeats", () => {
  const reply = Object.assign(new Error(unknownCommandReply(["auth", "callnumber", "geheim"])), { name: "ReplyError" });
  const error = asStoreError(reply, "", "h:1");
  expect(error.message).toBe("Redis at h:1 rejected: ERR unknown command 'auth'");
  // As deep as a log could go.
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain("geheim");
});

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (...parts: readonly string[]) => `*${parts.length}\r\n${parts.join("")}`;
const range = (first: number, last: number, host: string, port: number) =>
  list(`:${first}\r\n`, `:${last}\r\n`, list(bulk(host), `:${port}\r\n`, bulk("id")));

/** Discovers the Cluster of a node that replies so to CLUSTER SLOTS. */
async function clusterOf(slots: (port: number, address: string) => string, host?: string) {
  const { port } = await respServer(([name = "", verb = ""], socket) => {
    const reply = /info/i.test(verb) ? bulk("cluster_state:ok\r\n") : slots(port, String(socket.localAddress));
    socket.write(/cluster/i.test(name) ? reply : "+PONG\r\n");
  }, host);
  return { port, discover: discoverCluster({ kind: "redis-cluster", nodes: [{ host: "127.0.0.1", port }] }, LOGIN) };
}

test("a Cluster's node that omits its own name has the one that it was reached by", async () => {
  const { port, discover } = await clusterOf((port) => list(range(0, 16_383, "", port)));
  expect((await discover()).endpoints).toEqual([{ host: "127.0.0.1", port }]);
});

test("discovery queries some of the nodes of a large Cluster, not all", async () => {
  const queried = new Set<string>();
  const { discover } = await clusterOf((port, address) => {
    queried.add(address);
    return list(...Array.from({ length: 200 }, (_, at) => range(at, at, `127.0.1.${at}`, port)));
  }, "0.0.0.0");
  expect((await discover()).endpoints).toHaveLength(200);
  expect(queried.size).toBe(1);
  await discover();
  expect(queried.size).toBeLessThan(70);
});
