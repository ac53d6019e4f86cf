/** What no clock shows: how long a number is, how much of it the collector has to clear away, and whether one came twice. */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../quantiles.js";
import type { Contender } from "./contender.js";

const HEAP_BATCH_COUNT = 60;
const HEAP_BATCH_BYTES = 2 ** 21;
const HEAP_NUMBER_COUNT_MAX = 100_000;
const PILOT_BATCHES = 20;
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
  const madeCount = Math.ceil(Math.min((MAKING_MS * 1e6) / ns, MADE_COUNT) / 1_000) * 1_000;
  const [sample] = await collected(contender, contender.batchCount ?? 1);
  return {
    characterCount: (sample as string).length,
    heapBytes: await heapBytesOfNumber(contender),
    madeCount,
    repeatCount: await repeatsAmong(contender, madeCount),
  };
}

/**
 * From batches that are large enough to hold what is made ahead and for many, and small enough that most of them meet no
 * collection; without what the looking takes.
 */
async function heapBytesOfNumber(contender: Contender): Promise<number> {
  const { batchCount = 1 } = contender;
  const about = (await heapGrowth(contender.collect, batchCount * PILOT_BATCHES)) / (batchCount * PILOT_BATCHES);
  const wanted = Math.min(HEAP_BATCH_BYTES / Math.max(about, 1), HEAP_NUMBER_COUNT_MAX);
  const count = Math.ceil(wanted / batchCount) * batchCount;
  const ofLooking = await heapGrowth(() => {});
  return ((await heapGrowth(contender.collect, count)) - ofLooking) / count;
}

/** In bytes, for each call: the median, as now and then a collection makes the heap smaller. */
async function heapGrowth(collect: Contender["collect"], count = 0): Promise<number> {
  const room: unknown[] = Array.from({ length: count });
  const grown: number[] = [];
  for (let batch = 0; batch < HEAP_BATCH_COUNT; batch++) {
    // Clients fetch runs.
    await sleep(1);
    const before = process.memoryUsage().heapUsed;
    const result = collect(room, count);
    if (result instanceof Promise) await result;
    const more = process.memoryUsage().heapUsed - before;
    if (more >= 0) grown.push(more);
  }
  return quantile(grown, 0.5);
}

async function repeatsAmong(contender: Contender, count: number): Promise<number> {
  const seen = new Set<unknown>();
  for (let made = 0; made < count; made += STRETCH_COUNT) {
    for (const text of await collected(contender, Math.min(STRETCH_COUNT, count - made))) seen.add(text);
  }
  return count - seen.size;
}

async function collected({ collect }: Contender, count: number): Promise<readonly unknown[]> {
  await sleep(2);
  const room: unknown[] = Array.from({ length: count });
  await collect(room, count);
  return room;
}
