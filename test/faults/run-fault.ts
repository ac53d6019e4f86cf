/**
 * What a fault is to the suite, and how one is run: some times over in a world of its own, while importers work.
 * Guarantees: G10 (docs/guarantees.md).
 */
import type { PostgresPrograms } from "../postgres/postgres-programs.js";
import type { RedisBinary } from "../redis/redis-binary.js";
import type { World, WorldOptions } from "./world.js";

export interface Fault extends Required<FaultSettings> {
  readonly name: string;
  /** @throws Error when it does not heal, or something other than the expected happens. */
  run(options: RunOptions): Promise<FaultResult>;
}

export interface FaultSettings {
  /** For a fault that finds what it needs only the first time. */
  readonly injectionCountMax?: number;
  /** Codes that must have been seen at the end, by an importer or in a coordinator's log. */
  readonly expected?: readonly string[];
  /** False where little is left that the other importers use up before one in Python has started. Default: true. */
  readonly hasPython?: boolean;
  /** Part of `npm test`, which has at least one for each guarantee. */
  readonly isShort?: boolean;
  /** Why it can't happen on this machine; undefined when it can. */
  readonly unavailable?: () => string | undefined;
}

export interface FaultOptions extends Pick<WorldOptions, "random" | "load"> {
  readonly binary: RedisBinary;
  /** For the faults of PostgreSQL. */
  readonly postgres: PostgresPrograms | undefined;
}

interface RunOptions extends FaultOptions {
  readonly injectionCount: number;
  /** Works as long as there is headroom under the run ceiling: after the first recovery runs come one by one. Default: some leases. */
  readonly workBefore?: (world: Pick<World, "work" | "until">) => Promise<void>;
}

export interface FaultResult {
  readonly fault: Fault;
  readonly injectionCount: number;
  readonly runCount: number;
  readonly callNumberCount: number;
  readonly problems: readonly string[];
  readonly controlCount: number;
  readonly controlRepeatCount: number;
  /** How often a request was rejected, by code. */
  readonly codes: ReadonlyMap<string, number>;
  /** Codes that should have been seen, and were not. */
  readonly missing: readonly string[];
  /** After each injection: how long until every importer leased again. */
  readonly healedAfterMs: readonly number[];
}

const LEASES_BEFORE = 60;

/**
 * @param newWorld makes the world that the fault happens to, which does not run yet.
 * @param inject does the fault once, or as often as it returns; fixes what an operator would fix, and runs the commands that an operator would run. Importers work all
 * the while. When it resolves, leasing must be able to go on.
 */
export function faultOf<W extends World>(
  name: string,
  settings: FaultSettings,
  newWorld: (options: FaultOptions) => W,
  inject: (world: W) => Promise<number | void>,
): Fault {
  const fault: Fault = {
    name,
    injectionCountMax: settings.injectionCountMax ?? Number.POSITIVE_INFINITY,
    expected: settings.expected ?? [],
    hasPython: settings.hasPython ?? true,
    isShort: settings.isShort ?? false,
    unavailable: settings.unavailable ?? (() => undefined),
    async run({ injectionCount: requested, workBefore = (world) => world.work(LEASES_BEFORE), ...options }) {
      const world = newWorld(options);
      const healedAfterMs: number[] = [];
      let injectionCount = 0;
      try {
        await world.begin();
        await workBefore(world);
        for (let turn = 0; turn < Math.min(requested, fault.injectionCountMax); turn++) {
          await world.work();
          world.beginInjection();
          injectionCount += (await inject(world)) ?? 1;
          healedAfterMs.push(await world.untilLeasing());
        }
        await world.work();
        await world.rest();
        const { received, control, codes, callNumberCount, problems } = world;
        const missing = fault.expected.filter((code) => !codes.has(code));
        const [controlCount, controlRepeatCount] = [control.count, control.repeatCount];
        const counts = { runCount: received.runCount, callNumberCount, controlCount, controlRepeatCount };
        return { fault, injectionCount, ...counts, problems, codes, missing, healedAfterMs };
      } finally {
        await world.dispose();
      }
    },
  };
  return fault;
}

/** Returns what came of one fault, as a line for people. */
export function lineOf(result: FaultResult): string {
  const { fault, injectionCount, runCount, callNumberCount, problems, controlCount, controlRepeatCount } = result;
  const healedAfterMs = Math.max(0, ...result.healedAfterMs);
  const codes = [...result.codes.keys()].sort().join(", ");
  return [
    `${fault.name}: injected ${injectionCount} times, ${runCount} runs and ${callNumberCount} call numbers`,
    `${problems.length} problems`,
    `the control repeated ${controlRepeatCount} of ${controlCount}`,
    `leases again after ${(healedAfterMs / 1000).toFixed(2)} s`,
    ...(codes === "" ? [] : [`rejected with ${codes}`]),
  ].join("; ");
}

/** Returns the faults that can happen on this machine, and prints why others can't. */
export function availableFaults(faults: readonly Fault[]): readonly Fault[] {
  return faults.filter((fault) => {
    const reason = fault.unavailable();
    if (reason !== undefined) console.log(`not injected: ${fault.name}: ${reason}`);
    return reason === undefined;
  });
}
