/**
 * Does the steps of one namespace, one after the other. What a step does is decided here, on the state of the store that was seen last; the
 * store writes it only where that still holds, and returns its state where it does not. Then the step is decided again.
 * A refusal counts only when it was decided on a state that the store has just returned: an old one may be past.
 * Leases that wait at the same time share one write, as if each had come alone, one after the other.
 * Guarantees: G1 (docs/guarantees.md).
 */
import { hostname } from "node:os";
import process from "node:process";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { CoordinatorError } from "../errors.js";
import { markIdOf, restsOn, type StepContext } from "./checks.js";
import { type Bounds, DEFAULT_BOUNDS } from "./clocks.js";
import type { Outcome, RecordAfter, StepCommand } from "./commands.js";
import { type Decide, decide, type Written } from "./decide.js";
import { batchLengthOf, isShareable, isWanted, type QueuedStep, type StepSignal } from "./queued-steps.js";
import { fieldsOf, type NamespaceState, readRecord, storedFields } from "./record.js";
import { isRefusal, type Refusal, refusal, refused } from "./refusals.js";
import { type Change, type Expected, isApplied, type Observed, type StepStore } from "./step-store.js";
import { freshNonce, verifyOutcome } from "./verify-outcome.js";

export interface NamespaceStepsOptions {
  readonly store: Pick<StepStore, "read" | "apply" | "isExclusive">;
  readonly namespace: string;
  /** The coordinator's clock, ms. */
  readonly now: () => number;
  readonly bounds: ReplaceableBounds;
}

/** With other decisions than those of decide.ts: they show what the tests of the guard catch. */
export type ReplaceableBounds = Bounds & { readonly decide?: Decide };

/** How often a step is decided before it is given up: each time the store had changed meanwhile, or was slow to begin. */
const TRIES_MAX = 16;

/** A state of the store. */
interface Seen extends Observed {
  /** The record in it, where it is known to be sound. */
  readonly record: NamespaceState | undefined;
  /** When the store was there by the coordinator's clock, ms; undefined: a while ago. */
  readonly atMs: number | undefined;
}

interface Granted {
  readonly step: QueuedStep;
  readonly written: Written;
}

export class NamespaceSteps {
  readonly #options: NamespaceStepsOptions;
  #queue: QueuedStep[] = [];
  #isBusy = false;
  #seen: Seen | undefined;

  constructor(options: NamespaceStepsOptions) {
    this.#options = options;
  }

