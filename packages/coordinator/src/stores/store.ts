/**
 * The port to a store, in three parts: steps of the guard (guard/step-store.ts), the ledger, and its upkeep. Every method that changes
 * something is atomic. What a store must do is defined by the contract suite (test/store-contract.ts), which every store passes.
 */
import type { Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
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

/** The most leases that one step trims: lease requests wait meanwhile. */
export const LEDGER_TRIM_LEASES_MAX = 500;

/** A lease to be trimmed, unless it was reported on since. */
export interface TrimmableLease {
  readonly lastLedgerId: number;
  /** Time of the last report on it; null for none. */
  readonly reportedAtMs: number | null;
}

/** The oldest leases of a ledger, which are in a file, synced to the disk. */
export interface LedgerTrim {
  readonly storeId: string;
  /** `Retention.through` as the caller found it. */
  readonly trimmedThrough: number;
  /** The new `Retention.through`: not below the old one, and below the newest lease, which is never trimmed. */
  readonly through: number;
  /** When the newest lease up to `through` was leased. */
  readonly leasedAtMs: number;
  /** All leases up to `through`, oldest first; at most `LEDGER_TRIM_LEASES_MAX`. */
  readonly leases: readonly TrimmableLease[];
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
  /** Reads the ledger also when the namespace has no record, or none that can be read. Default false. */
  readonly withoutRecord?: boolean;
}

/** How far a holder has come in a run, for its ledger entry. */
export interface ReportCommand {
  readonly nonce: string;
  readonly lastSequence: number | null;
  readonly state: Progress["state"];
}

/** What was leased, and how far holders have come. */
interface Ledger {
  /** The leases of a query, in its direction. @throws CoordinatorError as `readNamespace`, unless `withoutRecord`. */
  leases(namespace: string, query: LeaseQuery): Promise<readonly LedgerEntry[]>;

  /**
   * Stores the progress of a lease. Progress never goes back, and a closed lease stays closed, in whatever order reports arrive.
   * @throws CoordinatorError `run_not_leased`, `holder_mismatch` (another nonce than the lease's).
   */
  report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void>;
}

/** What is rarely done to a ledger. */
interface Upkeep {
  /**
   * Imports leases of another store, oldest first, into a ledger that has no record yet: the record comes last, so that nothing is
   * leased before the ledger is complete. Leases that were imported before stay as they are.
   * @throws CoordinatorError `store_id_mismatch` when the ledger holds another lease in that place, `namespace_exists`
   *   when there is a record and a lease is missing: none of the leases was added. `store_unavailable`: some may have been added.
   */
  importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void>;

  /** Needs no record. @throws CoordinatorError `store_corrupt` when it can't be read, `store_unavailable`. */
  readRetention(namespace: string): Promise<Retention>;

  /** Sets for how many days leases stay; 0 keeps all. Needs no record. @throws CoordinatorError `store_unavailable`. */
  setRetentionDays(namespace: string, days: number): Promise<void>;

  /**
   * Trims the oldest leases, in one atomic step. Without a record, it stores how far another store was trimmed.
   * Returns false, and changes nothing, when the ledger holds other leases up to `through`, or was trimmed meanwhile.
   * @throws CoordinatorError `store_id_mismatch`, `namespace_moved`, `store_forked`: nothing is changed.
   *   `store_unavailable`: it is not known whether it was done; a retry is harmless.
   */
  trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean>;
}

/** The port to a store: one record and one ledger for each namespace. A new store begins with `StepStore` and `Ledger`. */
export interface Store extends StepStore, Ledger, Upkeep {}

/** The reading part of a store, for a ledger. */
export type LedgerReader = Pick<Store, "leases" | "readRetention">;

/** With the record of the leases. */
export type RecordedLedger = LedgerReader & Pick<Store, "readNamespace">;
