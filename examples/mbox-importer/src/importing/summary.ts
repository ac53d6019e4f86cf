/** What an import did, and what stands in the archive afterwards: the same facts as text and as JSON. */
import type { ArchiveCounts } from "../archive/counts.js";
import type { ErrorFacts } from "../errors.js";
import type { ScannedSource } from "../sources/plan.js";
import type { Problem } from "../sources/range.js";

/** `complete`: every message of every source was looked at · `stopped`: by a signal · `failed`: by an error. */
type Outcome = "complete" | "stopped" | "failed";

export interface Summary {
  readonly outcome: Outcome;
  readonly error: ErrorFacts | null;
  readonly archive: string;
  readonly coordinator: string;
  readonly namespace: string;
  /** The store that the archive's numbers come from; null before the first one. */
  readonly storeId: string | null;
  /** Messages of this import. `notStored` are named among the problems. */
  readonly messages: { readonly stored: number; readonly alreadyThere: number; readonly notStored: number };
  readonly runs: { readonly leased: number; readonly used: number };
  readonly processes: number;
  readonly seconds: number;
  readonly callNumbersPerSecond: number;
  /** Null when the archive could not be opened. */
  readonly archiveHolds: ArchiveCounts | null;
  readonly sources: readonly ScannedSource[];
  readonly problemCount: number;
  /** The first `PROBLEM_COUNT_MAX`; all that have a row stand in its column `problem`. */
  readonly problems: readonly Problem[];
}

/** More are counted, and can be asked from the archive: a summary must fit in memory whatever the sources hold. */
export const PROBLEM_COUNT_MAX = 10_000;
