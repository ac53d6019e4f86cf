/**
 * Runs one fault, some times over, and says what came of it.
 * Guarantees: G10 (docs/guarantees.md).
 */
import type { Fault, FaultOptions } from "./fault.js";
import type { World } from "./world.js";

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

export interface RunOptions extends FaultOptions {
  readonly injectionCount: number;
  /** Work as long as there is room under the clock line: after the first doubt runs come one by one. Default: some leases. */
  readonly workBefore?: (world: Pick<World, "work" | "until">) => Promise<void>;
}

const LEASES_BEFORE = 60;

/** @throws Error when a fault does not heal, or something other than the expected happens. */
export async function runFault(
  fault: Fault,
  { injectionCount: asked, workBefore = (world) => world.work(LEASES_BEFORE), ...options }: RunOptions,
): Promise<FaultResult> {
  const injectionCount = Math.min(asked, fault.injectionCountMax);
  const { world, inject } = await fault.begin(options);
  const healedAfterMs: number[] = [];
  try {
    await workBefore(world);
    for (let injection = 0; injection < injectionCount; injection++) {
      await world.work();
      world.beginInjection();
      await inject();
      healedAfterMs.push(await world.untilLeasing());
    }
    await world.work();
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

/** Returns what came of one fault, as a line for people. */
export function lineOf(result: FaultResult): string {
  const { fault, injectionCount, runCount, callNumberCount, problems, controlCount, controlRepeatCount } = result;
  const healedAfterMs = Math.max(0, ...result.healedAfterMs);
  const codes = [...result.codes.keys()].sort().join(", ");
  return [
    `${fault.number} ${fault.name}: injected ${injectionCount} times, ${runCount} runs and ${callNumberCount} call numbers`,
    `${problems.length} problems`,
    `the control repeated ${controlRepeatCount} of ${controlCount}`,
    `leases again after ${(healedAfterMs / 1000).toFixed(2)} s`,
    ...(codes === "" ? [] : [`refused with ${codes}`]),
  ].join("; ");
}
