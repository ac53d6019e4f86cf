/**
 * What importers have received, and the promises that are checked on it, run by run: the model beside the real thing. Knows nothing of
 * servers; the control's numbers are tallied in the same way, so that both are judged alike.
 */
import { isErrorCode, type Lease } from "@callnumber/protocol/wire";
import { CoordinatorError, ceilingAt, ledgerIdOf, parseStoreId } from "./product.js";

export type PromiseName =
  | "no run is leased twice"
  | "the runs of an importer rise"
  | "no run lies above the clock line"
  | "each refusal has a documented code"
  | "after healing a lease succeeds";

export interface Violation {
  readonly promise: PromiseName;
  readonly words: string;
}

/** Runs by their ledger ids, so that those of two versions are told apart. */
export interface Received {
  readonly firstRun: number;
  readonly lastRun: number;
  readonly words: string;
}

export class Tally {
  readonly leases: Received[] = [];
  violation: Violation | undefined;
  runCount = 0;
  /** How often the plain counter gave a number that it had given before; and the counter whose writes are waited for. */
  controlRepeats = 0;
  waitedControlRepeats = 0;
  readonly #counters = new Set<number>();
  readonly #waitedCounters = new Set<number>();

  /** A lease has left a coordinator. `lastRun`: the last one that the same importer has from before, when it still waits for this one. */
  receive(lease: Lease, nowMs: number, epsMs: number, words: string, lastRun: number | null | undefined): void {
    const { version, firstRun, runCount } = lease;
    const received = {
      firstRun: ledgerIdOf(version, firstRun),
      lastRun: ledgerIdOf(version, firstRun + runCount - 1),
      words,
    };
    const before = this.leases.find(
      (other) => other.firstRun <= received.lastRun && received.firstRun <= other.lastRun,
    );
    if (before !== undefined) {
      const run = Math.max(before.firstRun, received.firstRun);
      this.#violate("no run is leased twice", `run ${run} was leased to ${before.words}, and again to ${words}`);
    }
    if (typeof lastRun === "number" && received.firstRun <= lastRun) {
      this.#violate("the runs of an importer rise", `${words} got run ${received.firstRun} after run ${lastRun}`);
    }
    const id = parseStoreId(lease.storeId);
    const line = id === undefined ? 0 : ceilingAt(id, version, nowMs + epsMs);
    if (received.lastRun > ledgerIdOf(version, line)) {
      this.#violate("no run lies above the clock line", `${words} got run ${received.lastRun} of ${lease.storeId}`);
    }
    this.leases.push(received);
    this.runCount += runCount;
  }

  receiveCounter(counter: number, isAcknowledged: boolean): void {
    this.controlRepeats += addedTwice(this.#counters, counter);
    if (isAcknowledged) this.waitedControlRepeats += addedTwice(this.#waitedCounters, counter);
  }

  /** Somebody was told an error. */
  refuse(who: string, error: unknown): void {
    if (error instanceof CoordinatorError && isErrorCode(error.code)) return;
    this.#violate("each refusal has a documented code", `${who} was told ${String((error as Error).stack ?? error)}`);
  }

  /** After healing nothing was leased in the time that is promised. */
  miss(words: string): void {
    this.#violate("after healing a lease succeeds", words);
  }

  #violate(promise: PromiseName, words: string): void {
    this.violation ??= { promise, words };
  }
}

function addedTwice(numbers: Set<number>, number: number): number {
  if (numbers.has(number)) return 1;
  numbers.add(number);
  return 0;
}
