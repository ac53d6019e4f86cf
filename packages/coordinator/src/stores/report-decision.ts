/** What a store keeps of a report, as a pure function; lua/report.lua says the same for Redis. */
import type { Progress } from "@callnumber/protocol/wire";
import { notTheHolder } from "../guard/refusals.js";
import type { ReportCommand } from "../store.js";

/** What stands in the ledger of the lease that a report is about. */
export interface ReportedLease {
  readonly nonce: string;
  readonly progress: Progress | null;
}

/**
 * The progress to keep: the farther of the two, closed for good once either says so. What a holder says stands above a
 * coordinator's `burnt`, whichever came first.
 * @throws CoordinatorError `not_the_holder`.
 */
export function decideReport(lease: ReportedLease, run: number, command: ReportCommand, nowMs: number): Progress {
  if (lease.nonce !== command.nonce) throw notTheHolder(run);
  const told: Progress = { run, lastSequence: command.lastSequence, state: command.state, reportedAtMs: nowMs };
  const known = lease.progress;
  if (known === null) return told;
  if (told.state === "burnt" && known.state !== "burnt") return known;
  const reportedAtMs = Math.max(nowMs, known.reportedAtMs);
  if (known.state === "burnt") return { ...told, reportedAtMs };
  const farther = isFarther(told, known) ? told : known;
  const isClosed = told.state === "closed" || known.state === "closed";
  return { ...farther, state: isClosed ? "closed" : farther.state, reportedAtMs };
}

/** Equally far counts as farther: then the later word on the state holds. */
function isFarther(told: Progress, known: Progress): boolean {
  if (told.run !== known.run) return told.run > known.run;
  return (told.lastSequence ?? -1) >= (known.lastSequence ?? -1);
}
