/**
 * How many requests may be in flight at a time, for each kind of request. The slots of a kind are shared by all clients, and a client may take
 * one only while it has fewer than are free: one client has at most half of them, two have a third each, and the last slot is for a client
 * that has none. So no client keeps the others out, however many requests it sends.
 */
import { CoordinatorError } from "../errors.js";

/** For one client. Those who lease together wait for each other; a pool of importers that starts at once is served within milliseconds. */
export const CONCURRENT_LEASES_DEFAULT = 64;
/** For one client: more than a browser has connections. A read of the ledger may hold up a lease for one step of its way. */
const READS_AT_ONCE = 16;
/** For one client: anybody may ask whether a call number can exist, and each request asks the store. */
export const PUBLIC_READS_AT_ONCE = 8;
/** For one client. An export takes minutes, and reads as fast as its client does. */
const EXPORTS_AT_ONCE = 2;

const RETRY_AFTER_MS = 1_000;

/** One kind takes no slot of another: reads keep nobody from leasing, and exports keep nobody from reading. */
export interface ConcurrencyLimits {
  readonly leases: ConcurrencyLimit;
  readonly reads: ConcurrencyLimit;
  readonly publicReads: ConcurrencyLimit;
  readonly exports: ConcurrencyLimit;
}

export function newConcurrencyLimits(maxConcurrentLeases: number): ConcurrencyLimits {
  return {
    leases: new ConcurrencyLimit(maxConcurrentLeases, "leases and reports"),
    reads: new ConcurrencyLimit(READS_AT_ONCE, "requests"),
    publicReads: new ConcurrencyLimit(PUBLIC_READS_AT_ONCE, "requests"),
    exports: new ConcurrencyLimit(EXPORTS_AT_ONCE, "exports"),
  };
}

export class ConcurrencyLimit {
  readonly #slotCount: number;
  readonly #what: string;
  readonly #slotsOf = new Map<string, number>();
  #takenCount = 0;

  /**
   * @param countPerClient how many requests a client may have in flight that is alone; all clients together may have twice as many.
   * @param what the requests, in the plural, for the error message.
   */
  constructor(countPerClient: number, what: string) {
    this.#slotCount = 2 * countPerClient;
    this.#what = what;
  }

  hasSlotFor(client: string): boolean {
    return (this.#slotsOf.get(client) ?? 0) < this.#slotCount - this.#takenCount;
  }

  /**
   * Takes a slot. Returns what frees it; further calls of that have no effect.
   * @throws CoordinatorError `overloaded` when there is none for the client. Then nothing is taken.
   */
  take(client: string): () => void {
    if (!this.hasSlotFor(client)) {
      const message = `Request rejected: too many ${this.#what} are in flight for this token or address. Try again in a second.`;
      throw new CoordinatorError("overloaded", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    this.#takenCount++;
    this.#slotsOf.set(client, (this.#slotsOf.get(client) ?? 0) + 1);
    let isFreed = false;
    return () => {
      if (isFreed) return;
      isFreed = true;
      this.#free(client);
    };
  }

  #free(client: string): void {
    this.#takenCount--;
    const left = (this.#slotsOf.get(client) ?? 0) - 1;
    if (left > 0) this.#slotsOf.set(client, left);
    else this.#slotsOf.delete(client);
  }
}
