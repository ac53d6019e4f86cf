/**
 * Times the contenders in turns, in many short rounds: what a shared machine does to one it does to all, so that the ratios
 * within a round hold where the nanoseconds do not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Contender } from "./contender.js";

/** How long a contender runs in one round, about. */
const TURN_MS = 15;
const COUNT_MAX = 200_000;
const WARM_UP_MS = 200;
/** The last so many are kept. Were it all of them, the collector's copying of those that live would be most of what is timed. */
const KEPT_COUNT = 1_024;
/** Clients fetch runs, and what a contender left behind is done with, before the next one begins. */
const PAUSE_MS = 2;

/** Nanoseconds a number, by round. */
export type Rounds = readonly number[];

export interface Timed {
  readonly keptNs: Rounds;
  readonly readNs: Rounds;
}

type Loop = (count: number) => unknown;

export interface TimedLoop {
  /** Makes or does `count` things. */
  readonly loop: Loop;
  /** Done in multiples of this. Default 1. */
  readonly batchCount?: number | undefined;
}

/** Resolves to the rounds of each contender, in their order. */
export async function timeInTurns(contenders: readonly Contender[], roundCount: number): Promise<readonly Timed[]> {
  const kept: unknown[] = Array.from({ length: KEPT_COUNT });
  const keeping = contenders.map(({ keep, batchCount }) => ({
    loop: (count: number) => keep(kept, count),
    batchCount,
  }));
  const reading = contenders.map(({ read, batchCount }) => ({ loop: read, batchCount }));
  const rounds = await timeLoops([...keeping, ...reading], roundCount, () => kept.fill(undefined));
  return contenders.map((_, index) => ({
    keptNs: rounds[index] as Rounds,
    readNs: rounds[contenders.length + index] as Rounds,
  }));
}

/** Resolves to the rounds of each loop, in their order. `clear` is called between two turns. */
export async function timeLoops(
  loops: readonly TimedLoop[],
  roundCount: number,
  clear = () => {},
): Promise<readonly Rounds[]> {
  const runners = [];
  for (const { loop, batchCount = 1 } of loops) runners.push({ ...(await warm(loop, batchCount)), ns: [] as number[] });
  for (let round = 0; round < roundCount; round++) {
    for (let turn = 0; turn < runners.length; turn++) {
      // Another one begins each time: nobody always follows the same.
      const { loop, count, ns } = runners[(turn + round) % runners.length] as (typeof runners)[number];
      ns.push((await msOf(loop, count)) * (1e6 / count));
      clear();
    }
  }
  return runners.map(({ ns }) => ns);
}

/** Runs the loop until it is compiled and known; answers how many numbers a turn is. */
async function warm(loop: Loop, batchCount: number): Promise<{ readonly loop: Loop; readonly count: number }> {
  let count = batchCount;
  let ms = 0;
  for (let sumMs = 0; sumMs < WARM_UP_MS; sumMs += ms) {
    ms = await msOf(loop, count);
    const wanted = Math.min((count * TURN_MS) / Math.max(ms, 0.01), count * 4, COUNT_MAX);
    count = Math.max(Math.floor(wanted / batchCount), 1) * batchCount;
  }
  return { loop, count };
}

async function msOf(loop: Loop, count: number): Promise<number> {
  await sleep(PAUSE_MS);
  const startedAtMs = performance.now();
  const result = loop(count);
  // A loop that waits for nothing is not made to wait.
  if (result instanceof Promise) await result;
  return performance.now() - startedAtMs;
}
