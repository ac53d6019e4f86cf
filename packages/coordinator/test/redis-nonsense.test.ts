/** A node of a Cluster, or a Sentinel, that names what can't be: it has told nothing, and that is a fault of the outside world. */
import { expect, onTestFinished, test } from "vitest";
import { startRespServer } from "../../../test/redis/resp-server.js";
import { openStore } from "../src/stores/open-store.js";
import { clusterLookUp } from "../src/stores/redis-cluster.js";
import { parseStoreUrl } from "../src/stores/store-url.js";

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (...parts: readonly string[]) => `*${parts.length}\r\n${parts.join("")}`;
const number = (value: number) => `:${value}\r\n`;
const node = (host: string, port: number) => list(bulk(host), number(port), bulk("id"));
const range = (first: number, last: number, ...nodes: readonly string[]) => list(number(first), number(last), ...nodes);
const NOTHING = "*-1\r\n";
const INFO = bulk("cluster_state:ok\r\ncluster_current_epoch:7\r\n");

/** Hears PING as Redis does, and answers the rest as it is told. */
async function server(answer: (name: string, verb: string, place: string) => string, host?: string) {
  const redis = await startRespServer(([name = "", word = ""], socket) => {
    if (name.toLowerCase() === "ping") socket.write(word === "" ? "+PONG\r\n" : bulk(word));
    else socket.write(answer(name.toLowerCase(), word.toLowerCase(), String(socket.localAddress)));
  }, host);
  onTestFinished(() => redis.close());
  return redis;
}

test.each<[string, string]>([
  ["a number", number(5)],
  ["a text", bulk("x")],
  ["nothing", NOTHING],
  ["a list of nothing", list(NOTHING)],
  ["a list of lists of nothing", list(list(NOTHING))],
  ["a range without a node", list(range(0, 16_383))],
  ["a node that is a text", list(range(0, 16_383, bulk("x")))],
  ["a slot that is a text", list(list(bulk("0"), number(16_383), node("127.0.0.1", 1)))],
  ["a slot beyond the last", list(range(0, 16_384, node("127.0.0.1", 1)))],
  ["a port beyond the last", list(range(0, 16_383, node("127.0.0.1", 99_999_999)))],
  ["a port below the first", list(range(0, 16_383, node("127.0.0.1", -1)))],
  ["a host that acts on a terminal", list(range(0, 16_383, node("\u001b[2J", 1)))],
  ["a host of 300 characters", list(range(0, 16_383, node("h".repeat(300), 1)))],
  ["a follower that is none", list(range(0, 16_383, node("127.0.0.1", 1), node("a b", 1)))],
  [
    "more nodes than a Cluster can have",
    list(...Array.from({ length: 1_001 }, (_, at) => range(at, at, node(`node-${at}`, 1)))),
  ],
])("%s as an answer to CLUSTER SLOTS is none", async (_, slots) => {
  const redis = await server((__, verb) => (verb === "info" ? INFO : slots));
  const opening = openStore(parseStoreUrl(`redis-cluster://127.0.0.1:${redis.port}`), { create: false });
  await expect(opening).rejects.toMatchObject({
    name: "CoordinatorError",
    code: "store_unavailable",
    message: `no node of the Cluster answers: Redis at 127.0.0.1:${redis.port} answers CLUSTER SLOTS with what no Cluster has`,
  });
});

test("a node that leaves its own name out is where it was reached", async () => {
  const redis = await server((_, verb) => (verb === "info" ? INFO : list(range(0, 16_383, node("", redis.port)))));
  const { endpoints } = await clusterLookUp(placeOf(redis.port), LOGIN)();
  expect(endpoints).toEqual([{ host: "127.0.0.1", port: redis.port }]);
});

test("of many nodes that one names, some are asked at the next look", async () => {
  const asked = new Set<string>();
  const named = () => Array.from({ length: 200 }, (_, at) => range(at, at, node(`127.0.1.${at}`, redis.port)));
  const redis = await server((_, verb, place) => {
    asked.add(place);
    return verb === "info" ? INFO : list(...named());
  }, "0.0.0.0");
  const lookUp = clusterLookUp(placeOf(redis.port), LOGIN);
  expect((await lookUp()).endpoints).toHaveLength(200);
  expect(asked.size).toBe(1);
  await lookUp();
  expect(asked.size).toBeLessThan(70);
});

test.each<[string, string]>([
  ["a list of nothing", list(NOTHING, NOTHING)],
  ["a host that acts on a terminal", list(bulk("\u001b[2J"), bulk("6379"))],
  ["a port beyond the last", list(bulk("127.0.0.1"), bulk("99999999"))],
  ["no port", list(bulk("127.0.0.1"))],
])("%s as the master that a Sentinel names is none", async (_, address) => {
  const fields = list(bulk("config-epoch"), bulk("9"));
  const redis = await server((__, verb) => (verb === "master" ? fields : address));
  const opening = openStore(parseStoreUrl(`redis-sentinel://127.0.0.1:${redis.port}/m`), { create: false });
  await expect(opening).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(/^no sentinel names the master "m"/),
  });
});

const LOGIN = { tls: false, tlsFiles: undefined, username: undefined, password: undefined, database: 0 } as const;

function placeOf(port: number) {
  return { kind: "redis-cluster", nodes: [{ host: "127.0.0.1", port }] } as const;
}
