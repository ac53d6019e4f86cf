/** The record of a namespace: the one that `init` writes, and the one that a store has kept. The same in every store. */

import { noStoreId } from "../refusals.js";
import type { NamespaceRecord } from "../store.js";
import { parseStoreId } from "../store-id.js";

/** @throws TypeError when `storeId` is none. */
export function newRecord(namespace: string, storeId: string): NamespaceRecord {
  const fields = parseStoreId(storeId);
  if (fields === undefined) throw new TypeError(`not a store id: ${JSON.stringify(storeId)}`);
  const { firstRun, initialisedAtMs } = fields;
  return { namespace, storeId, version: 0, firstRun, highWaterMark: firstRun - 1, changedAtMs: initialisedAtMs };
}

/** @throws CoordinatorError `store_corrupt` when what was kept as store id is none. */
export function keptRecord(kept: Omit<NamespaceRecord, "firstRun">): NamespaceRecord {
  const fields = parseStoreId(kept.storeId);
  if (fields === undefined) throw noStoreId(kept.namespace, kept.storeId);
  return { ...kept, firstRun: fields.firstRun };
}