  /**
   * Does a step, unless its signal is aborted before it is sent. What it did must be verified before it is used.
   * @throws CoordinatorError for a refusal: nothing is changed. `store_unavailable`: it is not known whether it was done.
   */
  do(command: StepCommand, signal?: StepSignal): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      // NaN passes every comparison with "not".
      const isSound = Object.values(command).every((value) => typeof value !== "number" || isWhole(value));
      if (!isSound) return reject(this.#errorFor(refusal("MISUSE", "a number of the step is not whole")));
      this.#queue.push({ command, signal, resolve, reject });
      if (!this.#isBusy) void this.#doAll();
    });
  }

  /** Returns why a step would be refused now, undefined if it would be done. Changes nothing. @throws CoordinatorError `store_unavailable`. */
  async refusalOf(command: StepCommand): Promise<CoordinatorError | undefined> {
    const decided = this.#decideOn(this.#contextOf(await this.#read()), command);
    return isRefusal(decided) ? this.#errorFor(decided) : undefined;
  }

  async #doAll(): Promise<void> {
    this.#isBusy = true;
    while (this.#queue.length > 0) {
      // Leases of the same event-loop iteration are done together.
      await endOfTurn();
      const batch = this.#queue.splice(0, batchLengthOf(this.#queue));
      try {
        await this.#doBatch(batch);
      } catch (error) {
        this.#seen = undefined;
        // No caller may wait forever. Promises that are settled already stay so.
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isBusy = false;
  }

  /** One step, or several that may share a change. */
  async #doBatch(batch: readonly QueuedStep[]): Promise<void> {
    const { store, namespace, now } = this.#options;
    let waiting = batch;
    // Rare steps need not be fast.
    let seen = isShareable(batch[0]) ? this.#seen : undefined;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      seen ??= await this.#read();
      waiting = waiting.filter(isWanted);
      const context = this.#contextOf(seen);
      const { granted, rejected } = this.#decideAll(context, waiting);
      if (rejected.length > 0 && seen.atMs === undefined) {
        seen = undefined;
        continue;
      }
      for (const { step, cause } of rejected) step.reject(this.#errorFor(cause));
      const last = granted.at(-1);
      if (last === undefined) return;
      waiting = granted.map(({ step }) => step);
      const expected = this.#expectationOf(context, granted);
      const change = this.#changeOf(context, granted, last.written);
      if (!isShareable(waiting[0])) this.#assertReadable(change.record);
      const sentMs = now();
      const answer = await store.apply(namespace, expected, change);
      if (!isApplied(answer)) {
        seen = this.#justSeen(answer, sentMs);
        continue;
      }
      const { highWaterMark, changedAtMs, movedAside, ...checked } = answer;
      const record = { ...last.written.record, highWaterMark, changedAtMs };
      this.#seen = stateAfter(
        seen,
        record,
        granted.some(({ written }) => written.runCount > 0),
      );
      let mark = highWaterMark - granted.reduce((sum, { written }) => sum + written.runCount, 0);
      for (const { step, written } of granted) {
        mark += written.runCount;
        const after = { ...recordAfter(record), highWaterMark: mark };
        step.resolve({ after, runCount: written.runCount, ...checked, ...(movedAside.length > 0 && { movedAside }) });
      }
      return;
    }
    throw refused("RACED", String(seen?.record?.generation ?? 0), namespace);
  }

  async #read(): Promise<Seen> {
    const { store, namespace, now } = this.#options;
    const sentMs = now();
    return this.#justSeen(await store.read(namespace), sentMs);
  }

  /** The store was there between question and answer: its clock is compared with the nearest instant of ours. */
  #justSeen(observed: Observed, sentMs: number): Seen {
    const atMs = Math.min(Math.max(observed.server.timeMs, sentMs), this.#options.now());
    return { ...observed, record: undefined, atMs };
  }

  #contextOf({ keys, server, record, atMs }: Seen): StepContext {
    const { namespace, now, bounds } = this.#options;
    if (atMs !== undefined) return { namespace, keys, server, nowMs: atMs, bounds, record };
    // Its clock is not known, and must be within eps: taken for the earlier one, which leases by the lower ceiling.
    const nowMs = now();
    return { namespace, keys, server: { ...server, timeMs: nowMs - bounds.epsMs }, nowMs, bounds, record };
  }

  #decideOn(context: StepContext, command: StepCommand): Written | Refusal {
    return (this.#options.bounds.decide ?? decide)(context, command);
  }

  /** Each on the state that the ones before it leave. */
  #decideAll(context: StepContext, steps: readonly QueuedStep[]) {
    const granted: Granted[] = [];
    const rejected: { readonly step: QueuedStep; readonly cause: Refusal }[] = [];
    let { record } = context;
    for (const step of steps) {
      const decided = this.#decideOn({ ...context, record }, step.command);
      if (isRefusal(decided)) rejected.push({ step, cause: decided });
      else {
        granted.push({ step, written: decided });
        record = decided.record;
      }
    }
    return { granted, rejected };
  }

  /** What a change must find, so that it would be decided alike: see `restsOn`. */
  #expectationOf(context: StepContext, granted: readonly Granted[]): Expected {
    const { keys, server, bounds } = context;
    const nowMs = this.#options.now();
    let runsBefore = 0;
    const rests = granted.map(({ step, written }) => {
      const { rising, ...rest } = restsOn(context, written.record, step.command);
      // The store compares the mark before the first of them.
      const before = runsBefore;
      runsBefore += written.runCount;
      return { ...rest, rising: rising && { ...rising, markIdMin: rising.markIdMin - before } };
    });
    const [first] = rests;
    const record = granted[0]?.written.record;
    if (first === undefined || record === undefined) throw new Error("broken invariant: a change of nothing");
    return {
      found: { keys, server },
      replicasMax: first.replicasMax ?? record.nodeCount - 1,
      timeMinMs: nowMs - bounds.epsMs,
      timeMaxMs: nowMs + first.storeAheadMaxMs,
      rising: first.rising && {
        nowMs,
        ...first.rising,
        markIdMin: Math.max(...rests.map(({ rising }) => rising?.markIdMin ?? 0)),
        highWaterMarkMax: Math.min(...rests.map(({ rising }) => rising?.highWaterMarkMax ?? RUN_MAX)),
      },
    };
  }

  #changeOf(
    context: StepContext,
    granted: readonly Granted[],
    { record, movesAside = [], persists = false, acceptsCopy = false }: Written,
  ): Change {
    const leases = granted.flatMap(({ step: { command }, written: { runCount } }) =>
      command.step === "lease" ? [{ ...command, runCount }] : [],
    );
    return {
      record,
      movesAside,
      persists,
      acceptsCopy,
      leases,
      skipped: skippedIn(context, granted[0]?.step.command, record),
    };
  }

  /** What could be written, but never be read again, is not written. */
  #assertReadable(record: NamespaceState): void {
    const read = readRecord(storedFields(record), this.#options.namespace);
    if (isRefusal(read)) throw this.#errorFor(refusal("MISUSE", read.detail));
  }

  #errorFor({ code, detail }: Refusal): CoordinatorError {
    return refused(code, detail, this.#options.namespace);
  }
}

