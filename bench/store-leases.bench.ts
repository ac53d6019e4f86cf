/** What a lease takes on each store, next to `nextval` of PostgreSQL through the same driver. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, onTestFinished, test } from "vitest";
import { startPostgresServer, storeUrlAt } from "../test/postgres/test-postgres.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { NAMESPACE, openCoordinator } from "./coordinators.js";
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

const ROUND_COUNT = roundCount(15);
const CALLER_COUNT = 64;
/** As many as the store has for its steps. */
const CONNECTION_COUNT = 8;
const LEASES_FOR_BYTES = 20_000;
const RUN_BYTES_AT_ONCE = 500;

interface Way {
  readonly name: string;
  readonly once: () => Promise<unknown>;
  /** How many bytes the store takes now; undefined for what keeps no list. */
  readonly bytes?: () => Promise<number>;
}

const rows: string[][] = [];

afterAll(() =>
  publish("store-leases", {
    heading: "A lease on each store",
    sentences: [
      `${describeMachine()} All on the same machine, with what a lease needs to be on the disk: PostgreSQL with fsync, Redis with appendfsync always, SQLite in full. ${ROUND_COUNT} rounds, all ways in turns in each; medians, and in brackets quartiles. "64 callers" is the time until all of them have theirs. A lease is for 16,384 call numbers and more; nextval counts one number, and writes to the disk once in 32.`,
    ],
    table: {
      columns: ["way", "p50 of one, µs", "times nextval", "p50 of 64 callers, µs", "a second", "bytes a lease"],
      rows,
    },
  }),
);

test("a lease on PostgreSQL, Redis and SQLite", async () => {
  const ways = [...(await onPostgres()), await onRedis(), await onSqlite()];
  const one = await measured(ways, 1, size(200, 20));
  const many = await measured(ways, CALLER_COUNT, size(20, 3));
  const base = (one[0] ?? []).map(median);
  for (const [index, { name, once, bytes }] of ways.entries()) {
    const [alone, together] = [one[index] ?? [], many[index] ?? []];
    const together50 = median(together.flat());
    rows.push([
      name,
      formatFigure(median(alone.flat())),
      formatSpread(ratios(alone.map(median), base)),
      formatFigure(together50),
      formatFigure((CALLER_COUNT * 1e6) / together50),
      bytes === undefined ? "-" : formatFigure(await bytesOfALease(once, bytes)),
    ]);
  }
});

function measured(ways: readonly Way[], callerCount: number, callCount: number) {
  return inRounds(
    ways.map(({ once }) => async () => {
      const latencies: number[] = [];
      const all = () => Promise.all(Array.from({ length: callerCount }, once));
      for (let call = 0; call < callCount; call++) latencies.push((await duration(all)) * 1000);
      return latencies;
    }),
    ROUND_COUNT,
  );
}

async function bytesOfALease(once: Way["once"], bytes: () => Promise<number>): Promise<number> {
  const before = await bytes();
  const count = size(LEASES_FOR_BYTES, RUN_BYTES_AT_ONCE);
  for (let done = 0; done < count; done += RUN_BYTES_AT_ONCE) {
    await Promise.all(Array.from({ length: RUN_BYTES_AT_ONCE }, once));
  }
  return ((await bytes()) - before) / count;
}

async function onPostgres(): Promise<Way[]> {
  const server = await startPostgresServer({ settings: { fsync: "on" } });
  await server.run("CREATE SEQUENCE bench");
  const pool = new pg.Pool({ connectionString: server.url, max: CONNECTION_COUNT });
  onTestFinished(() => pool.end());
  const url = storeUrlAt(server.url, "bench");
  const tables = ["leases", "holders", "namespaces"]
    .map((name) => `pg_total_relation_size('bench.${name}')`)
    .join(" + ");
  return [
    { name: "PostgreSQL: nextval", once: () => pool.query("SELECT nextval('bench')") },
    {
      name: "PostgreSQL: lease",
      once: await leaseOn(url, true),
      bytes: async () => {
        await server.run("VACUUM bench.namespaces");
        return Number((await server.run(`SELECT ${tables}`))[0]?.[0]);
      },
    },
  ];
}

async function onRedis(): Promise<Way> {
  const { url } = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always" } });
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  const bytes = async () => Number(/^used_memory_dataset:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  return { name: "Redis: lease", once: await leaseOn(url), bytes };
}

async function onSqlite(): Promise<Way> {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-bench-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "store.db");
  // With what is still in the log of the file.
  const bytes = async () => {
    const database = new DatabaseSync(path, { readOnly: true });
    const { pages } = database
      .prepare("SELECT page_count * page_size AS pages FROM pragma_page_count, pragma_page_size")
      .get() as { pages: number };
    database.close();
    return pages;
  };
  return { name: "SQLite: lease", once: await leaseOn(`sqlite:${path}`, true), bytes };
}

async function leaseOn(url: string, create = false): Promise<Way["once"]> {
  const coordinator = await openCoordinator(url, { nodeCount: 1, create });
  const holder = { name: "bench", host: "bench", pid: 1, labels: {} };
  return () => {
    const nonce = randomBytes(12).toString("base64url");
    const evidence = { lastRun: null, proof: null, sentAtMs: Date.now() };
    return coordinator.lease(NAMESPACE, { runCount: 1, nonce, holder, ...evidence });
  };
}
