/**
 * Times several ways of doing a thing side by side: in turns within each round, so that what a shared machine does to one it
 * does to all. What counts is the ratio of a round; the table shows its median and spread.
 */
export interface Contender {
  readonly name: string;
  /** Does the thing `callerCount` times at once. */
  readonly together: (callerCount: number) => Promise<void>;
}

export interface Load {
  readonly roundCount: number;
  /** How often each contender is called in a round. */
  readonly callCount: number;
  /** How many callers wait at the same time. */
  readonly callerCount: number;
}

/** Latencies of one contender, in microseconds, by round. */
type Rounds = readonly (readonly number[])[];

/** Runs the rounds and prints the table; the first contender is the one that the others are compared with. */
export async function compareSideBySide(title: string, contenders: readonly Contender[], load: Load): Promise<void> {
  const latencies = contenders.map((): number[][] => []);
  const warmUp = { ...load, callCount: Math.ceil(load.callCount / 10) };
  for (const contender of contenders) await timeRound(contender, warmUp);
  for (let round = 0; round < load.roundCount; round++) {
    for (const [index, contender] of contenders.entries()) latencies[index]?.push(await timeRound(contender, load));
  }
  const base = latencies[0] as Rounds;
  const rows = contenders.map(({ name }, index) => rowOf(name, latencies[index] as Rounds, base));
  const heading = "way                                     p50 us   p99 us   times the first (median, least to most)";
  const { roundCount, callCount, callerCount } = load;
  const what = `${roundCount} rounds of ${callCount} calls, ${callerCount} at once`;
  console.log(["", `${title} (${what})`, heading, ...rows].join("\n"));
}

async function timeRound({ together }: Contender, { callCount, callerCount }: Load): Promise<number[]> {
  const latencies: number[] = [];
  for (let done = 0; done < callCount; done += callerCount) {
    const begin = performance.now();
    await together(callerCount);
    latencies.push((performance.now() - begin) * 1000);
  }
  return latencies;
}

function rowOf(name: string, rounds: Rounds, base: Rounds): string {
  const all = rounds.flat();
  const ratios = rounds.map((round, index) => quantile(round, 0.5) / quantile(base[index] as readonly number[], 0.5));
  const spread = `${quantile(ratios, 0.5).toFixed(2)}  (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
  const figures = [quantile(all, 0.5), quantile(all, 0.99)].map((us) => us.toFixed(0).padStart(9)).join("");
  return `${name.padEnd(37)}${figures}   ${spread}`;
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
