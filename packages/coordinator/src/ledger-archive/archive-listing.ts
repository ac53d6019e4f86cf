/** The files of one archived ledger by their names: which cover a run, and whether one is missing. Pure. */
import { type ArchiveName, nameIn } from "./archive-name.js";

export class ArchiveListing {
  /** By the ids that they begin with. They may overlap: a store that was restored is archived once more. */
  readonly segments: readonly ArchiveName[];
  /** The same by the ids that they end with. */
  readonly segmentsByEnd: readonly ArchiveName[];
  readonly late: readonly ArchiveName[];

  constructor(names: readonly string[]) {
    const files = names
      .map(nameIn)
      .filter((name) => name !== undefined)
      .sort((one, other) => one.first - other.first || one.last - other.last || (one.name < other.name ? -1 : 1));
    this.segments = files.filter(({ kind }) => kind === "segment");
    this.segmentsByEnd = [...this.segments].sort((one, other) => one.last - other.last);
    this.late = files.filter(({ kind }) => kind === "late");
  }

  covering(ledgerId: number): readonly ArchiveName[] {
    return this.segments.filter(({ first, last }) => first <= ledgerId && ledgerId <= last);
  }

  /** The greatest ledger id that a segment covers; 0 for none. */
  get last(): number {
    return this.segmentsByEnd.at(-1)?.last ?? 0;
  }

  /** The first ledger id from `first` to `last` that no segment covers; undefined when they cover all. */
  gapWithin(first: number, last: number): number | undefined {
    let next = first;
    for (const segment of this.segments) {
      if (next > last || segment.first > next) break;
      next = Math.max(next, segment.last + 1);
    }
    return next > last ? undefined : next;
  }
}
