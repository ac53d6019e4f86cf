/**
 * From what a store keeps to the shapes of the port: states and changes of the stores in this process, and for the stores that outlive it
 * leases, whose holders they keep as text. Pure.
 */
import { type Progress, runOfLedgerId } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import type { NamespaceState, ObservedFields } from "../guard/record.js";
import type { Applied, Change, Observed } from "../guard/step-store.js";
import { isSameProgress, lastLedgerIdOf } from "../ledger/lease-identity.js";
import { escapeAndShorten } from "../text.js";
import type { LedgerTrim } from "./store.js";

/** A namespace in a store of this process. */
interface LocalState {
  /** Empty for no record. */
  readonly fields: ObservedFields;
  /** Ledger id of the newest lease; 0 for none. */
  readonly ledgerMark: number;
  readonly epoch: string;
  readonly timeMs: number;
}

/** What a store of this process finds: it has one node, and only keys of ours. */
export function observedLocally({ fields, ledgerMark, epoch, timeMs }: LocalState): Observed {
  const record = hasRecord(fields) ? "hash" : "none";
  const [ledger, holders] = ledgerMark === 0 ? (["none", "none"] as const) : (["stream", "hash"] as const);
  const keys = { record, fields, expires: false, ledger, ledgerMark, holders } as const;
  return { keys, server: { timeMs, role: "master", epoch, connectedReplicas: 0 } };
}

/** What a change that is made returns, in a store of one node. */
export function appliedLocally({ highWaterMark, changedAtMs }: NamespaceState): Applied {
  return { highWaterMark, changedAtMs, acknowledgedCount: 0, check: undefined, movedAside: [] };
}

export function hasRecord(fields: ObservedFields): boolean {
  return Object.keys(fields).length > 0;
}

/** Returns what a change adds to the ledger, given the record that it writes. */
export function entriesOf(
  { leases, skipped }: Change,
  { version, highWaterMark, changedAtMs }: NamespaceState,
): LedgerEntry[] {
  let lastRun = highWaterMark - leases.reduce((sum, { runCount }) => sum + runCount, 0);
  const entries = leases.map(({ runCount, holder, coordinator, tokenId, leaseNonce: nonce }): LedgerEntry => {
    lastRun += runCount;
    const grantee = tokenId === undefined ? { holder, coordinator } : { holder, coordinator, tokenId };
    return {
      version,
      firstRun: lastRun - runCount + 1,
      runCount,
      leasedAtMs: changedAtMs,
      ...grantee,
      nonce,
      progress: null,
    };
  });
  return skipped === undefined ? entries : [...entries, skipped];
}

/**
 * Whether a store of this process holds what a trim rests on. lua/trim.lua compares the same in Redis.
 * `oldest`: its oldest leases, one more than the trim names.
 */
export function isAsTrimExpects(
  { record, trimmedThrough, through, leases }: LedgerTrim,
  found: { readonly fields: ObservedFields; readonly through: number; readonly oldest: readonly LedgerEntry[] },
): boolean {
  const { fields, oldest } = found;
  const { sid, p, ph } = fields;
  const isSameRecord =
    record === undefined
      ? !hasRecord(fields)
      : sid === record.storeId && p === String(record.phase) && ph === record.seal;
  const above = oldest[leases.length];
  const isAbove = above === undefined ? leases.length === 0 : lastLedgerIdOf(above) > through;
  const isSameLedger = leases.every((lease, at) => {
    const held = oldest[at];
    const isSame = held !== undefined && lastLedgerIdOf(held) === lastLedgerIdOf(lease);
    return isSame && isSameProgress(held.progress, lease.progress);
  });
  return isSameRecord && found.through === trimmedThrough && isAbove && isSameLedger;
}

/** The holder of a lease, the token of its request, and the coordinator that granted it. */
type Grantee = Pick<LedgerEntry, "holder" | "coordinator" | "tokenId">;

export interface StoredLease {
  readonly lastLedgerId: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
  /** As `holderJsonOf` returns it; stored once for many leases. Null or empty: another program removed it. */
  readonly holderJson: string | null | undefined;
  readonly nonce: string;
  readonly progress: Progress | null;
}

/** In place of a holder whose entry another program removed: the lease stays, and can be moved. */
export const LOST_NAME = "unknown";
const LOST_HOLDER = holderJsonOf({
  holder: { name: LOST_NAME, host: "unknown", pid: 0, labels: { note: "the holder was lost by the store" } },
  coordinator: "unknown",
  tokenId: undefined,
});

/** In their order. Entries of one holder share it: a page names few holders, and parsing their JSON is most of its cost. */
export function ledgerEntriesOf(leases: readonly StoredLease[]): LedgerEntry[] {
  const grantees = new Map<string, Grantee>();
  return leases.map(({ lastLedgerId, runCount, leasedAtMs, holderJson, nonce, progress }) => {
    const json = holderJson || LOST_HOLDER;
    const grantee = grantees.get(json) ?? granteeIn(json);
    grantees.set(json, grantee);
    const { version, run: lastRun } = runOfLedgerId(lastLedgerId);
    return { version, firstRun: lastRun - runCount + 1, runCount, leasedAtMs, ...grantee, nonce, progress };
  });
}

/** The same text for the same process at the same coordinator, by the same token. */
export function holderJsonOf({ holder, coordinator, tokenId }: Grantee): string {
  return JSON.stringify({ holder, coordinator, tokenId });
}

/** @throws CoordinatorError `store_corrupt` for what `holderJsonOf` did not return. */
export function granteeIn(holderJson: string): Grantee {
  try {
    const { holder, coordinator, tokenId } = JSON.parse(holderJson) as Grantee;
    if (typeof holder.name === "string")
      return tokenId === undefined ? { holder, coordinator } : { holder, coordinator, tokenId };
  } catch {
    // No JSON of an object.
  }
  const shown = escapeAndShorten(holderJson);
  throw new CoordinatorError("store_corrupt", `the ledger can't be read: another program changed a holder to ${shown}`);
}

const WHOLE = /^(?:0|[1-9]\d{0,15})$/;

/**
 * A whole number as scripts and statements of ours write it, up to `max`; undefined for every other text. JavaScript would convert anything to a number, and a
 * comparison with NaN is never true, so it would let everything pass.
 */
export function wholeIn(text: string | undefined, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const number = text !== undefined && WHOLE.test(text) ? Number(text) : Number.NaN;
  return number <= max ? number : undefined;
}
