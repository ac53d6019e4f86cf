/**
 * What every benchmark shares: rounds in which all ways are measured in turns, so that a busy machine is slow to all of them
 * alike; medians, quartiles and ratios within a round; and whether this is only a short run.
 */
import { availableParallelism, cpus } from "node:os";
import process from "node:process";

/** Set by `npm run bench -- --quick`: few rounds and small sizes, to see that a benchmark runs to its end. */
export const QUICK_VARIABLE = "CALLNUMBER_BENCH_QUICK";
const QUICK_ROUND_COUNT = 2;

/** Returns `full`, or in a quick run `quick`. */
export function size(full: number, quick: number): number {
  return process.env[QUICK_VARIABLE] === undefined ? full : quick;
}

export function roundCount(full: number): number {
  return size(full, QUICK_ROUND_COUNT);
}

/**
 * Runs each of `ways` once in every round, in turns, after one round that warms up and is not counted.
 * Resolves to the results of each way, by round.
 */
export async function inRounds<Result>(
  ways: readonly (() => Promise<Result>)[],
  count: number,
): Promise<readonly (readonly Result[])[]> {
  const results = ways.map((): Result[] => []);
  for (let round = 0; round <= count; round++) {
    for (let turn = 0; turn < ways.length; turn++) {
      // Another way begins each round, so that none always runs after the same one.
      const index = (turn + round) % ways.length;
      const result = await ways[index]?.();
      if (round > 0) results[index]?.push(result as Result);
    }
  }
  return results;
}

/** Returns the duration in milliseconds. */
export async function duration(work: () => unknown): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

/** Returns the value that `share`, 0 to 1, of all values do not exceed. NaN of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Divides each round by the same round of `base`. */
export function ratios(values: readonly number[], base: readonly number[]): number[] {
  return values.map((value, round) => value / (base[round] as number));
}

/** Formats the median and the quartiles: `3.1 (2.9 to 3.3)`. */
export function formatSpread(values: readonly number[]): string {
  const [lower, middle, upper] = [0.25, 0.5, 0.75].map((share) => formatFigure(quantile(values, share)));
  return `${middle} (${lower} to ${upper})`;
}

/** Formats a measured value: three significant digits, thousands grouped. */
export function formatFigure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const rounded = Number(value.toPrecision(3));
  const fractionDigits = rounded === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en-US", {
    minimumFractionDigits: fractionDigits,
    maximumFractionDigits: fractionDigits,
  });
}

/** Describes the Node and the machine that the figures belong to. */
export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? "an unknown processor";
  return `Node ${process.versions.node} (V8 ${process.versions.v8}) on ${model}, ${availableParallelism()} cores.`;
}
