/** Whether what is asked of a ledger takes longer the larger it is: the same questions to ledgers of three sizes, in turns. */
import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import type { Store } from "../packages/coordinator/src/store.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { keysOf } from "../packages/coordinator/src/stores/redis-ledger.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { folderForTest } from "../test/processes/command.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { type AskedLedger, askedInRounds, type Rounds } from "./asked-in-rounds.js";
import { callNumberWithin, fillRedis, fillSqlite, holderOf, runWithin } from "./filled-ledgers.js";
import { machineInWords } from "./machine.js";
import { figure, quantile, spreadInWords } from "./quantiles.js";
import { publish, type Section } from "./report.js";

const SIZES = [1_000, 100_000, Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 10_000_000)];
/** What we aim at: no question takes so many times as long of the largest ledger. */
const AIM_BELOW_TIMES = 2;
const ROUND_COUNT = 30;
const CALLS_PER_ROUND = 20;
/** At 16 runs a second, so old that its line lies above ten million runs and a burst. */
const AGE_DAYS = 100;
const PAGE_LEASES = 50;
const SCAN_ROUND_COUNT = 6;
const SCAN_CALLS_PER_ROUND = 2;

interface Question {
  readonly name: string;
  readonly ask: (ledger: AskedLedger) => Promise<unknown>;
  /** Takes longer, so that fewer are asked; and is only bounded from the second size on. */
  readonly isScan?: true;
}

const QUESTIONS: readonly Question[] = [
  {
    name: "inspect, a random call number",
    ask: ({ coordinator, namespace, size }) => coordinator.inspect(namespace, callNumberWithin(size)),
  },
  { name: "run, a random one", ask: ({ coordinator, namespace, size }) => coordinator.run(namespace, runWithin(size)) },
  {
    name: `runs, the newest ${PAGE_LEASES}`,
    ask: ({ coordinator, namespace }) => coordinator.runs(namespace, { limit: PAGE_LEASES }),
  },
  {
    name: `runs, ${PAGE_LEASES} from a random cursor`,
    ask: ({ coordinator, namespace, size }) =>
      coordinator.runs(namespace, { limit: PAGE_LEASES, cursor: String(PAGE_LEASES + runWithin(size - PAGE_LEASES)) }),
  },
  {
    name: "runs, 20 of one holder out of 20",
    ask: ({ coordinator, namespace }) => coordinator.runs(namespace, { limit: 20, holder: holderOf(7).name }),
  },
  {
    name: `runs, ${PAGE_LEASES} before a random time`,
    ask: ({ coordinator, namespace }) => {
      const leasedToMs = Date.now() - Math.floor(Math.random() * 80 * 24 * 3_600_000);
      return coordinator.runs(namespace, { limit: PAGE_LEASES, leasedToMs });
    },
  },
  { name: "status", ask: ({ coordinator, namespace }) => coordinator.status(namespace) },
  {
    name: "runs of nobody: 10,000 at the most",
    ask: ({ coordinator, namespace }) => coordinator.runs(namespace, { limit: PAGE_LEASES, holder: "nobody" }),
    isScan: true,
  },
];

const sections: Section[] = [];

afterAll(() => publish({ bench: "ledger-growth", sections }));

test("a ledger in Redis", async () => {
  const { url } = await startRedisServer();
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  const { store } = await openStore(parseStoreUrl(url), { create: false });
  onTestFinished(() => store.close());
  const coordinator = new Coordinator({ store, name: "bench" });
  const ledgers: AskedLedger[] = [];
  for (const size of SIZES) {
    const namespace = `leases-${size}`;
    await initBackdated(store, namespace, { ageDays: AGE_DAYS });
    await fillRedis(redis, namespace, size);
    await mustBeAsWritten(coordinator, redis, namespace);
    ledgers.push({ coordinator, namespace, size: size + 1 });
  }
  const used = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
  const version = /redis_version:(\S+)/.exec(await redis.info("server"))?.[1];
  const place = `Redis ${version}, with ${mebibytes(used)} of memory for all of them`;
  sections.push(await compare("Three ledgers in Redis", place, ledgers));
});

