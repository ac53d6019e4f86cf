/** Importer processes, what they have received, and the promises that are checked on it, run by run. */
import { isErrorCode, type Lease } from "@callnumber/protocol/api";
import type { Host } from "./host.js";
import { CoordinatorError, ceilingAt, ledgerIdOf, parseStoreId } from "./product.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

export class Importer {
  readonly name: string;
  /** The last error, until a lease succeeds again. */
  refusedWith: CoordinatorError | undefined;
  readonly #world: World;
  #lastRun: number | null = null;
  #proof: string | null = null;
  /** Counts the requests: a response to an earlier one is ignored. */
  #asked = 0;

  constructor(
    readonly index: number,
    world: World,
  ) {
    this.name = `importer ${index + 1}`;
    this.#world = world;
  }

  /** Gives up on what it asked before, if that is still in flight. Resolves when the answer is there; never, when none comes. */
  async ask(host: Pick<Host, "coordinator" | "index" | "life" | "nowMs">, runCount: number): Promise<void> {
    const world = this.#world;
    const asked = ++this.#asked;
    const { life } = host;
    try {
      const lease = await host.coordinator.lease(NAMESPACE, {
        runCount,
        nonce: `nonce-of-importer-${this.index}`,
        holder: { name: this.name, host: "mail", pid: this.index + 1, labels: {} },
        lastRun: this.#lastRun,
        proof: this.#proof,
        // On the same host, by the same clock.
        sentAtMs: host.nowMs,
      });
      // An answer to a killed process's request can't reach any importer.
      if (host.life === life) this.#receive(lease, asked, host);
    } catch (error) {
      world.tally.refuse(this.name, error);
      if (!(error instanceof CoordinatorError)) return;
      const cause = error.reason ?? error.code;
      world.refusals.set(cause, (world.refusals.get(cause) ?? 0) + 1);
      world.log(() => `${this.name} is refused by coordinator ${host.index + 1}: ${cause}`);
      if (asked === this.#asked) this.refusedWith = error;
    }
  }

  #receive(lease: Lease, asked: number, host: Pick<Host, "index">): void {
    const { tally, time, storeId } = this.#world;
    const { version, firstRun, runCount } = lease;
    const lastRun = firstRun + runCount - 1;
    const words = `${this.name} by coordinator ${host.index + 1}`;
    this.#world.log(
      () => `${words} gets runs ${firstRun} to ${lastRun}${version === 0 ? "" : ` of version ${version}`}`,
    );
    const isWaiting = asked === this.#asked;
    tally.receive(lease, time.nowMs, BOUNDS.epsMs, words, isWaiting ? this.#lastRun : undefined);
    // An importer takes no run of another store.
    if (!isWaiting || lease.storeId !== storeId) return;
    this.#lastRun = ledgerIdOf(version, lastRun);
    this.#proof = lease.proof;
    this.refusedWith = undefined;
  }
}

export type PromiseName =
  | "no run is leased twice"
  | "the runs of an importer rise"
  | "no run lies above the run ceiling"
  | "each refusal has a documented code"
  | "a record that was edited is left to the operator"
  | "after healing a lease succeeds";

export interface Violation {
  readonly promise: PromiseName;
  readonly words: string;
}

/** Runs by their ledger ids, so that those of two versions differ. */
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
      this.#violate("no run lies above the run ceiling", `${words} got run ${received.lastRun} of ${lease.storeId}`);
    }
    this.leases.push(received);
    this.runCount += runCount;
  }

  receiveCounter(counter: number, isAcknowledged: boolean): void {
    this.controlRepeats += addedTwice(this.#counters, counter);
    if (isAcknowledged) this.waitedControlRepeats += addedTwice(this.#waitedCounters, counter);
  }

  /** A request or a command failed. */
  refuse(who: string, error: unknown): void {
    if (error instanceof CoordinatorError && isErrorCode(error.code)) return;
    this.#violate("each refusal has a documented code", `${who} got ${String((error as Error).stack ?? error)}`);
  }

  /** A step wrote over a record that it can't have been decided on. */
  overwrite(words: string): void {
    this.#violate("a record that was edited is left to the operator", `written over: ${words}`);
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
