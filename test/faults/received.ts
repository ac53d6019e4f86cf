/**
 * What importers received, and whether any of it came twice. Exact: every run of every lease is kept. Not what a store shows as leased,
 * but what reached an importer that would have made numbers from it.
 * Guarantees: G2 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";

export interface ReceivedLease {
  readonly importer: string;
  readonly storeId: string;
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly receivedAtMs: number;
}

/** Runs are kept by their ledger ids, so that those of two versions differ. The runs of an importer rise in each store. */
export class Received {
  readonly #importerOf = new Map<number, string>();
  readonly #lastOf = new Map<string, number>();
  readonly #problems: string[] = [];
  readonly #leaseCounts = new Map<string, number>();
  #leaseCount = 0;
  #greatest = 0;

  /** @param ceilingAt the greatest run of a store's version that may be leased at an instant. */
  constructor(private readonly ceilingAt: (storeId: string, version: number, timeMs: number) => number) {}

  note({ importer, storeId, version, firstRun, runCount, receivedAtMs }: ReceivedLease): void {
    this.#leaseCount++;
    this.#leaseCounts.set(storeId, this.leaseCountOf(storeId) + 1);
    const first = ledgerIdOf(version, firstRun);
    const last = first + runCount - 1;
    for (let run = first; run <= last; run++) {
      const holder = this.#importerOf.get(run);
      if (holder !== undefined) this.#problems.push(`run ${run} was leased to ${holder} and to ${importer}`);
      this.#importerOf.set(run, importer);
    }
    const process = `${importer} ${storeId}`;
    const before = this.#lastOf.get(process) ?? 0;
    if (first <= before) this.#problems.push(`${importer} got run ${first} after run ${before}`);
    if (last > ledgerIdOf(version, this.ceilingAt(storeId, version, receivedAtMs)))
      this.#problems.push(`run ${last} lies above the run ceiling`);
    this.#lastOf.set(process, last);
    this.#greatest = Math.max(this.#greatest, last);
  }

  get runCount(): number {
    return this.#importerOf.size;
  }

  get leaseCount(): number {
    return this.#leaseCount;
  }

  leaseCountOf(storeId: string): number {
    return this.#leaseCounts.get(storeId) ?? 0;
  }

  /** Ledger id of the greatest run. */
  get greatest(): number {
    return this.#greatest;
  }

  /** Runs that came twice, that did not rise, or that lie above the ceiling. */
  get problems(): readonly string[] {
    return this.#problems;
  }
}

/** What waits for leases of one importer. */
export class LeaseWaiters {
  #waiters: (() => void)[] = [];

  /** Resolves when the next lease has come that was requested after this call. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      // The one in flight may have been granted before.
      this.#waiters.push(() => this.#waiters.push(resolve));
    });
  }

  /** A lease has come. */
  wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}
