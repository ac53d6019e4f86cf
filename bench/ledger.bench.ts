/**
 * Whether a query takes longer the longer the ledger is: the same queries over HTTP to a short ledger and a long one, in turns. And how
 * much memory of Redis a lease takes.
 */
import { join } from "node:path";
import { pathOf } from "@callnumber/protocol/api";
import { Redis } from "ioredis";
import { afterAll, onTestFinished, test } from "vitest";
import { folderForTest, serveProcess } from "../test/processes/command.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { createNamespace, NAMESPACE } from "./coordinators.js";
import { callNumberWithin, fillRedis, fillSqlite, holderOf, runWithin } from "./filled-ledgers.js";
import {
  describeMachine,
  duration,
  formatFigure,
  formatSpread,
  inRounds,
  median,
  ratios,
  roundCount,
  size,
} from "./harness.js";
import { publish } from "./report.js";

const SIZES = [1_000, size(10_000_000, 20_000)];
const TARGET_BELOW_TIMES = 2;
const TARGET_BYTES_PER_LEASE = 100;
const ROUND_COUNT = roundCount(30);
const CALL_COUNT = size(20, 5);

/** Returns the path of a query to a ledger of so many leases, each of one run. */
type Query = (leaseCount: number) => string;

const runsWith = (filter: string) => `${pathOf("runs", { namespace: NAMESPACE })}?${filter}`;

const QUERIES: readonly (readonly [name: string, query: Query])[] = [
  [
    "inspect, a random call number",
    (leaseCount) => pathOf("callNumber", { namespace: NAMESPACE, callNumber: callNumberWithin(leaseCount) }),
  ],
  ["a random run", (leaseCount) => pathOf("run", { namespace: NAMESPACE, run: runWithin(leaseCount) })],
  ["runs, the newest 50", () => runsWith("limit=50")],
  ["runs, 20 of one holder out of 20", () => runsWith(`limit=20&holder=${holderOf(7).name}`)],
  ["runs of a holder that has none", () => runsWith("limit=20&holder=absent")],
  ["status", () => pathOf("status", { namespace: NAMESPACE })],
];

const rows: string[][] = [];
const sentences = [
  `${describeMachine()} Ledgers written past the store, as the store writes, each behind a coordinator of its own. Each query goes to both in turns, ${CALL_COUNT} times in each of ${ROUND_COUNT} rounds; medians and quartiles; ratios, within a round, to the short ledger. The target is a ratio below ${TARGET_BELOW_TIMES}.`,
];

afterAll(() => {
  const table = { columns: ["store", "query", "leases", "µs", "times the short one"], rows };
  publish("ledger", { heading: "Queries of a short ledger and a long one", sentences, table });
});

test("ledgers in Redis", async () => {
  const urls: string[] = [];
  for (const leaseCount of SIZES) {
    const { url: storeUrl } = await startRedisServer();
    const redis = new Redis(storeUrl);
    onTestFinished(() => redis.disconnect());
    await createNamespace(storeUrl);
    const before = await usedBytes(redis);
    await fillRedis(redis, NAMESPACE, leaseCount);
    const bytes = ((await usedBytes(redis)) - before) / leaseCount;
    if (leaseCount === SIZES.at(-1)) {
      const text = `A lease takes ${formatFigure(bytes)} bytes of Redis memory, its report included`;
      sentences.push(`${text}; the target is at most ${TARGET_BYTES_PER_LEASE}.`);
    }
    urls.push((await serveProcess(storeUrl)).url);
  }
  await measure("Redis", urls);
});

test("ledgers in the embedded store", async () => {
  const directory = await folderForTest();
  const urls: string[] = [];
  for (const leaseCount of SIZES) {
    const path = join(directory, `leases-${leaseCount}.db`);
    await createNamespace(`sqlite:${path}`);
    fillSqlite(path, NAMESPACE, leaseCount);
    urls.push((await serveProcess(`sqlite:${path}`)).url);
  }
  await measure("embedded", urls);
});

async function measure(store: string, urls: readonly string[]): Promise<void> {
  for (const [name, query] of QUERIES) {
    const rounds = await inRounds(
      urls.map((url, index) => () => latencyUs(url, () => query(SIZES[index] as number))),
      ROUND_COUNT,
    );
    for (const [index, leaseCount] of SIZES.entries()) {
      const own = rounds[index] ?? [];
      const times = formatSpread(ratios(own, rounds[0] ?? []));
      rows.push([store, name, leaseCount.toLocaleString("en-US"), formatSpread(own), times]);
    }
  }
}

/** Resolves to the median of some calls. */
async function latencyUs(url: string, path: () => string): Promise<number> {
  const latencies: number[] = [];
  for (let call = 0; call < CALL_COUNT; call++) {
    const ms = await duration(async () => {
      const response = await fetch(url + path());
      if (!response.ok) throw new Error(`${response.url} returned ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    });
    latencies.push(ms * 1000);
  }
  return median(latencies);
}

async function usedBytes(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
}
