/** What an importer loses by waiting for runs when it generates ten million numbers a second and its coordinator is slow. */
import { setTimeout as sleep, setImmediate as yieldToEventLoop } from "node:timers/promises";
import { type ClientOptions, createClient } from "@callnumber/client";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { test } from "vitest";
import { countingSource } from "./counting-source.js";
import {
  describeMachine,
  formatFigure,
  formatSpread,
  inRounds,
  median,
  quantile,
  roundCount,
  size,
} from "./harness.js";
import { publish } from "./report.js";

const ROUND_COUNT = roundCount(3);
const NUMBERS_PER_SECOND = 10_000_000;
const WARM_UP_MS = size(3_000, 300);
const MEASURED_MS = size(6_000, 600);
/** What was due while the machine stopped is not made up for beyond this: that would be a faster importer. */
const CHUNK_COUNT_MAX = 20_000;

const COORDINATORS: readonly (readonly [name: string, delayMs: () => number])[] = [
  ["1 ms", () => 1],
  ["10 ms", () => 10],
  ["10 ms, one in a hundred 100 ms or more", () => logNormal(10, 100)],
];
const PREFETCH = [true, false] as const satisfies readonly ClientOptions["prefetch"][];

const COLUMNS = [
  "coordinator",
  "prefetch",
  "lost, %",
  "longest wait, ms",
  "lost in the first second, ms",
  "leases a second",
];

interface Loss {
  /** Of the time after the warm-up, in percent. */
  readonly percent: number;
  readonly longestMs: number;
  readonly firstSecondMs: number;
  readonly leasesPerSecond: number;
}

test("time lost waiting for runs", async () => {
  const ways = COORDINATORS.flatMap(([name, delayMs]) => PREFETCH.map((prefetch) => ({ name, delayMs, prefetch })));
  const runs = ways.map(
    ({ delayMs, prefetch }) =>
      async () =>
        await importAtPace(delayMs, prefetch),
  );
  const losses = await inRounds(runs, ROUND_COUNT);
  publish("waiting", {
    heading: "Time lost waiting for runs",
    sentences: [
      `${describeMachine()} An importer that makes ${NUMBERS_PER_SECOND / 1e6} million numbers a second, ${Math.round(NUMBERS_PER_SECOND / SEQUENCE_COUNT)} runs, with \`fillBytes\`, and lets the event loop turn in between. Its coordinator responds after the time that is named. Waiting is the time of all calls during which the event loop turned. ${ROUND_COUNT} rounds of ${MEASURED_MS / 1000} s after a warm-up of ${WARM_UP_MS / 1000} s; medians and quartiles.`,
    ],
    table: {
      columns: COLUMNS,
      rows: ways.map(({ name, prefetch }, index) => {
        const figures = (figure: keyof Loss) => (losses[index] ?? []).map((loss) => loss[figure]);
        return [
          name,
          prefetch ? "yes" : "no",
          formatSpread(figures("percent")),
          formatFigure(quantile(figures("longestMs"), 1)),
          formatFigure(median(figures("firstSecondMs"))),
          formatFigure(median(figures("leasesPerSecond"))),
        ];
      }),
    },
  });
});

async function importAtPace(delayMs: () => number, prefetch: boolean): Promise<Loss> {
  const source = countingSource(() => sleep(delayMs()));
  const client = createClient({ source, holder: { name: "bench" }, prefetch });
  const bytes = new Uint8Array(CHUNK_COUNT_MAX * 8);
  const startedAtMs = performance.now();
  const waits: { readonly atMs: number; readonly ms: number }[] = [];
  let made = 0;
  let lostMs = 0;
  let leaseCountWhenWarm = 0;
  // The time of the importer stops while it waits.
  for (let elapsedMs = 0; elapsedMs < WARM_UP_MS + MEASURED_MS; elapsedMs = performance.now() - startedAtMs) {
    if (elapsedMs < WARM_UP_MS) leaseCountWhenWarm = source.leaseCount;
    const due = Math.floor(((elapsedMs - lostMs) / 1000) * NUMBERS_PER_SECOND) - made;
    if (due > 0) {
      made += due;
      const ms = await waitingTime(client.fillBytes(bytes.subarray(0, Math.min(due, CHUNK_COUNT_MAX) * 8)));
      if (ms > 0) waits.push({ atMs: elapsedMs, ms });
      lostMs += ms;
    }
    await yieldToEventLoop();
  }
  const leaseCount = source.leaseCount - leaseCountWhenWarm;
  await client.close();
  const whenWarm = waits.filter(({ atMs }) => atMs >= WARM_UP_MS).map(({ ms }) => ms);
  return {
    percent: (sum(whenWarm) * 100) / MEASURED_MS,
    longestMs: Math.max(0, ...whenWarm),
    firstSecondMs: sum(waits.filter(({ atMs }) => atMs < 1_000).map(({ ms }) => ms)),
    leasesPerSecond: (leaseCount * 1000) / MEASURED_MS,
  };
}

/** Resolves to how long a call took; 0 when the event loop did not turn meanwhile, because then it only worked. */
async function waitingTime(call: Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  let hasTurned = false;
  const immediate = setImmediate(() => {
    hasTurned = true;
  });
  await call;
  clearImmediate(immediate);
  return hasTurned ? performance.now() - startedAtMs : 0;
}

/** Returns a random delay with that median, one in a hundred at or above `p99`. */
function logNormal(medianMs: number, p99Ms: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return medianMs * Math.exp((Math.log(p99Ms / medianMs) / 2.326) * normal);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
