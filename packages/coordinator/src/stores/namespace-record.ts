/** From a kept record to what the rules above see of it, and to the outcome of a step. The same in every store. */
import { type NamespaceState, type ObservedFields, readRecord } from "../guard/record.js";
import { isRefusal, refused } from "../guard/refusals.js";
import type { NamespaceRecord, RecordAfter } from "../store.js";

/** @throws CoordinatorError `store_corrupt`, `store_unknown_schema`, `store_replaced` when what was found is no record of ours. */
export function namespaceRecordIn(found: ObservedFields, namespace: string): NamespaceRecord {
  const record = readRecord(found, namespace);
  if (isRefusal(record)) throw refused(record.word, record.detail, namespace);
  const { storeId, id, version, highWaterMark, changedAtMs, generation, phase, seal, nodeCount, receiptKey } = record;
  return {
    namespace,
    storeId,
    version,
    firstVersion: id.firstVersion,
    firstRun: id.firstRun,
    highWaterMark,
    changedAtMs,
    generation,
    phase,
    seal,
    nodeCount,
    receiptKey,
  };
}

export function recordAfter(record: NamespaceState, nonce: string): RecordAfter {
  const { storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount } = record;
  return { nonce, storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount };
}