export type StepOptions = Partial<Pick<NamespaceStepsOptions, "now" | "bounds">>;

/**
 * Does one step of an operator's command.
 * @throws CoordinatorError as `NamespaceSteps.do` and `verifyOutcome`.
 */
export async function doStep(
  store: NamespaceStepsOptions["store"],
  namespace: string,
  command: StepCommand,
  { now = Date.now, bounds = DEFAULT_BOUNDS }: StepOptions = {},
): Promise<Outcome> {
  const outcome = await new NamespaceSteps({ store, namespace, now, bounds }).do(command);
  verifyOutcome(outcome);
  return outcome;
}

/** Returns why a step would be refused now, as `NamespaceSteps.refusalOf`. */
export function refusalOfStep(
  store: NamespaceStepsOptions["store"],
  namespace: string,
  command: StepCommand,
  { now = Date.now, bounds = DEFAULT_BOUNDS }: StepOptions = {},
): Promise<CoordinatorError | undefined> {
  return new NamespaceSteps({ store, namespace, now, bounds }).refusalOf(command);
}

function isWhole(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function recordAfter({
  storeId,
  version,
  highWaterMark,
  changedAtMs,
  epoch,
  generation,
  nodeCount,
}: NamespaceState): RecordAfter {
  return { storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount };
}

/** What the store holds after a change, as far as others have not changed it. */
function stateAfter({ keys, server }: Seen, record: NamespaceState, hasLeased: boolean): Seen {
  const added = hasLeased ? ({ ledger: "stream", ledgerMark: markIdOf(record), holders: "hash" } as const) : {};
  return {
    // Without a checksum, which a next step that rests on these does not compare.
    keys: { ...keys, record: "hash", fields: fieldsOf(record), expires: false, ...added },
    server,
    record,
    atMs: undefined,
  };
}

/** An entry for the runs that a recovery skipped, where the store is known to have lost nothing. */
function skippedIn(
  { keys, namespace }: StepContext,
  command: StepCommand | undefined,
  { version, highWaterMark: lastRun, changedAtMs: leasedAtMs }: NamespaceState,
): LedgerEntry | undefined {
  if (command?.step !== "confirm" || command.skippedBy === undefined) return undefined;
  const before = readRecord(keys.fields, namespace);
  const runCount = isRefusal(before) ? 0 : lastRun - before.highWaterMark;
  if (runCount === 0) return undefined;
  return {
    version,
    firstRun: lastRun - runCount + 1,
    runCount,
    leasedAtMs,
    holder: { name: "recovery", host: hostname(), pid: process.pid, labels: {} },
    coordinator: command.skippedBy,
    nonce: freshNonce(),
    progress: { run: lastRun, lastSequence: null, state: "skipped", reportedAtMs: leasedAtMs },
  };
}
