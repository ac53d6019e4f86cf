/**
 * What changes a ledger besides leasing and trimming: reports, and leases of another store. Decided here on what the store holds, and written
 * only if it still holds that; else decided again.
 */
import { ledgerIdOf, nameOfLedgerId, type Progress, runOfLedgerId } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { GAP_MS } from "../guard/clocks.js";
import { notTheHolder, refused } from "../guard/refusals.js";
import { withoutLease } from "../retention/trimmed-leases.js";
import type { RecordedLedger, Store } from "../stores/store.js";
import { isSameLease, lastLedgerIdOf } from "./lease-identity.js";
import { findLease } from "./read-ledger.js";

/** A bound for accidents only: each time, another report was recorded, or another process imported. */
const TRIES_MAX = 1_000;

/** How far a holder has come in a run, for its ledger entry. */
export interface ReportCommand {
  readonly nonce: string;
  readonly lastSequence: number | null;
  readonly state: Progress["state"];
}

/**
 * Records the progress of a lease. Progress never goes back, and a closed lease stays closed, in whatever order reports arrive.
 * @throws CoordinatorError `run_not_leased`, `report_expired` (the lease was trimmed), `holder_mismatch` (another nonce than the lease's), or as
 *   `Store.readNamespace`: nothing is changed.
 */
export async function recordReport(
  store: RecordedLedger & Pick<Store, "setProgress">,
  namespace: string,
  ledgerId: number,
  command: ReportCommand,
  now: () => number = Date.now,
): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const [lease, record] = await Promise.all([findLease(store, namespace, ledgerId), store.readNamespace(namespace)]);
    if (lease === undefined) throw await withoutLeaseToReport(store, namespace, ledgerId);
    const progress = decideReport(lease, runOfLedgerId(ledgerId).run, command, timeNear(record.changedAtMs, now()));
    if (await store.setProgress(namespace, lease, progress)) return;
  }
  const message = `other reports on run ${nameOfLedgerId(ledgerId)} of namespace "${namespace}" came first ${TRIES_MAX} times; try again`;
  throw new CoordinatorError("overloaded", message);
}

/** A coordinator whose clock is wrong may not lease, and what it reports must not look as if it came from another year. */
function timeNear(changedAtMs: number, nowMs: number): number {
  return Math.min(Math.max(nowMs, changedAtMs - GAP_MS), changedAtMs + GAP_MS);
}

/** Why a run has no lease to report on. */
async function withoutLeaseToReport(
  store: RecordedLedger,
  namespace: string,
  ledgerId: number,
): Promise<CoordinatorError> {
  const cause = await withoutLease(store, namespace, ledgerId);
  if (cause.code !== "lease_trimmed") return cause;
  const what = `the report on run ${nameOfLedgerId(ledgerId)} of namespace "${namespace}" is too late: its lease was trimmed from the store`;
  return new CoordinatorError("report_expired", `${what}. Nothing was changed`, { cause });
}

/**
 * The progress to keep of a lease after a report: the farther of the two, closed permanently once either is. A holder's report
 * overrides a coordinator's `discarded`, whichever came first.
 * @throws CoordinatorError `holder_mismatch`.
 */
function decideReport(
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

/**
 * Imports leases of another store, oldest first, into a ledger that has no record yet: the record comes last, so that nothing is leased before
 * the ledger is complete. Leases that were imported before stay as they are.
 * @throws CoordinatorError `store_id_mismatch` when the ledger holds another lease in that place, `namespace_exists` when there is a record
 *   and a lease is missing: none of the leases was added. `store_unavailable`: it is not known whether they were.
 */
export async function importLeases(
  store: Pick<Store, "read" | "leases" | "appendLeases">,
  namespace: string,
  leases: readonly LedgerEntry[],
): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const { record, ledgerMark } = (await store.read(namespace)).keys;
    const missing = await missingIn(store, namespace, leases, ledgerMark);
    if (missing.length === 0) return;
    if (record !== "none") throw refused("ALREADY", "the record exists", namespace);
    if (await store.appendLeases(namespace, ledgerMark, missing)) return;
  }
  throw new CoordinatorError(
    "overloaded",
    `the ledger of namespace "${namespace}" was changed ${TRIES_MAX} times meanwhile; try again`,
  );
}

/** The leases that a ledger lacks. @throws CoordinatorError `store_id_mismatch` when they can't be appended to it. */
async function missingIn(
  store: Pick<Store, "leases">,
  namespace: string,
  leases: readonly LedgerEntry[],
  newestLedgerId: number,
): Promise<readonly LedgerEntry[]> {
  const [first] = leases;
  if (first === undefined) return [];
  const held = await store.leases(namespace, {
    from: lastLedgerIdOf(first),
    direction: "oldest_first",
    limit: leases.length,
  });
  const known = new Map(held.map((lease) => [lastLedgerIdOf(lease), lease]));
  let newest = newestLedgerId;
  return leases.filter((lease) => {
    const last = lastLedgerIdOf(lease);
    const copy = known.get(last);
    if (copy === undefined ? newest > last - lease.runCount : !isSameLease(copy, lease))
      throw new CoordinatorError(
        "store_id_mismatch",
        `the ledger of namespace "${namespace}" has another lease at run ${nameOfLedgerId(last, VERSION_MAX)}: this ledger is another store's. ` +
          "Nothing was written. Remove that store if no archive has its numbers, or choose an empty place",
      );
    if (copy === undefined) newest = last;
    return copy === undefined;
  });
}
