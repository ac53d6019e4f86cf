/**
 * Whether what is asked of a ledger takes longer when its older part stands in archive files: the same questions to a fresh ledger, to a
 * long one wholly in the store, and to one like it that was rotated; and what the rotation itself costs.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathOf } from "@callnumber/protocol/wire";
import { Redis } from "ioredis";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import { createServer } from "../packages/coordinator/src/http/server.js";
import { LedgerArchive } from "../packages/coordinator/src/ledger-archive/ledger-archive.js";
import { NamespaceRotation } from "../packages/coordinator/src/ledger-archive/namespace-rotation.js";
import { SILENT_LOG } from "../packages/coordinator/src/log.js";
import type { Store } from "../packages/coordinator/src/store.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { folderForTest } from "../test/processes/command.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { type AskedLedger, askedInRounds } from "./asked-in-rounds.js";
import { callNumberWithin, fillRedis, fillSqlite, runWithin } from "./filled-ledgers.js";
import { machineInWords } from "./machine.js";
import { figure, quantile, spreadInWords } from "./quantiles.js";
import { publish, type Section } from "./report.js";

const FRESH_LEASES = 1_000;
const LONG_LEASES = Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 1_000_000);
/** What stays in the store of the rotated one. */
const KEEP_LEASES = Math.min(10_000, LONG_LEASES / 2);
const AGE_DAYS = 100;
const ROUND_COUNT = 30;
const CALLS_PER_ROUND = 20;
const PAGE_LEASES = 50;

/** A ledger and an HTTP server that answers for it. */
interface ServedLedger extends AskedLedger {
  readonly kind: string;
  readonly url: string;
}

interface Question {
  readonly name: string;
  readonly ask: (ledger: ServedLedger) => Promise<unknown>;
}

const QUESTIONS: readonly Question[] = [
  {
    name: "inspect over HTTP, a random call number",
    ask: async ({ url, namespace, size }) => {
      const answer = await fetch(`${url}${pathOf("callNumber", { namespace, callNumber: callNumberWithin(size) })}`);
      const { verdict } = (await answer.json()) as { verdict: string };
      if (verdict !== "reported") throw new Error(`a number that was leased is told as ${verdict}`);
    },
  },
  {
    name: "inspect, a random call number",
    ask: ({ coordinator, namespace, size }) => coordinator.inspect(namespace, callNumberWithin(size)),
  },
  { name: "run, a random one", ask: ({ coordinator, namespace, size }) => coordinator.run(namespace, runWithin(size)) },
  {
    name: "run, the newest",
    ask: ({ coordinator, namespace, size }) => coordinator.run(namespace, size),
  },
  {
    name: `runs, the newest ${PAGE_LEASES}`,
    ask: ({ coordinator, namespace }) => coordinator.runs(namespace, { limit: PAGE_LEASES }),
  },
  {
    name: `runs, ${PAGE_LEASES} from a random cursor`,
    ask: ({ coordinator, namespace, size }) =>
      coordinator.runs(namespace, { limit: PAGE_LEASES, cursor: String(PAGE_LEASES + runWithin(size - PAGE_LEASES)) }),
  },
  { name: "status", ask: ({ coordinator, namespace }) => coordinator.status(namespace) },
];

const sections: Section[] = [];

afterAll(() => publish({ bench: "ledger-rotation", sections }));

test("an archived ledger of the embedded store", async () => {
  const folder = await folderForTest();
  const ledgers: ServedLedger[] = [];
  let rotation = "";
  for (const { kind, size, isRotated } of KINDS) {
    const path = join(folder, `${kind}.db`);
    const made = (await openStore({ kind: "sqlite", path }, { create: true })).store;
    await initBackdated(made, "bench", { ageDays: AGE_DAYS });
    await made.close();
    fillSqlite(path, "bench", size);
    const { store } = await openStore({ kind: "sqlite", path }, { create: false });
    onTestFinished(() => store.close());
    const archive = isRotated ? new LedgerArchive(await folderForTest()) : undefined;
    if (archive !== undefined) rotation = await rotate(store, archive, "bench", size);
    ledgers.push(await served(kind, store, "bench", size, archive));
  }
  sections.push(await compare("The embedded store", rotation, ledgers));
});

