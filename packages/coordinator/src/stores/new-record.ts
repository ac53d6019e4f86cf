/** The record that `init` writes, the same in every store. */
import type { NamespaceRecord } from "../store.js";
import { parseStoreId } from "../store-id.js";

/** @throws TypeError when `storeId` is none. */
export function newRecord(namespace: string, storeId: string): NamespaceRecord {
  const fields = parseStoreId(storeId);
  if (fields === undefined) throw new TypeError(`not a store id: ${JSON.stringify(storeId)}`);
  const { firstRun, initialisedAtMs } = fields;
  return { namespace, storeId, version: 0, firstRun, highWaterMark: firstRun - 1, changedAtMs: initialisedAtMs };
}
