/**
 * The port to the store. Every method that changes something is one atomic step. What a store must do is defined by the contract
 * suite (test/store-contract.ts), which every store passes.
 */
import type { Finding } from "@callnumber/protocol/operator";
import type { Holder, LedgerEntry, Progress } from "@callnumber/protocol/wire";
import type { NamespaceState } from "../guard/record.js";
import type { StoreIdFields } from "../guard/store-id.js";

export type { Finding };

/** What every step has. */
interface StepBase {
  /** The only store that the step may touch. */
  readonly storeId: string;
  /** New and random for each step; the answer echoes it. */
  readonly nonce: string;
  /** An operator has checked the clocks: a long heartbeat gap was only that. */
  readonly isSilenceAccepted: boolean;
}

/** Lower bounds that the caller knows. A step is refused when the record is below one of them. */
interface Remembered {
  /** Ledger id of the greatest run that the caller knows to be leased; 0 for none. Below it the store has rolled back. */
  readonly floor: number;
  /** The greatest generation that the caller has seen; 0 for none. */
  readonly generationMin: number;
}

/** Leases runs: raises the mark and writes the ledger entry. */
export interface LeaseStep extends StepBase, Remembered {
  readonly step: "lease";
  /** 1 to `LEASE_RUN_COUNT_MAX`. */
  readonly runCount: number;
  /** Ledger id of a run that a holder proved to have from this store; 0 for none. */
  readonly provenRun: number;
  readonly holder: Holder;
  readonly coordinator: string;
  /** Id of the token of the holder's request; undefined where none is required. */
  readonly tokenId?: string | undefined;
  /** The nonce of the holder's request, kept in the ledger: reports must include it. */
  readonly leaseNonce: string;
}

/** Writes the time, so that there is no heartbeat gap while a coordinator runs. */
export interface HeartbeatStep extends StepBase, Remembered {
  readonly step: "heartbeat";
}

/** The first half of a recovery: the last claim may be confirmed. */
export interface ClaimStep extends StepBase {
  readonly step: "claim";
  /** As it was read; another one means that another coordinator claimed meanwhile. */
  readonly generation: number;
  readonly generationMin: number;
}

/** The second half, once the quorum has the claim: the mark skips ahead to the run ceiling. */
export interface ConfirmStep extends StepBase {
  readonly step: "confirm";
  readonly generation: number;
  readonly floor: number;
  /** Name of the coordinator, where an exclusive store has lost nothing: the skipped runs get an entry in the ledger. */
  readonly skippedBy?: string | undefined;
}

/** Ends leasing. */
export interface SealStep extends StepBase, Remembered {
  readonly step: "seal";
  /** `movedSeal`, which nothing lifts and which may be set again; or `FORKED_SEAL`, which `recover` lifts. */
  readonly seal: string;
}

/** Makes the record again at the run ceiling, to be claimed by the next coordinator. Renames keys that no step of ours could have made. */
export interface RecoverStep extends StepBase {
  readonly step: "recover";
  readonly floor: number;
  readonly generationMin: number;
  readonly nodeCount: number | undefined;
  /** For a record that is gone; one that is there keeps its own. */
  readonly proofKey: string;
}

/** Makes the record of a namespace, once. */
export interface InitStep extends StepBase {
  readonly step: "init";
  readonly nodeCount: number;
  readonly proofKey: string;
}

/** Goes on to the next version of call numbers, once this one's run space is at its end. */
export interface AdvanceStep extends StepBase, Remembered {
  readonly step: "advance";
  /** As it was read; another one means that another operator advanced meanwhile. */
  readonly version: number;
}

/** What a step does, and what the store must find unchanged for it. */
export type StepCommand =
  | LeaseStep
  | HeartbeatStep
  | ClaimStep
  | ConfirmStep
  | SealStep
  | RecoverStep
  | InitStep
  | AdvanceStep;

/**
 * The record of a namespace; it can be read, and nothing else of it is checked. `highWaterMark` is `firstRun - 1` when nothing was leased.
 * `changedAtMs` is the time of the last write, and never goes back, even when the clock does. `proofKey` never leaves the coordinator.
 */
export interface NamespaceRecord
  extends Omit<NamespaceState, "id" | "epoch">,
    Pick<StoreIdFields, "firstVersion" | "firstRun"> {}

/** The record as a step left it. */
export interface RecordAfter
  extends Omit<NamespaceState, "namespace" | "id" | "phase" | "proofKey" | "seal">,
    Pick<StepBase, "nonce"> {}

/** The server a moment later, after the quorum had the step. */
export interface CheckAnswer extends Pick<RecordAfter, "nonce" | "epoch" | "generation"> {
  readonly role: string;
}

/** The result of a step that was not refused. Whether it counts is the guard's decision. */
export interface Outcome {
  readonly after: RecordAfter;
  /** The runs granted, those up to the mark; 0 for every step but a lease. */
  readonly runCount: number;
  /** Number of other nodes that have acknowledged it. */
  readonly acknowledgedCount: number;
  readonly check: CheckAnswer;
  /** Of `recover`: the new names of keys of another type that were in the place of ours. */
  readonly movedAside?: readonly string[];
}

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

/** The port to a store: one record and one ledger for each namespace, and what is written in one step. */
export interface Store {
  /** As in `status`: `memory`, `sqlite`, `redis`. */
  readonly kind: string;
  /** Whether one process at a time can have it open. */
  readonly isExclusive: boolean;

  /**
   * Does one step of the guard, atomically and as durably as the store can. Never grants a run twice.
   * @throws CoordinatorError for a refusal of guard/decide.ts: nothing is changed. `store_unavailable`: it is not known whether
   *   the step was done, and the runs of a lease are lost.
   */
  step(namespace: string, command: StepCommand): Promise<Outcome>;

  /** Returns why the epoch is another one than before, for people; undefined where the store does not know. */
  epochCause?(namespace: string): string | undefined;

  /** @throws CoordinatorError `namespace_not_found`, `store_corrupt`, `store_schema_unsupported`, `store_unavailable`. */
  readNamespace(namespace: string): Promise<NamespaceRecord>;

  /** The names of all namespaces, sorted. */
  listNamespaces(): Promise<readonly string[]>;

  /**
   * Stores the progress of a lease. Progress never goes back, and a closed lease stays closed, in whatever order reports arrive.
   * @throws CoordinatorError `run_not_leased`, `holder_mismatch` (another nonce than the lease's).
   */
  report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void>;

  /** The leases of a query, in its direction. @throws CoordinatorError as `readNamespace`, unless `withoutRecord`. */
  leases(namespace: string, query: LeaseQuery): Promise<readonly LedgerEntry[]>;

  /**
   * Inspects the servers of the store, as far as the user's rights reach: could they lose or repeat what they hold? Changes nothing.
   * `asOperator`: also reads what only an operator's user may.
   * @throws CoordinatorError `store_unavailable`.
   */
  preflight(options?: { readonly asOperator?: boolean }): Promise<readonly Finding[]>;

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

  /** Finishes queued steps and closes files and connections. May be called twice. */
  close(): Promise<void>;
}

/** The reading part of a store, for a ledger. */
export type LedgerReader = Pick<Store, "leases" | "readRetention">;

/** With the record of the leases. */
export type RecordedLedger = LedgerReader & Pick<Store, "readNamespace">;