test("a ledger in the embedded store", async () => {
  const folder = await folderForTest();
  const ledgers: AskedLedger[] = [];
  let byteCount = 0;
  for (const size of SIZES) {
    const namespace = "bench";
    const path = join(folder, `leases-${size}.db`);
    const made = await opened(path, true);
    await initBackdated(made, namespace, { ageDays: AGE_DAYS });
    await made.close();
    fillSqlite(path, namespace, size);
    const store = await opened(path, false);
    onTestFinished(() => store.close());
    byteCount += statSync(path).size;
    ledgers.push({ coordinator: new Coordinator({ store, name: "bench" }), namespace, size });
  }
  const fileSystem = `file system type 0x${statfsSync(folder).type.toString(16)}`;
  const place = `Three files of the embedded store, together ${mebibytes(byteCount)}, on ${fileSystem}`;
  sections.push(await compare("Three ledgers in the embedded store", place, ledgers));
});

async function opened(path: string, create: boolean): Promise<Store> {
  return (await openStore({ kind: "sqlite", path }, { create })).store;
}

/** A lease and a report of the scripts themselves stand beside what was filled in, in the same words. */
async function mustBeAsWritten(coordinator: Coordinator, redis: Redis, namespace: string): Promise<void> {
  const nonce = "nonce-of-one-more";
  const request = { runCount: 1, nonce, holder: holderOf(0), lastRun: null, receipt: null, sentAtMs: Date.now() };
  const { firstRun } = await coordinator.lease(namespace, request);
  await coordinator.report(namespace, firstRun, { nonce, lastSequence: 1, state: "open" });
  const [own, filled] = await redis.xrevrange(keysOf("callnumber:", namespace).ledger, "+", "-", "COUNT", 2);
  const namesOf = (fields: readonly string[] = []) => fields.filter((_, index) => index % 2 === 0);
  expect(namesOf(filled?.[1])).toEqual(namesOf(own?.[1]));
  expect(await coordinator.run(namespace, firstRun - 1)).toMatchObject({ state: "exhausted", lastSequence: 16_383 });
}

async function compare(heading: string, place: string, ledgers: readonly AskedLedger[]): Promise<Section> {
  const rows: string[][] = [];
  let worst = { times: 0, name: "" };
  for (const question of QUESTIONS) {
    const { name, isScan, ask } = question;
    const [roundCount, callsPerRound] = isScan
      ? [SCAN_ROUND_COUNT, SCAN_CALLS_PER_ROUND]
      : [ROUND_COUNT, CALLS_PER_ROUND];
    const rounds = await askedInRounds(ask, ledgers, { roundCount, callsPerRound });
    const base = rounds[isScan ? 1 : 0] as Rounds;
    for (const [index, { size }] of ledgers.entries()) {
      const own = rounds[index] as Rounds;
      const ratios = own.map((round, place) => quantile(round, 0.5) / quantile(base[place] as readonly number[], 0.5));
      const times = quantile(ratios, 0.5);
      if (index === ledgers.length - 1 && times > worst.times) worst = { times, name };
      rows.push([
        index === 0 ? name : "",
        size.toLocaleString("en-US"),
        spreadInWords(own.flat()),
        spreadInWords(ratios),
      ]);
    }
  }
  return {
    heading,
    sentences: [
      `${machineInWords()} ${place}; filled past the store, as the store writes. Each question goes to the three ledgers in turns, ${CALLS_PER_ROUND} times in each of ${ROUND_COUNT} rounds (a scan ${SCAN_CALLS_PER_ROUND} times in each of ${SCAN_ROUND_COUNT}); medians and quartiles; ratios, within a round, to the smallest ledger. A scan reads the whole of the smallest ledger and is bounded from the second on, so it is compared with that.`,
      `The aim is a ratio below ${AIM_BELOW_TIMES} for the largest ledger; the greatest here is ${figure(worst.times)} ("${worst.name}").`,
    ],
    table: { columns: ["question", "leases", "µs", "ratio"], rows },
  };
}

function mebibytes(byteCount: number): string {
  return `${(byteCount / 2 ** 20).toFixed(0)} MiB`;
}
