/**
 * The course of an overload: what a coordinator can do, a quiet time, so many times more than it can do, and a quiet time again. Real
 * process, real sockets; the load is offered in time, whatever becomes of it. Judges nothing.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Load, type LoadOptions, type LoadResult } from "./load.js";
import { LoadedCoordinator, type ProcessFigures } from "./loaded-coordinator.js";

export interface OverloadPlan {
  readonly durationMs: number;
  /** How many times what the coordinator can do is offered. */
  readonly times: number;
  /** How long capacity and quiet times are measured. */
  readonly measureMs: number;
  readonly flags?: readonly string[];
  /** Of the machine, the flood takes what the coordinator and the callers beside it leave. Default false: on a busy machine it would be none. */
  readonly isFloodModest?: boolean;
  /** Hears what is begun, and how long it takes at least. */
  readonly tell?: (what: string, durationMs: number) => void;
}

export interface OverloadFindings {
  readonly capacityPerSecond: number;
  readonly quiet: LoadResult;
  /** Callers who ask again at once, whatever they are told. */
  readonly flood: LoadResult;
  /** Callers who do beside the flood what they did in the quiet time, and stay away for as long as they are told. */
  readonly loaded: LoadResult;
  readonly after: LoadResult;
  /** Of the coordinator, before, at its greatest during, and after. */
  readonly figures: {
    readonly before: ProcessFigures;
    readonly during: ProcessFigures;
    readonly after: ProcessFigures;
    /** Medians of both halves of the load. */
    readonly rssMb: { readonly firstHalf: number; readonly laterHalf: number };
  };
  /** Operators' questions during the overload: how many were asked, and the slowest answer; any other than 200 is among `failed`. */
  readonly looks: { readonly count: number; readonly failed: number; readonly slowestMs: number };
  /** Runs that the load was told it has, those of the ledger, and the differences. */
  readonly runs: {
    readonly served: number;
    readonly ledger: number;
    readonly repeated: number;
    readonly notInLedger: number;
    readonly inLedgerOnly: number;
  };
  readonly exitCode: number | null;
}

/** The first one is for those who stay patient. */
const LOAD_PROCESSES = 3;
const CAPACITY_CALLERS = 64;
/** Several times as many as may be under way: as many requests wait to be read, or turned away, in each turn of the event loop. */
const CONNECTION_COUNT = 512;
const QUIET_SHARE = 0.1;
const LOOK_EVERY_MS = 500;
/** Until closed connections are let go of. */
const SETTLE_MS = 2_000;
const LOOKS = ["/v1/namespaces/main/status", "/metrics", "/healthz"];

export async function playOverload({
  durationMs,
  times,
  measureMs,
  flags = [],
  isFloodModest = false,
  tell = () => {},
}: OverloadPlan): Promise<OverloadFindings> {
  const coordinator = await LoadedCoordinator.start(...flags);
  let load: Load | undefined;
  try {
    load = await Load.start(coordinator.url, LOAD_PROCESSES, isFloodModest);
    const importers = load.part(0, 1);
    const others = load.part(1, LOAD_PROCESSES);
    let runCount = 0;
    const play = async (what: string, who: Load, options: LoadOptions) => {
      tell(what, options.durationMs);
      const result = await who.play(options);
      runCount += result.runs;
      return result;
    };
    await play("warming up", others, { callers: CAPACITY_CALLERS, durationMs: measureMs / 2 });
    const capacity = await play("capacity", others, { callers: CAPACITY_CALLERS, durationMs: measureMs });
    const capacityPerSecond = (capacity.served * 1_000) / capacity.tookMs;
    // Each caller once a second at the least: a machine that can do little is still asked something.
    const quietPerSecond = Math.max(capacityPerSecond * QUIET_SHARE, CAPACITY_CALLERS);
    const asImporters = { callers: CAPACITY_CALLERS, perSecond: quietPerSecond, isPatient: true };
    const quietly = { ...asImporters, durationMs: measureMs };
    const quiet = await play("quiet", importers, quietly);
    await delay(SETTLE_MS);
    const before = coordinator.figures();
    const watch = new Watch(coordinator);
    const [flood, loaded] = await Promise.all([
      play("loaded", others, { callers: CONNECTION_COUNT, durationMs, perSecond: capacityPerSecond * times }),
      play("loaded", importers, { ...asImporters, durationMs }),
    ]);
    const { during, rssMb, looks } = await watch.end();
    await delay(SETTLE_MS);
    const after = await play("quiet again", importers, quietly);
    await delay(SETTLE_MS);
    const figures = { before, during, after: coordinator.figures(), rssMb };
    const leased = await load.leasedRuns();
    const exitCode = await coordinator.stop();
    let [ledger, inLedgerOnly] = [0, 0];
    for (const run of coordinator.ledgerRuns()) {
      ledger++;
      if (!leased.has(run)) inLedgerOnly++;
    }
    const notInLedger = leased.count - (ledger - inLedgerOnly);
    const runs = { served: runCount, ledger, repeated: leased.repeats, notInLedger, inLedgerOnly };
    return { capacityPerSecond, quiet, flood, loaded, after, figures, looks, runs, exitCode };
  } finally {
    await load?.end();
    await coordinator.remove();
  }
}

/** Looks at the coordinator while the load goes on: at its process, and as an operator does. */
class Watch {
  readonly #coordinator: LoadedCoordinator;
  readonly #watched: Promise<void>;
  #isOver = false;
  #during: ProcessFigures = { rssMb: 0, descriptorCount: 0, cpuMs: 0 };
  readonly #rssMb: number[] = [];
  #looks = { count: 0, failed: 0, slowestMs: 0 };

  constructor(coordinator: LoadedCoordinator) {
    this.#coordinator = coordinator;
    this.#watched = this.#watch();
  }

  async end() {
    this.#isOver = true;
    await this.#watched;
    const middle = Math.floor(this.#rssMb.length / 2);
    const rssMb = { firstHalf: median(this.#rssMb.slice(0, middle)), laterHalf: median(this.#rssMb.slice(middle)) };
    return { during: this.#during, rssMb, looks: this.#looks };
  }

  async #watch(): Promise<void> {
    await Promise.all([this.#watchProcess(), this.#askAsOperator()]);
  }

  async #watchProcess(): Promise<void> {
    while (!this.#isOver) {
      const { rssMb, descriptorCount, cpuMs } = this.#coordinator.figures();
      this.#rssMb.push(rssMb);
      this.#during = {
        rssMb: Math.max(this.#during.rssMb, rssMb),
        descriptorCount: Math.max(this.#during.descriptorCount, descriptorCount),
        cpuMs,
      };
      await delay(LOOK_EVERY_MS);
    }
  }

  async #askAsOperator(): Promise<void> {
    while (!this.#isOver) {
      for (const path of LOOKS) await this.#look(path);
      await delay(LOOK_EVERY_MS);
    }
  }

  async #look(path: string): Promise<void> {
    const askedMs = performance.now();
    const status = await fetch(this.#coordinator.url + path).then(
      async (response) => (await response.text()) && response.status,
      () => 0,
    );
    const { count, failed, slowestMs } = this.#looks;
    const tookMs = performance.now() - askedMs;
    this.#looks = {
      count: count + 1,
      failed: failed + (status === 200 ? 0 : 1),
      slowestMs: Math.max(slowestMs, tookMs),
    };
  }
}

/** NaN of none. */
function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
