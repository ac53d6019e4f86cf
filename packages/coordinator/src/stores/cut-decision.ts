/** Whether a store lets go of archived leases, as a pure function; lua/cut.lua says the same for Redis. */
import { isMovedSeal, textOfMove } from "../guard/moved-seal.js";
import { type FoundFields, PHASES, readRecord } from "../guard/record.js";
import { isRefusal } from "../guard/refusal.js";
import { refused } from "../refusals.js";
import { LEDGER_CUT_LEASES_MAX, type LedgerCut } from "../store.js";

/** What stands in the store. */
export interface CutLedger {
  readonly namespace: string;
  /** Undefined or empty for no record. */
  readonly fields: FoundFields | undefined;
  readonly archivedThrough: number;
  /** 0 for none. */
  readonly newestLedgerId: number;
}

/**
 * False when somebody else has cut meanwhile.
 * @throws CoordinatorError for a record that can't be read, another store, a sealed one. Misuse is a broken invariant: the guard
 *   looks at the newest lease, so that one is never cut.
 */
export function decideCut({ namespace, fields, archivedThrough, newestLedgerId }: CutLedger, cut: LedgerCut): boolean {
  const { through, leases } = cut;
  const isOrdered = cut.archivedThrough <= through && leases.every(({ lastLedgerId }) => lastLedgerId <= through);
  if (!isOrdered || leases.length > LEDGER_CUT_LEASES_MAX) {
    throw refused("MISUSE", "cut takes leases up to where it cuts", namespace);
  }
  const record = recordIn(fields, namespace);
  if (record !== undefined) {
    const { storeId, phase, seal } = record;
    if (storeId !== cut.storeId) throw refused("FOREIGN", storeId, namespace);
    if (phase === PHASES.sealed && isMovedSeal(seal)) throw refused("MOVED", textOfMove(seal), namespace);
    if (phase === PHASES.sealed) throw refused("FORKED", "0", namespace);
  }
  if (archivedThrough !== cut.archivedThrough) return false;
  if (through >= newestLedgerId) throw refused("MISUSE", "the newest lease is never cut", namespace);
  return true;
}

/** Undefined when there is no record. @throws CoordinatorError for one that can't be read. */
export function storeIdIn(fields: FoundFields | undefined, namespace: string): string | undefined {
  return recordIn(fields, namespace)?.storeId;
}

function recordIn(fields: FoundFields | undefined, namespace: string) {
  if (fields === undefined || Object.keys(fields).length === 0) return undefined;
  const record = readRecord(fields, namespace);
  if (isRefusal(record)) throw refused(record.word, record.detail, namespace);
  return record;
}
