/**
 * Runs one fault, some times over, and says what came of it.
 * Guarantees: G10 (docs/guarantees.md).
 */
import type { RedisBinary } from "../redis/redis-binary.js";
import type { Fault } from "./fault.js";

export interface FaultResult {
  readonly fault: Fault;
  readonly injectionCount: number;
  readonly runCount: number;
  readonly callNumberCount: number;
  readonly problems: readonly string[];
  readonly controlCount: number;
  readonly controlRepeatCount: number;
  /** Refusals seen, by code. */
  readonly codes: ReadonlyMap<string, number>;
  /** Codes that should have been seen, and were not. */
  readonly missing: readonly string[];
  /** After each injection: how long until every importer leased again. */
  readonly healedAfterMs: readonly number[];
}

export interface RunOptions {
  readonly binary: RedisBinary;
  readonly injectionCount: number;
  readonly random: () => number;
}

const LEASES_BEFORE = 60;

/** @throws Error when a fault does not heal, or something other than the expected happens. */
export async function runFault(
  fault: Fault,
  { binary, injectionCount: asked, random }: RunOptions,
): Promise<FaultResult> {
  const injectionCount = Math.min(asked, fault.isLast ? 1 : fault.injectionCountMax);
  const { world, inject } = await fault.begin({ binary, random });
  const healedAfterMs: number[] = [];
  try {
    // As long as there is room under the clock line: after the first doubt runs come one by one.
    if (!fault.isLast) await world.work(LEASES_BEFORE);
    for (let injection = 0; injection < injectionCount; injection++) {
      if (!fault.isLast) await world.work();
      world.beginInjection();
      await inject();
      if (!fault.isLast) healedAfterMs.push(await world.untilLeasing());
    }
    if (!fault.isLast) await world.work();
    await world.rest();
    const { received, control, codes, callNumberCount, problems } = world;
    return {
      fault,
      injectionCount,
      runCount: received.runCount,
      callNumberCount,
      problems,
      controlCount: control.count,
      controlRepeatCount: control.repeatCount,
      codes,
      missing: fault.expected.filter((code) => !codes.has(code)),
      healedAfterMs,
    };
  } finally {
    await world.dispose();
  }
}
