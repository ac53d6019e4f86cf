/**
 * The port to a store, in three parts: steps of the guard (guard/step-store.ts), the ledger, and its upkeep. Every method that changes
 * something is atomic. What a store must do is defined by the contract suite (test/store-contract.ts, the entry /store-contract), which every store passes.
 */
import type { Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { NamespaceRecord } from "../guard/record.js";
import type { StepStore } from "../guard/step-store.js";

/** How long the leases of a namespace stay in the store, and which were trimmed. No step reads it. */
export interface Retention {
  /** 0: all leases stay. */
  readonly days: number;
  /** Ledger id up to which leases were trimmed: the ledger holds none up to there. 0 for none. */
  readonly through: number;
  /** When the newest trimmed lease was leased; 0 for none. */
  readonly leasedAtMs: number;
}

/** All leases are kept, and none was trimmed. */
export const NO_RETENTION: Retention = { days: 0, through: 0, leasedAtMs: 0 };

/** Leases to be trimmed, and what the ledger must be for it. */
export interface LedgerTrim {
  /** The record: of this store, in this phase, with this seal. Undefined for none. */
  readonly record: Pick<NamespaceRecord, "storeId" | "phase" | "seal"> | undefined;
  /** `Retention.through` as the caller found it. */
  readonly trimmedThrough: number;
  /** The new `Retention.through`. */
  readonly through: number;
  /** When the newest lease up to `through` was leased. */
  readonly leasedAtMs: number;
  /** All leases up to `through`, oldest first, with their progress. A newer one lies above. */
  readonly leases: readonly LedgerEntry[];
}

/** Up to `limit` leases of a ledger, by the ledger ids of their last runs. */
export interface LeaseQuery {
  /** No lease before this ledger id, in the direction. Default: the oldest or the newest lease. */
  readonly from?: number | undefined;
  /** Leased at this time or later: in place of `from`, and oldest first. */
  readonly sinceMs?: number | undefined;
  readonly direction: "oldest_first" | "newest_first";
  /** At least 1. */
  readonly limit: number;
}

/** What was leased, and how far holders have come. Needs no record. */
interface Ledger {
  /** The leases of a query, in its direction. @throws CoordinatorError `store_corrupt`, `store_unavailable`. */
  leases(namespace: string, query: LeaseQuery): Promise<readonly LedgerEntry[]>;

  /**
   * Whether the ledger may have a lease of a holder with this name. False only where it has none; true is no promise, since a holder whose
   * leases were trimmed may still be known. @throws CoordinatorError `store_unavailable`.
   */
  hasHolder(namespace: string, name: string): Promise<boolean>;

  /**
   * Stores the progress of a lease in the place of the progress that it was read with. Returns false, and changes nothing, when the ledger
   * holds another progress, or not this lease any more. @throws CoordinatorError `store_unavailable`: it is not known whether it was done.
   */
  setProgress(namespace: string, lease: LedgerEntry, progress: Progress): Promise<boolean>;
}

/** What is rarely done to a ledger. Needs no record. */
interface Upkeep {
  /**
   * Appends leases, oldest first, to a ledger whose newest lease has this ledger id, 0 for none. Returns false, and changes nothing, when it
   * has another, or the namespace has its record.
   * @throws CoordinatorError `store_unavailable`: it is not known whether it was done.
   */
  appendLeases(namespace: string, newestLedgerId: number, leases: readonly LedgerEntry[]): Promise<boolean>;

  /** @throws CoordinatorError `store_corrupt` when it can't be read, `store_unavailable`. */
  readRetention(namespace: string): Promise<Retention>;

  /** Sets for how many days leases stay; 0 keeps all. @throws CoordinatorError `store_unavailable`. */
  setRetentionDays(namespace: string, days: number): Promise<void>;

  /**
   * Trims the oldest leases, in one atomic step. Returns false, and changes nothing, when anything that it rests on is not so.
   * @throws CoordinatorError `store_unavailable`: it is not known whether it was done; a retry is harmless.
   */
  trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean>;
}

/** The port to a store: one record and one ledger for each namespace. A new store needs every method. */
export interface Store extends StepStore, Ledger, Upkeep {}

/** The reading part of a store, for a ledger. */
export type LedgerReader = Pick<Store, "leases" | "hasHolder" | "readRetention">;

/** With the record of the leases. */
export type RecordedLedger = LedgerReader & Pick<Store, "readNamespace">;
