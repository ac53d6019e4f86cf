/** What the guard costs on Redis: a lease compared with a script that only counts; and, with a replica, with INCR and WAIT. */
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, onTestFinished, test } from "vitest";
import { startRedisServer } from "../test/redis/test-redis.js";
import { NAMESPACE, openCoordinator } from "./coordinators.js";
import {
  describeMachine,
  duration,
  formatFigure,
  formatSpread,
  inRounds,
  median,
  quantile,
  ratios,
  roundCount,
  size,
} from "./harness.js";
import { publish } from "./report.js";

const ROUND_COUNT = roundCount(15);
const CALLER_COUNT = 64;
const COUNTER = "bench:counter";
const BARE_SCRIPT = "return redis.call('INCR', KEYS[1])";

interface Way {
  readonly name: string;
  /** Takes one number for each of so many callers that ask at the same time. */
  readonly run: (callerCount: number) => Promise<unknown>;
}

const rows: string[][] = [];

afterAll(() =>
  publish("guarded-lease", {
    heading: "A guarded lease on Redis",
    sentences: [
      `${describeMachine()} Redis on the same machine, appendfsync everysec; ${ROUND_COUNT} rounds, all ways in turns in each. The time of ${CALLER_COUNT} callers is that of all of them. Ratios are those of the p50 of a round to the first line of its setting; medians and quartiles. A lease has the guard (epoch, run ceiling, checksum, ledger entry, quorum) and is for 16,384 call numbers and more; the others count one number.`,
    ],
    table: { columns: ["setting", "way", "p50, µs", "p99, µs", "times the first"], rows },
  }),
);

test("a lease on a single server", async () => {
  const { url } = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  const redis = connect(url);
  const sha1 = (await redis.script("LOAD", BARE_SCRIPT)) as string;
  const ways = [
    { name: "bare script", run: together(() => redis.evalsha(sha1, 1, COUNTER)) },
    { name: "INCR", run: together(() => redis.incr(COUNTER)) },
    await lease(url, 1),
  ];
  await compare("one server", ways);
});

test("a lease on a master with a replica", async () => {
  const config = { appendonly: "yes", appendfsync: "everysec", "repl-diskless-sync-delay": "0" };
  const master = await startRedisServer({ config });
  await startRedisServer({ config: { replicaof: `127.0.0.1 ${master.port}` } });
  await compare("master and replica", [await incrAndWait(master.url), await lease(master.url, 2)]);
});

async function compare(setting: string, ways: readonly Way[]): Promise<void> {
  for (const callerCount of [1, CALLER_COUNT]) {
    const callCount = callerCount === 1 ? size(400, 20) : size(100, 5);
    const measured = await inRounds(
      ways.map((way) => () => latenciesUs(way, callerCount, callCount)),
      ROUND_COUNT,
    );
    const base = (measured[0] ?? []).map(median);
    for (const [index, { name }] of ways.entries()) {
      const rounds = measured[index] ?? [];
      rows.push([
        `${setting}, ${callerCount === 1 ? "one caller" : `${callerCount} callers`}`,
        name,
        formatFigure(median(rounds.flat())),
        formatFigure(quantile(rounds.flat(), 0.99)),
        formatSpread(ratios(rounds.map(median), base)),
      ]);
    }
  }
}

async function latenciesUs({ run }: Way, callerCount: number, callCount: number): Promise<number[]> {
  const latencies: number[] = [];
  for (let call = 0; call < callCount; call++) latencies.push((await duration(() => run(callerCount))) * 1000);
  return latencies;
}

function together(once: () => Promise<unknown>): Way["run"] {
  return (callerCount) => Promise.all(Array.from({ length: callerCount }, once));
}

/** The best that a plain counter can do: all INCRs of the moment share one WAIT. */
async function incrAndWait(url: string): Promise<Way> {
  const redis = connect(url);
  await redis.incr(COUNTER);
  // The replica must follow before the first measurement.
  while ((await redis.wait(1, 1_000)) < 1);
  const run = (callerCount: number) => {
    const pipeline = redis.pipeline();
    for (let caller = 0; caller < callerCount; caller++) pipeline.incr(COUNTER);
    return pipeline.wait(1, 1_000).exec();
  };
  return { name: "INCR and WAIT", run };
}

async function lease(url: string, nodeCount: number): Promise<Way> {
  const coordinator = await openCoordinator(url, { nodeCount });
  const holder = { name: "bench", host: "bench", pid: 1, labels: {} };
  const once = () => {
    const nonce = randomBytes(12).toString("base64url");
    const evidence = { lastRun: null, proof: null, sentAtMs: Date.now() };
    return coordinator.lease(NAMESPACE, { runCount: 1, nonce, holder, ...evidence });
  };
  return { name: "guarded lease", run: together(once) };
}

function connect(url: string): Redis {
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  return redis;
}
