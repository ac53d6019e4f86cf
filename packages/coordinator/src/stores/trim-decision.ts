/** Whether a store trims leases off its ledger, as a pure function; lua/trim.lua says the same for Redis. */

import { type ObservedFields, PHASES, readRecord } from "../guard/record.js";
import { isRefusal, refused } from "../guard/refusals.js";
import { isMovedSeal, textOfMove } from "../guard/seals.js";
import { LEDGER_TRIM_LEASES_MAX, type LedgerTrim, type TrimmableLease } from "../store.js";

/** What the store holds. */
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
 * False when another coordinator trimmed meanwhile, or a lease was reported on.
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
      const asked = leases[index];
      return lastLedgerId === asked?.lastLedgerId && reportedAtMs === asked.reportedAtMs;
    })
  );
}

function mustBeTrimmable(fields: ObservedFields, askedStoreId: string, namespace: string): void {
  const record = readRecord(fields, namespace);
  if (isRefusal(record)) throw refused(record.word, record.detail, namespace);
  const { storeId, phase, seal } = record;
  if (storeId !== askedStoreId) throw refused("FOREIGN", storeId, namespace);
  if (phase === PHASES.sealed && isMovedSeal(seal)) throw refused("MOVED", textOfMove(seal), namespace);
  if (phase === PHASES.sealed) throw refused("FORKED", "0", namespace);
}
