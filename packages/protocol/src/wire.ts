/** The HTTP API between client and coordinator. Loads no zod: the shapes that `schemas.ts` defines are types only. */
import { SEQUENCE_MAX } from "./layout.js";
import type { LedgerEntry, RunResponse } from "./schemas.js";

export * from "./http-api.js";
export * from "./run-name.js";
export type {
  CallNumberHint,
  GuardStatus,
  InspectResponse,
  KnownRunState,
  LastRecovery,
  LeaseNeighbors,
  LedgerEntry,
  NotedState,
  Progress,
  RunResponse,
  RunsResponse,
  StatusResponse,
  TrimmedLeases,
  UseRate,
} from "./schemas.js";

/**
 * Returns what the ledger entry of a lease shows of one of its runs. A holder uses the runs of a lease in their order: those before the
 * reported one are used up, those after it untouched. A lease is discarded as a whole.
 */
export function runStateIn({ progress }: LedgerEntry, run: number): Pick<RunResponse, "state" | "lastSequence"> {
  if (progress === null) return { state: "unreported", lastSequence: null };
  if (progress.state === "discarded" || progress.state === "skipped")
    return { state: progress.state, lastSequence: null };
  if (run < progress.run) return { state: "exhausted", lastSequence: SEQUENCE_MAX };
  if (run === progress.run) return { state: progress.state, lastSequence: progress.lastSequence };
  return { state: progress.state === "closed" ? "closed" : "open", lastSequence: null };
}
