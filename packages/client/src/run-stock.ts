/** The leased runs in the buffer, lowest first. A run leaves the stock once and never comes back. */
import type { Lease } from "@callnumber/protocol/http-api";

/** One run that a lease holds. */
export interface HeldRun {
  readonly lease: Lease;
  readonly run: number;
}

export class RunStock {
  readonly #leases: { readonly lease: Lease; used: number }[] = [];

  /** Buffered runs, without the one in use. */
  get runCount(): number {
    return this.#leases.reduce((sum, { lease, used }) => sum + lease.runCount - used, 0);
  }

  add(lease: Lease): void {
    this.#leases.push({ lease, used: 0 });
  }

  /** Returns the next run to mint from, or undefined when there is none. */
  take(): HeldRun | undefined {
    const first = this.#leases[0];
    if (first === undefined) return undefined;
    const run = first.lease.firstRun + first.used++;
    if (first.used === first.lease.runCount) this.#leases.shift();
    return { lease: first.lease, run };
  }

  /** Discards all runs, and returns the leases of which none was used. */
  clear(): Lease[] {
    return this.#leases.splice(0).flatMap(({ lease, used }) => (used === 0 ? [lease] : []));
  }
}
