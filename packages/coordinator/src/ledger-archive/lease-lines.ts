/** The leases of one block, oldest first, each taken apart when it is first asked for: finding one among them needs few. */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { leaseIn, linesInBlock } from "./archive-file.js";
import { firstIndex } from "./first-index.js";

export class LeaseLines {
  readonly #name: string;
  readonly #lines: readonly string[];
  readonly #leases: (LedgerEntry | undefined)[] = [];

  /** @throws CoordinatorError `ledger_archive_unavailable` for a damaged one. So do all below. */
  constructor(name: string, member: Uint8Array) {
    this.#name = name;
    this.#lines = linesInBlock(name, member);
  }

  get length(): number {
    return this.#lines.length;
  }

  /** Undefined beyond the last. */
  at(index: number): LedgerEntry | undefined {
    const line = this.#lines[index];
    if (line === undefined) return undefined;
    this.#leases[index] ??= leaseIn(this.#name, line);
    return this.#leases[index];
  }

  /** Index of the first lease that holds, where all later ones hold too; the length when none does. */
  firstIndex(holds: (lease: LedgerEntry) => boolean): number {
    return firstIndex(this.length, (index) => holds(this.at(index) as LedgerEntry));
  }
}
