/**
 * From what a store keeps to the shapes of the port: records, steps of the stores in this process, and for the stores that outlive it
 * leases, whose holders they keep as text. Pure.
 */
import { hostname } from "node:os";
import process from "node:process";
import { type LedgerEntry, type Progress, runOfLedgerId } from "@callnumber/protocol/wire";
import type { Bounds } from "../guard/bounds.js";
import { decide } from "../guard/decide.js";
import { type NamespaceState, type ObservedFields, readRecord } from "../guard/record.js";
import { isRefusal, refused } from "../guard/refusals.js";
import type { NamespaceRecord, Outcome, RecordAfter, StepCommand } from "./store.js";

/** @throws CoordinatorError `store_corrupt`, `store_schema_unsupported`, `store_id_mismatch` when what was found is no record of ours. */
export function namespaceRecordIn(found: ObservedFields, namespace: string): NamespaceRecord {
  const record = readRecord(found, namespace);
  if (isRefusal(record)) throw refused(record.code, record.detail, namespace);
  const { id, epoch: _, ...others } = record;
  return { ...others, firstVersion: id.firstVersion, firstRun: id.firstRun };
}

/** A namespace in a store of this process, before a step. */
interface LocalContext {
  readonly namespace: string;
  /** Empty for no record. */
  readonly fields: ObservedFields;
  /** Ledger id of the newest lease; 0 for none. */
  readonly ledgerMark: number;
  readonly epoch: string;
  readonly nowMs: number;
  readonly bounds: Bounds;
}

/**
 * Decides a step in a store of this process: it has one node, the coordinator's clock, and can't change before the check. Returns the
 * record to store, and the entry to add to the ledger, if any.
 * @throws CoordinatorError for a refusal of `decide`.
 */
export function decideLocally(
  { namespace, fields, ledgerMark, epoch, nowMs, bounds }: LocalContext,
  command: StepCommand,
): { readonly record: NamespaceState; readonly outcome: Outcome; readonly entry: LedgerEntry | undefined } {
  const record = hasRecord(fields) ? "hash" : "none";
  const ledger = ledgerMark === 0 ? "none" : "stream";
  const keys = { record, fields, expires: false, ledger, ledgerMark, holders: "hash" } as const;
  const server = { timeMs: nowMs, role: "master", epoch, connectedReplicas: 0 };
  const written = decide({ namespace, keys, server, nowMs, bounds }, command);
  if (isRefusal(written)) throw refused(written.code, written.detail, namespace);
  const { nonce } = command;
  const check = { nonce, role: "master", epoch, generation: written.record.generation };
  const after = recordAfter(written.record, nonce);
  const outcome = { after, runCount: written.runCount, acknowledgedCount: 0, check };
  return { record: written.record, outcome, entry: entryOf(command, fields, outcome) };
}

export function hasRecord(fields: ObservedFields): boolean {
  return Object.keys(fields).length > 0;
}

export function recordAfter(record: NamespaceState, nonce: string): RecordAfter {
  const { storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount } = record;
  return { nonce, storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount };
}

/** Returns what a step adds to the ledger: a lease; or the runs that a recovery skipped, when it is known to have lost nothing. */
function entryOf(command: StepCommand, before: ObservedFields, { after, runCount }: Outcome): LedgerEntry | undefined {
  const { version, highWaterMark: lastRun, changedAtMs: leasedAtMs } = after;
  if (command.step === "lease") {
    const { holder, coordinator, tokenId, leaseNonce: nonce } = command;
    const grantee = tokenId === undefined ? { holder, coordinator } : { holder, coordinator, tokenId };
    return { version, firstRun: lastRun - runCount + 1, runCount, leasedAtMs, ...grantee, nonce, progress: null };
  }
  const skippedCount = lastRun - Number(before["c"]);
  if (command.step !== "confirm" || command.skippedBy === undefined || skippedCount === 0) return undefined;
  const progress = { run: lastRun, lastSequence: null, state: "skipped", reportedAtMs: leasedAtMs } as const;
  return {
    version,
    firstRun: lastRun - skippedCount + 1,
    runCount: skippedCount,
    leasedAtMs,
    holder: { name: "recovery", host: hostname(), pid: process.pid, labels: {} },
    coordinator: command.skippedBy,
    nonce: command.nonce,
    progress,
  };
}

/** The holder of a lease, the token of its request, and the coordinator that granted it. */
type Grantee = Pick<LedgerEntry, "holder" | "coordinator" | "tokenId">;

export interface StoredLease {
  readonly lastLedgerId: number;
  readonly runCount: number;
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
