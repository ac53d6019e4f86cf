/** What the ledger's entry of a lease says about one of its runs. Pure. */
import { SEQUENCE_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry, RunAnswer } from "@callnumber/protocol/wire";

/** As the coordinator reads it: runs before the reported one are used up, those after it untouched; a lease is burnt as a whole. */
export function runStateIn({ progress }: LedgerEntry, run: number): Pick<RunAnswer, "state" | "lastSequence"> {
  if (progress === null) return { state: "unreported", lastSequence: null };
  if (progress.state === "burnt") return { state: "burnt", lastSequence: null };
  if (run < progress.run) return { state: "exhausted", lastSequence: SEQUENCE_MAX };
  if (run === progress.run) return { state: progress.state, lastSequence: progress.lastSequence };
  return { state: progress.state === "closed" ? "closed" : "open", lastSequence: null };
}
