/** What is read of a Cluster's node beside the slots: its own name, and how many others are asked. With real servers: redis-topology-cluster. */
import { expect, onTestFinished, test } from "vitest";
import { startRespServer } from "../../../test/redis/resp-server.js";
import { discoverCluster } from "../src/stores/redis/discovery.js";

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (...parts: readonly string[]) => `*${parts.length}\r\n${parts.join("")}`;
const number = (value: number) => `:${value}\r\n`;
const node = (host: string, port: number) => list(bulk(host), number(port), bulk("id"));
const range = (first: number, last: number, ...nodes: readonly string[]) => list(number(first), number(last), ...nodes);
const INFO = bulk("cluster_state:ok\r\ncluster_current_epoch:7\r\n");

/** Hears PING as Redis does, and answers CLUSTER SLOTS as it is told. */
async function server(slots: (place: string) => string, host?: string) {
  const redis = await startRespServer(([name = "", verb = ""], socket) => {
    if (name.toLowerCase() !== "cluster") socket.write("+PONG\r\n");
    else socket.write(verb.toLowerCase() === "info" ? INFO : slots(String(socket.localAddress)));
  }, host);
  onTestFinished(() => redis.close());
  return redis;
}

function lookUpAt(port: number) {
  const login = { tls: false, tlsFiles: undefined, username: undefined, password: undefined, database: 0 } as const;
  return discoverCluster({ kind: "redis-cluster", nodes: [{ host: "127.0.0.1", port }] }, login);
}

test("a node that leaves its own name out is where it was reached", async () => {
  const redis = await server(() => list(range(0, 16_383, node("", redis.port))));
  const { endpoints } = await lookUpAt(redis.port)();
  expect(endpoints).toEqual([{ host: "127.0.0.1", port: redis.port }]);
});

test("of many nodes that one names, some are asked at the next look", async () => {
  const asked = new Set<string>();
  const named = () => Array.from({ length: 200 }, (_, at) => range(at, at, node(`127.0.1.${at}`, redis.port)));
  const redis = await server((place) => {
    asked.add(place);
    return list(...named());
  }, "0.0.0.0");
  const lookUp = lookUpAt(redis.port);
  expect((await lookUp()).endpoints).toHaveLength(200);
  expect(asked.size).toBe(1);
  await lookUp();
  expect(asked.size).toBeLessThan(70);
});
