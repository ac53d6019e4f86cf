/** The files of one archived ledger by their names: which cover a run, and whether one is missing. Pure. */
import { type ArchiveName, nameIn } from "./archive-name.js";
import { firstIndex } from "./first-index.js";

export class ArchiveListing {
  /** By the ids that they begin with. They may overlap: a store that was restored is archived once more. */
  readonly segments: readonly ArchiveName[];
  /** The same by the ids that they end with. */
  readonly segmentsByEnd: readonly ArchiveName[];
  readonly late: readonly ArchiveName[];
  /** For each segment the greatest id that it or one before it ends with. */
  readonly #reaches: readonly number[];

  constructor(names: readonly string[]) {
    const files = names
      .map(nameIn)
      .filter((name) => name !== undefined)
      .sort((one, other) => one.first - other.first || one.last - other.last || (one.name < other.name ? -1 : 1));
    this.segments = files.filter(({ kind }) => kind === "segment");
    this.segmentsByEnd = [...this.segments].sort((one, other) => one.last - other.last);
    let reach = 0;
    this.#reaches = this.segments.map(({ last }) => {
      reach = Math.max(reach, last);
      return reach;
    });
    this.late = files.filter(({ kind }) => kind === "late");
  }

  covering(ledgerId: number): readonly ArchiveName[] {
    const found: ArchiveName[] = [];
    for (let at = this.#countUpTo(ledgerId) - 1; at >= 0 && (this.#reaches[at] as number) >= ledgerId; at--) {
      const segment = this.segments[at] as ArchiveName;
      if (segment.last >= ledgerId) found.push(segment);
    }
    return found;
  }

  /** The greatest ledger id that a segment covers; 0 for none. */
  get last(): number {
    return this.segmentsByEnd.at(-1)?.last ?? 0;
  }

  /** The first ledger id from `first` to `last` that no segment covers; undefined when they cover all. */
  gapWithin(first: number, last: number): number | undefined {
    let next = first;
    while (next <= last) {
      const reach = this.#reaches[this.#countUpTo(next) - 1] ?? 0;
      if (reach < next) return next;
      next = reach + 1;
    }
    return undefined;
  }

  /** How many segments begin at a ledger id or before. */
  #countUpTo(ledgerId: number): number {
    return firstIndex(this.segments.length, (at) => (this.segments[at] as ArchiveName).first > ledgerId);
  }
}
