/** What the ledger's entry of a lease says about one of its runs. Pure. */
import { SEQUENCE_MAX } from "@callnumber/protocol/codec";
import type { KnownRunState, LedgerEntry } from "@callnumber/protocol/wire";

export interface RunStateAnswer {
  readonly state: KnownRunState;
  readonly lastSequence: number | null;
}

/**
 * A holder uses the runs of a lease in their order: those before the reported one are used up, those after it untouched. A lease
 * is burnt as a whole.
 */
export function runStateIn({ progress }: LedgerEntry, run: number): RunStateAnswer {
  if (progress === null) return { state: "unreported", lastSequence: null };
  if (progress.state === "burnt") return { state: "burnt", lastSequence: null };
  if (run < progress.run) return { state: "exhausted", lastSequence: SEQUENCE_MAX };
  if (run === progress.run) return { state: progress.state, lastSequence: progress.lastSequence };
  return { state: progress.state === "closed" ? "closed" : "open", lastSequence: null };
}