test("an archived ledger of Redis", async () => {
  const { url } = await startRedisServer();
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  const { store } = await openStore(parseStoreUrl(url), { create: false });
  onTestFinished(() => store.close());
  const ledgers: ServedLedger[] = [];
  let rotation = "";
  for (const { kind, size, isRotated } of KINDS) {
    const namespace = kind.replaceAll(/\W+/g, "-");
    await initBackdated(store, namespace, { ageDays: AGE_DAYS });
    await fillRedis(redis, namespace, size);
    const archive = isRotated ? new LedgerArchive(await folderForTest()) : undefined;
    if (archive !== undefined) rotation = await rotate(store, archive, namespace, size);
    ledgers.push(await served(kind, store, namespace, size, archive));
  }
  sections.push(await compare("Redis", rotation, ledgers));
});

const KINDS = [
  { kind: "fresh", size: FRESH_LEASES, isRotated: false },
  { kind: "in the store", size: LONG_LEASES, isRotated: false },
  { kind: "rotated", size: LONG_LEASES, isRotated: true },
] as const;

async function served(
  kind: string,
  store: Store,
  namespace: string,
  size: number,
  ledgerArchive: LedgerArchive | undefined,
): Promise<ServedLedger> {
  const coordinator = new Coordinator({ store, name: "bench", ledgerArchive });
  const server = await createServer({ coordinator, release: "bench" });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.stop());
  return { kind, coordinator, namespace, size, url };
}

/** Rotates all that is due. Answers what it cost, in a sentence. */
async function rotate(store: Store, archive: LedgerArchive, namespace: string, size: number): Promise<string> {
  const retention = { leaseCount: KEEP_LEASES };
  // Nobody touches the store meanwhile, and a rotation goes by no clock that lies far from the last touch.
  const { changedAtMs } = await store.readNamespace(namespace);
  const options = { store, archive, retention, log: SILENT_LOG, now: () => changedAtMs, partialAfterMs: -1 };
  const beginMs = performance.now();
  await new NamespaceRotation(namespace, options).rotate();
  const tookMs = performance.now() - beginMs;
  const { storeId = "", through } = await store.readArchived(namespace);
  expect(through).toBe(size - KEEP_LEASES);
  const { folder } = archive.of(namespace, storeId);
  const files = readdirSync(folder);
  const byteCount = files.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  return `${through.toLocaleString("en-US")} leases went into ${files.length} files of together ${figure(byteCount / 2 ** 20)} MiB, ${figure(byteCount / through)} bytes each, ${figure((through / tookMs) * 1_000)} a second.`;
}

async function compare(heading: string, rotation: string, ledgers: readonly ServedLedger[]): Promise<Section> {
  const rows: string[][] = [];
  for (const { name, ask } of QUESTIONS) {
    const rounds = await askedInRounds(ask, ledgers, { roundCount: ROUND_COUNT, callsPerRound: CALLS_PER_ROUND });
    const [base = []] = rounds;
    for (const [index, { kind, size }] of ledgers.entries()) {
      const own = rounds[index] ?? [];
      const ratios = own.map((round, at) => quantile(round, 0.5) / quantile(base[at] ?? [], 0.5));
      const who = `${kind}, ${size.toLocaleString("en-US")}`;
      rows.push([index === 0 ? name : "", who, spreadInWords(own.flat()), spreadInWords(ratios)]);
    }
  }
  return {
    heading,
    sentences: [
      `${machineInWords()} ${rotation} ${KEEP_LEASES.toLocaleString("en-US")} stayed. Each question goes to the three ledgers in turns, ${CALLS_PER_ROUND} times in each of ${ROUND_COUNT} rounds; medians and quartiles; ratios, within a round, to the fresh ledger.`,
    ],
    table: { columns: ["question", "ledger, leases", "µs", "ratio"], rows },
  };
}
