/**
 * From what a store keeps to the shapes of the port: records, and for the stores that outlive their process leases and labels, which
 * they keep as text. Pure.
 */
import { type Holder, type LedgerEntry, type Progress, runOfLedgerId } from "@callnumber/protocol/wire";
import { type NamespaceState, type ObservedFields, readRecord } from "../guard/record.js";
import { isRefusal, refused } from "../guard/refusals.js";
import type { LedgerRange } from "../ledger/lease-identity.js";
import type { NamespaceRecord, Outcome, RecordAfter } from "./store.js";

/** @throws CoordinatorError `store_corrupt`, `store_schema_unsupported`, `store_id_mismatch` when what was found is no record of ours. */
export function namespaceRecordIn(found: ObservedFields, namespace: string): NamespaceRecord {
  const record = readRecord(found, namespace);
  if (isRefusal(record)) throw refused(record.word, record.detail, namespace);
  const { id, epoch: _, ...others } = record;
  return { ...others, firstVersion: id.firstVersion, firstRun: id.firstRun };
}

/** The outcome of a step in a store within this process: it has no other nodes, and can't change before the check. */
export function localOutcome(record: NamespaceState, nonce: string, runCount: number, storeEpoch: string): Outcome {
  const check = { nonce, role: "master", epoch: storeEpoch, generation: record.generation };
  return { after: recordAfter(record, nonce), runCount, acknowledgedCount: 0, check };
}

export function recordAfter(record: NamespaceState, nonce: string): RecordAfter {
  const { storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount } = record;
  return { nonce, storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount };
}

/** The holder of a lease, the token of its request, and the coordinator that granted it. */
type Grantee = Pick<LedgerEntry, "holder" | "coordinator" | "tokenId">;

export interface StoredLease extends LedgerRange {
  readonly leasedAtMs: number;
  /** As `holderJsonOf` returns it; stored once for many leases. */
  readonly holderJson: string;
  readonly nonce: string;
  readonly progress: Progress | null;
}

/** In their order. Entries of one holder share it: a page names few holders, and parsing their JSON is most of its cost. */
export function ledgerEntriesOf(leases: readonly StoredLease[]): LedgerEntry[] {
  const grantees = new Map<string, Grantee>();
  return leases.map(({ lastLedgerId, runCount, leasedAtMs, holderJson, nonce, progress }) => {
    const grantee = grantees.get(holderJson) ?? granteeIn(holderJson);
    grantees.set(holderJson, grantee);
    const { version, run: lastRun } = runOfLedgerId(lastLedgerId);
    return { version, firstRun: lastRun - runCount + 1, runCount, leasedAtMs, ...grantee, nonce, progress };
  });
}

/** The same text for the same process at the same coordinator, by the same token. */
export function holderJsonOf({ holder, coordinator, tokenId }: Grantee): string {
  return JSON.stringify({ holder, coordinator, tokenId });
}

function granteeIn(holderJson: string): Grantee {
  const { holder, coordinator, tokenId } = JSON.parse(holderJson) as Grantee;
  return tokenId === undefined ? { holder, coordinator } : { holder, coordinator, tokenId };
}

type Labels = Holder["labels"];

/** The labels of a namespace as JSON, sorted by name, so that the same labels are the same text. */
export function labelsText(labels: Labels): string {
  return JSON.stringify(Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** Undefined when another program has written the text. */
export function labelsIn(text: string): Labels | undefined {
  let labels: unknown;
  try {
    labels = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isObject = typeof labels === "object" && labels !== null && !Array.isArray(labels);
  return isObject && Object.values(labels as object).every((value) => typeof value === "string")
    ? (labels as Labels)
    : undefined;
}
