/**
 * What a store decides, as pure functions: the table to read when one asks why a lease was refused.
 * The memory and the embedded store call them; lua/lease.lua and lua/report.lua say the same for Redis, and a seeded
 * script is played on both and compared step by step.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { ledgerIdOf, type Progress } from "@callnumber/protocol/wire";
import { exhausted, notTheHolder, wentBack } from "../refusals.js";
import type { GrantedRuns, LeaseCommand, NamespaceRecord, ReportCommand } from "../store.js";

/**
 * The runs to grant, computed from the old mark upwards, never back from the new one: a range cut short by the end of the
 * run space would otherwise begin below the mark.
 * @throws CoordinatorError the refusal; nothing may have been written before.
 */
export function decideLease(record: NamespaceRecord, command: LeaseCommand, nowMs: number): GrantedRuns {
  const { storeId, version, highWaterMark, namespace } = record;
  const mark = ledgerIdOf(version, highWaterMark);
  if (mark < command.floor) throw wentBack(namespace, mark, command.floor);
  const runCount = Math.min(command.runCount, RUN_MAX - highWaterMark);
  if (runCount < 1) throw exhausted(namespace, version);
  return { storeId, version, firstRun: highWaterMark + 1, runCount, leasedAtMs: Math.max(nowMs, record.changedAtMs) };
}

/** What stands in the ledger of the lease that a report is about. */
export interface ReportedLease {
  readonly nonce: string;
  readonly progress: Progress | null;
}

/**
 * The progress to keep: the farther of the two, closed for good once either says so.
 * @throws CoordinatorError `not_the_holder`.
 */
export function decideReport(lease: ReportedLease, run: number, command: ReportCommand, nowMs: number): Progress {
  if (lease.nonce !== command.nonce) throw notTheHolder(run);
  const told: Progress = { run, lastSequence: command.lastSequence, state: command.state, reportedAtMs: nowMs };
  const known = lease.progress;
  if (known === null) return told;
  const farther = isFarther(told, known) ? told : known;
  const isClosed = told.state === "closed" || known.state === "closed";
  return { ...farther, state: isClosed ? "closed" : farther.state, reportedAtMs: Math.max(nowMs, known.reportedAtMs) };
}

/** Equally far counts as farther: then the later word on the state holds. */
function isFarther(told: Progress, known: Progress): boolean {
  if (told.run !== known.run) return told.run > known.run;
  return (told.lastSequence ?? -1) >= (known.lastSequence ?? -1);
}
