/**
 * What a store adds to, trims from and keeps of its ledger: the decisions, as pure functions. lua/import.lua, lua/trim.lua and
 * lua/report.lua make the same decisions for Redis.
 */

import { ledgerIdOf, nameOfLedgerId, type Progress } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { type ObservedFields, PHASES, readRecord } from "../guard/record.js";
import { isRefusal, notTheHolder, refused } from "../guard/refusals.js";
import { isMovedSeal, textOfMove } from "../guard/seals.js";
import { isSameLease, lastLedgerIdOf } from "../ledger/lease-identity.js";
import { LEDGER_TRIM_LEASES_MAX, type LedgerTrim, type ReportCommand, type TrimmableLease } from "./store.js";

/** The ledger that leases of another store are imported into. */
export interface ImportTarget {
  readonly namespace: string;
  readonly hasRecord: boolean;
  /** 0 for none. */
  readonly newestLedgerId: number;
  /** The lease that holds a ledger id. */
  readonly leaseAt: (ledgerId: number) => LedgerEntry | undefined;
}

/**
 * The leases, of those given oldest first, that the target does not have yet.
 * @throws CoordinatorError `store_id_mismatch` when the target has another lease in the place of one of them;
 *   `namespace_exists` when one is missing in a ledger that has its record, and so is complete.
 */
export function leasesToAppend(target: ImportTarget, leases: readonly LedgerEntry[]): readonly LedgerEntry[] {
  const { namespace, hasRecord, leaseAt } = target;
  let newest = target.newestLedgerId;
  return leases.filter((lease) => {
    const last = lastLedgerIdOf(lease);
    const known = leaseAt(last);
    if (known !== undefined ? !isSameLease(known, lease) : newest > last - lease.runCount) {
      throw refused("FOREIGN", `its ledger holds another lease at run ${nameOfLedgerId(last, VERSION_MAX)}`, namespace);
    }
    if (known !== undefined) return false;
    if (hasRecord) throw refused("ALREADY", "the record exists", namespace);
    newest = last;
    return true;
  });
}

/**
 * The progress to keep of a lease after a report: the farther of the two, closed permanently once either is. A holder's report
 * overrides a coordinator's `discarded`, whichever came first.
 * @throws CoordinatorError `holder_mismatch`.
 */
export function decideReport(
  lease: Pick<LedgerEntry, "version" | "nonce" | "progress">,
  run: number,
  command: ReportCommand,
  nowMs: number,
): Progress {
  if (lease.nonce !== command.nonce) throw notTheHolder(ledgerIdOf(lease.version, run));
  const reported: Progress = { run, lastSequence: command.lastSequence, state: command.state, reportedAtMs: nowMs };
  const known = lease.progress;
  if (known === null) return reported;
  if (reported.state === "discarded" && known.state !== "discarded") return known;
  const reportedAtMs = Math.max(nowMs, known.reportedAtMs);
  if (known.state === "discarded") return { ...reported, reportedAtMs };
  const farther = isFarther(reported, known) ? reported : known;
  const isClosed = reported.state === "closed" || known.state === "closed";
  return { ...farther, state: isClosed ? "closed" : farther.state, reportedAtMs };
}

/** Equally far counts as farther: then the state of the later report is kept. */
function isFarther(reported: Progress, known: Progress): boolean {
  if (reported.run !== known.run) return reported.run > known.run;
  return (reported.lastSequence ?? -1) >= (known.lastSequence ?? -1);
}

/** The ledger to be trimmed, as the store holds it. */
export interface LedgerToTrim {
  readonly namespace: string;
  /** Undefined or empty for no record. */
  readonly fields: ObservedFields | undefined;
  readonly trimmedThrough: number;
  /** 0 for none. */
  readonly newestLedgerId: number;
  /** Its leases up to `LedgerTrim.through`, oldest first, at most `LEDGER_TRIM_LEASES_MAX + 1`. */
  readonly leases: readonly TrimmableLease[];
}

/**
 * Whether the leases may be trimmed: false when another coordinator trimmed meanwhile, or a lease was reported on.
 * @throws CoordinatorError for a record that can't be read, another store, a sealed one. Misuse is a broken invariant: the guard
 *   reads the newest lease, so that one is never trimmed.
 */
export function decideTrim(found: LedgerToTrim, trim: LedgerTrim): boolean {
  const { namespace, fields, trimmedThrough, newestLedgerId } = found;
  const { through, leases } = trim;
  const isOrdered = trim.trimmedThrough <= through && leases.every(({ lastLedgerId }) => lastLedgerId <= through);
  if (!isOrdered || leases.length > LEDGER_TRIM_LEASES_MAX) {
    throw refused("MISUSE", "trim takes leases up to where it trims", namespace);
  }
  if (fields !== undefined && Object.keys(fields).length > 0) mustBeTrimmable(fields, trim.storeId, namespace);
  if (trimmedThrough !== trim.trimmedThrough) return false;
  if (leases.length > 0 && through >= newestLedgerId) {
    throw refused("MISUSE", "the newest lease is never trimmed", namespace);
  }
  return (
    found.leases.length === leases.length &&
    found.leases.every(({ lastLedgerId, reportedAtMs }, index) => {
      const expected = leases[index];
      return lastLedgerId === expected?.lastLedgerId && reportedAtMs === expected.reportedAtMs;
    })
  );
}

function mustBeTrimmable(fields: ObservedFields, expectedStoreId: string, namespace: string): void {
  const record = readRecord(fields, namespace);
  if (isRefusal(record)) throw refused(record.code, record.detail, namespace);
  const { storeId, phase, seal } = record;
  if (storeId !== expectedStoreId) throw refused("FOREIGN", storeId, namespace);
  if (phase === PHASES.sealed && isMovedSeal(seal)) throw refused("MOVED", textOfMove(seal), namespace);
  if (phase === PHASES.sealed) throw refused("FORKED", "0", namespace);
}
