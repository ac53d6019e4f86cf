/** What no clock shows: how long a number is, how much of it the collector has to clear away, and whether one came twice. */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../quantiles.js";
import type { Contender } from "./contender.js";

const HEAP_BATCH_COUNT = 31;
const HEAP_NUMBER_COUNT = 2_000;
const HEAP_BATCH_MS = 20;
/** A million where that takes about a second. */
const MADE_COUNT = 1_000_000;
const MAKING_MS = 1_000;
/** So many are made without a pause; then a client may fetch runs. */
const STRETCH_COUNT = 200_000;

export interface Observed {
  readonly characterCount: number;
  readonly heapBytes: number;
  readonly madeCount: number;
  readonly repeatCount: number;
}

/** Of a contender that takes `ns` nanoseconds a number. */
export async function observe(contender: Contender, ns: number): Promise<Observed> {
  const madeCount = countWithin(MAKING_MS, MADE_COUNT, ns);
  const [sample] = await kept(contender, contender.batchCount ?? 1);
  return {
    characterCount: (sample as string).length,
    heapBytes: await heapBytesOfNumber(contender, countWithin(HEAP_BATCH_MS, HEAP_NUMBER_COUNT, ns)),
    madeCount,
    repeatCount: await repeatsAmong(contender, madeCount),
  };
}

/** Whole thousands above a thousand. */
function countWithin(ms: number, countMax: number, ns: number): number {
  const count = Math.min((ms * 1e6) / ns, countMax);
  return count < 1_000 ? Math.ceil(count) : Math.floor(count / 1_000) * 1_000;
}

/** By how much the heap grows for each: the median of many small batches, as some are cut by a collection. */
async function heapBytesOfNumber(contender: Contender, countMax: number): Promise<number> {
  const { batchCount = 1 } = contender;
  const count = Math.ceil(countMax / batchCount) * batchCount;
  const room: unknown[] = Array.from({ length: count });
  const bytes: number[] = [];
  for (let batch = 0; batch < HEAP_BATCH_COUNT; batch++) {
    await sleep(1);
    const before = process.memoryUsage().heapUsed;
    const result = contender.keep(room, count);
    if (result instanceof Promise) await result;
    const grown = process.memoryUsage().heapUsed - before;
    if (grown >= 0) bytes.push(grown / count);
  }
  return quantile(bytes, 0.5);
}

async function repeatsAmong(contender: Contender, count: number): Promise<number> {
  const seen = new Set<unknown>();
  for (let made = 0; made < count; made += STRETCH_COUNT) {
    for (const text of await kept(contender, Math.min(STRETCH_COUNT, count - made))) seen.add(text);
  }
  return count - seen.size;
}

async function kept({ keep }: Contender, count: number): Promise<readonly unknown[]> {
  await sleep(2);
  const room: unknown[] = Array.from({ length: count });
  await keep(room, count);
  return room;
}
