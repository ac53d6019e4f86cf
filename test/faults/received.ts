/**
 * What importers received, and whether any of it came twice. Exact: every run of every lease is kept. Not what a store shows as leased,
 * but what reached an importer that would have generated numbers from it.
 * Guarantees: G2 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/api";
import { ceilingAt } from "../../packages/coordinator/src/guard/ceiling.js";
import { parseStoreId } from "../../packages/coordinator/src/guard/store-id.js";
import { Counts } from "./refusal-codes.js";

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
  readonly #leaseCounts = new Counts();
  #greatest = 0;

  /** @param epsMs by how much a clock of the store may be ahead: so much higher lies the run ceiling. */
  constructor(readonly epsMs: number) {}

  note({ importer, storeId, version, firstRun, runCount, receivedAtMs }: ReceivedLease): void {
    this.#leaseCounts.add(storeId);
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
    const id = parseStoreId(storeId);
    if (id === undefined) throw new Error(`not a store id: ${storeId}`);
    const ceiling = ceilingAt(id, version, receivedAtMs + this.epsMs);
    if (last > ledgerIdOf(version, ceiling)) this.#problems.push(`run ${last} lies above the run ceiling`);
    this.#lastOf.set(process, last);
    this.#greatest = Math.max(this.#greatest, last);
  }

  get runCount(): number {
    return this.#importerOf.size;
  }

  get leaseCount(): number {
    return this.#leaseCounts.sum;
  }

  leaseCountOf(storeId: string): number {
    return this.#leaseCounts.of(storeId);
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
