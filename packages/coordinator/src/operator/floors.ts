/** What is known to be leased of a store that is to be recovered: no run that it leases afterwards may be below. */
import { ledgerIdOf, type NamedRun, runOfLedgerId, whyAmbiguous } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import type { Checkpoint } from "../guard/checkpoint.js";
import type { NamespaceRecord } from "../guard/record.js";
import type { StoreIdFields } from "../guard/store-id.js";

/** A run that is known to be leased, and the source of that. */
export interface Floor {
  readonly from: string;
  readonly ledgerId: number;
}

const NOTHING_LEASED: Floor = { from: "nothing", ledgerId: 0 };

export function greatestOf(floors: readonly Floor[]): Floor {
  return floors.reduce((one, other) => (other.ledgerId > one.ledgerId ? other : one), NOTHING_LEASED);
}

/** What the store and its checkpoint have. */
interface Evidence {
  readonly record: NamespaceRecord | undefined;
  /** Ledger id of the newest entry of the ledger, 0 for none. */
  readonly ledgerMark: number;
  readonly checkpoint: Checkpoint | undefined;
}

/** Returns what a store is known to have leased. @throws CoordinatorError `store_corrupt` for a ledger with an entry of no version. */
export function knownFloors(
  namespace: string,
  { firstVersion, firstRun }: StoreIdFields,
  { record, ledgerMark, checkpoint }: Evidence,
): Floor[] {
  const { version } = runOfLedgerId(ledgerMark);
  if (version > VERSION_MAX) {
    throw new CoordinatorError(
      "store_corrupt",
      `the newest entry of the ledger of namespace "${namespace}" has id "${ledgerMark}", which no run has: another program wrote it. Nothing was ` +
        "changed. Remove that entry, then run the command again",
    );
  }
  const before = ledgerIdOf(firstVersion, firstRun) - 1;
  const mark = record && ledgerIdOf(record.version, record.highWaterMark);
  return [
    ...(before > 0 ? [{ from: "the store id", ledgerId: before }] : []),
    ...(mark !== undefined ? [{ from: "the record", ledgerId: mark }] : []),
    ...(ledgerMark > (mark ?? 0) ? [{ from: "the ledger", ledgerId: ledgerMark }] : []),
    ...(checkpoint !== undefined ? [{ from: "the checkpoint", ledgerId: checkpoint.ledgerId }] : []),
  ];
}

/**
 * A run without its version is of version 0 only where nothing shows a later one. Where neither the record nor a checkpoint is left, nothing
 * could show it: a floor that is too low would not be noticed.
 */
export function ledgerIdOfMinRun(minRun: NamedRun, evidence: object | undefined, floors: readonly Floor[]): number {
  const { version, run } = minRun;
  if (version !== undefined) return ledgerIdOf(version, run);
  const current = runOfLedgerId(greatestOf(floors).ledgerId).version;
  const unknown =
    evidence === undefined ? `the version of run ${run} is not known: write 0/${run} (version/run)` : undefined;
  const reason = whyAmbiguous(minRun, current) ?? unknown;
  if (reason !== undefined) throw new RangeError(`--min-run ${run}: ${reason}`);
  return ledgerIdOf(0, run);
}
