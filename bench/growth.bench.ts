/** Cost against size: one to sixty-four importer processes on one coordinator, on the embedded store and on Redis. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, onTestFinished, test } from "vitest";
import { folderForTest } from "../test/processes/command.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { machineInWords } from "./machine.js";
import { figure, quantile } from "./quantiles.js";
import { publish } from "./report.js";

const PROCESSES = join(import.meta.dirname, "processes");
const MAKING_MS = 5_000;
const WARM_UP_COUNT = 100_000;
/** Importers that begin together would ask for their leases together: each makes a share of this more than the one before. */
const APART_COUNT = 65_536;
const STARTED_AT_ONCE = 4;
/** More numbers a second than an import of messages asks for. */
const PACE = 50_000;
const LOADS = [
  { importerCount: 1, pace: Number.POSITIVE_INFINITY },
  { importerCount: 4, pace: Number.POSITIVE_INFINITY },
  { importerCount: 1, pace: PACE },
  { importerCount: 8, pace: PACE },
  { importerCount: 64, pace: PACE },
];

interface Made {
  readonly perSecond: number;
  readonly leasesUs: readonly number[];
}

const rows: string[][] = [];

afterAll(() => {
  publish({
    bench: "growth",
    sections: [
      {
        heading: "One to sixty-four importers",
        sentences: [
          `${machineInWords()} Each importer is a process that does nothing but take(1000) for ${MAKING_MS / 1_000} s, at a pace or as fast as it can, and leases over HTTP from one coordinator process on the same machine. They all share its cores: a lease waits for the processor too.`,
        ],
        table: {
          columns: [
            "store",
            "importers",
            "asked of each",
            "call numbers a second, in all",
            "by each",
            "leases a second",
            "lease p50, ms",
            "p99, ms",
          ],
          rows,
        },
      },
    ],
  });
});

test("importers on the embedded store", async () => {
  await grow("embedded", `sqlite:${join(await folderForTest(), "store.db")}`);
});

test("importers on Redis", async () => {
  const { url } = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  await grow("Redis, appendfsync everysec", url);
});

async function grow(store: string, storeUrl: string): Promise<void> {
  const namespaceOf = (index: number) => `load-${index}`;
  const coordinator = start("coordinator.mjs", storeUrl, ...LOADS.map((_, index) => namespaceOf(index)));
  const { url } = await told<{ readonly url: string }>(coordinator);
  for (const [index, { importerCount, pace }] of LOADS.entries()) {
    const importers: ChildProcess[] = [];
    while (importers.length < importerCount) {
      // Starting takes the processor for longer than all that is measured: some at a time.
      const some = Array.from({ length: Math.min(STARTED_AT_ONCE, importerCount - importers.length) }, (_, place) => {
        const warmUpCount = WARM_UP_COUNT + (APART_COUNT * (importers.length + place)) / importerCount;
        return start("importer.mjs", url, namespaceOf(index), String(MAKING_MS), String(pace), String(warmUpCount));
      });
      await Promise.all(some.map(told));
      importers.push(...some);
    }
    const ends = importers.map((importer) => told<Made>(importer));
    for (const importer of importers) importer.send("go");
    const made = await Promise.all(ends);
    const perSecond = made.reduce((sum, each) => sum + each.perSecond, 0);
    const leasesUs = made.flatMap((each) => each.leasesUs);
    rows.push([
      store,
      String(importerCount),
      pace === PACE ? PACE.toLocaleString("en-US") : "as it can",
      `${figure(perSecond / 1e6)} million`,
      `${figure(perSecond / importerCount / 1e6)} million`,
      figure((leasesUs.length * 1_000) / MAKING_MS),
      figure(quantile(leasesUs, 0.5) / 1_000),
      figure(quantile(leasesUs, 0.99) / 1_000),
    ]);
  }
}

function start(program: string, ...parameters: readonly string[]): ChildProcess {
  const child = fork(join(PROCESSES, program), parameters);
  // Not its "close": that never comes for a process whose channel was closed from this side.
  const ended = once(child, "exit");
  onTestFinished(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await ended;
  });
  return child;
}

/** The next message of the process. */
async function told<T>(child: ChildProcess): Promise<T> {
  const message = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (typeof message[0] === "number" || message[0] === null)
    throw new Error(`a process of the bench ended with ${message[0]}`);
  return message[0] as T;
}
