/**
 * Times several ways of doing a thing side by side: in turns within each round, so that what a shared machine does to one it
 * does to all. What counts is the ratio of a round; the table shows its median and quartiles.
 */
import { figure, quantile, spreadInWords } from "./quantiles.js";
import type { Section } from "./report.js";

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

export interface Compared {
  readonly section: Section;
  /** The latency of each contender that 99 of 100 calls did not pass, over all rounds, in microseconds. */
  readonly p99Us: readonly number[];
}

/** Runs the rounds; the first contender is the one that the others are compared with. */
export async function compareSideBySide(
  title: string,
  contenders: readonly Contender[],
  load: Load,
): Promise<Compared> {
  const latencies = contenders.map((): number[][] => []);
  const warmUp = { ...load, callCount: Math.ceil(load.callCount / 10) };
  for (const contender of contenders) await timeRound(contender, warmUp);
  for (let round = 0; round < load.roundCount; round++) {
    for (const [index, contender] of contenders.entries()) latencies[index]?.push(await timeRound(contender, load));
  }
  const base = latencies[0] as Rounds;
  const { roundCount, callCount, callerCount } = load;
  return {
    section: {
      heading: `${title}, ${callerCount === 1 ? "one caller" : `${callerCount} callers at once`}`,
      sentences: [
        `${roundCount} rounds of ${callCount.toLocaleString("en-US")} calls${callerCount === 1 ? "" : `; the time is that of all ${callerCount}`}.`,
      ],
      table: {
        columns: ["way", "p50, µs", "p99, µs", "times the first (quartiles)"],
        rows: contenders.map(({ name }, index) => rowOf(name, latencies[index] as Rounds, base)),
      },
    },
    p99Us: latencies.map((rounds) => quantile(rounds.flat(), 0.99)),
  };
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

function rowOf(name: string, rounds: Rounds, base: Rounds): readonly string[] {
  const all = rounds.flat();
  const ratios = rounds.map((round, index) => quantile(round, 0.5) / quantile(base[index] as readonly number[], 0.5));
  return [name, figure(quantile(all, 0.5)), figure(quantile(all, 0.99)), spreadInWords(ratios)];
}
