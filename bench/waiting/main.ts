/**
 * Ten million call numbers a second, from coordinators that take their time: how much of the importer's time is lost waiting for
 * runs? `node main.js SEED`.
 */
import process from "node:process";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { quantile } from "../quantiles.js";
import { publish } from "../report.js";
import { type Loss, minted, PACE_PER_SECOND } from "./pace.js";
import { SlowSource } from "./slow-source.js";

const WARM_UP_MS = 3_000;
const MEASURED_MS = 6_000;
const PERIOD_MS = 50;
const PERIODS_SHOWN = 40;
/** By the power of two of a lease: 1 run, 2 and 3, up to 64. */
const HEIGHTS = "▁▂▃▄▅▆█";

const [seedText] = process.argv.slice(2);
const seed = Number(seedText);
if (!Number.isInteger(seed)) throw new TypeError(`give a seed, a whole number, not ${String(seedText)}`);

const random = randomFrom(seed);
const COORDINATORS: readonly (readonly [name: string, delayMs: () => number])[] = [
  ["1 ms", () => 1],
  ["10 ms", () => 10],
  ["10 ms, one in a hundred 100 ms or more", () => logNormal(10, 100)],
];

const losses: [string, string, Loss, SlowSource][] = [];
for (const [name, delayMs] of COORDINATORS) {
  for (const refill of ["ahead", "when_empty"] as const) {
    const source = new SlowSource(delayMs);
    const loss = await minted(source, { refill, warmUpMs: WARM_UP_MS, measuredMs: MEASURED_MS });
    losses.push([name, refill, loss, source]);
  }
}

publish({
  bench: "waiting",
  sections: [
    {
      heading: "Time lost waiting for runs",
      sentences: [
        `An importer that makes ${PACE_PER_SECOND / 1e6} million numbers a second, ${Math.round(PACE_PER_SECOND / SEQUENCE_COUNT)} runs, with \`takeBytes\`, and lets the event ` +
          `loop turn in between. Its coordinator answers after the time that is named; seed ${seed}. Waiting is the time of all calls ` +
          "during which the event loop turned; the time of an importer does not go on while it waits.",
        `Lost when warm: in ${MEASURED_MS / 1000} s after the first ${WARM_UP_MS / 1000} s.`,
      ],
      table: {
        columns: [
          "coordinator",
          "refill",
          "lost when warm",
          "longest wait",
          "lost in the first second",
          "leases a second",
          "answers: p50, p99",
        ],
        rows: losses.map(([name, refill, loss, source]) => [
          name,
          refill,
          `${(loss.shareWhenWarm * 100).toFixed(2)} %`,
          `${loss.longestWhenWarmMs.toFixed(1)} ms`,
          `${loss.firstSecondMs.toFixed(0)} ms`,
          loss.leasesPerSecond.toFixed(1),
          `${[0.5, 0.99].map((share) => quantile(source.answersMs, share).toFixed(0)).join(" ms, ")} ms`,
        ]),
      },
    },
    {
      heading: "Size of the leases over time",
      sentences: [
        `The largest lease that was asked for in each ${PERIOD_MS} ms of the first ${(PERIOD_MS * PERIODS_SHOWN) / 1000} s: ▁ is one run, █ 64, a dot ` +
          "none asked for.",
      ],
      table: {
        columns: ["coordinator, refill", "size"],
        rows: losses.map(([name, refill, , source]) => [`${name}, ${refill}`, drawn(source)]),
      },
    },
  ],
});

function drawn({ asked }: SlowSource): string {
  return Array.from({ length: PERIODS_SHOWN }, (_, period) => {
    const sizes = asked.filter(({ atMs }) => Math.floor(atMs / PERIOD_MS) === period).map(({ runCount }) => runCount);
    return sizes.length === 0 ? "·" : HEIGHTS.charAt(Math.floor(Math.log2(Math.max(...sizes))));
  }).join("");
}

/** With that median, and one in a hundred at or above `p99`. */
function logNormal(median: number, p99: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp((Math.log(p99 / median) / 2.326) * normal);
}

function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
