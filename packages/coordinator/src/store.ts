/**
 * The port to what keeps the state. Every method that changes something is one atomic step in the store.
 * What a store must do is defined by the contract suite (test/store-contract.ts), which every store passes.
 */
import type { Holder, LedgerEntry, Progress } from "@callnumber/protocol/wire";

export interface NamespaceRecord {
  readonly namespace: string;
  readonly storeId: string;
  readonly version: number;
  /** The first run that this store leases. */
  readonly firstRun: number;
  /** The greatest run ever leased; `firstRun - 1` when none was. Only rises. */
  readonly highWaterMark: number;
  /** Time of the last lease, or of `init`. Never goes back, even when the clock does. */
  readonly changedAtMs: number;
}

export interface LeaseCommand {
  /** 1 to `LEASE_RUN_COUNT_MAX`. */
  readonly runCount: number;
  /** Ledger id of the greatest run that the caller knows to be leased; 0 for none. Below it the store must have gone back. */
  readonly floor: number;
  readonly holder: Holder;
  readonly coordinator: string;
  readonly nonce: string;
}

/** Fresh runs, `firstRun` upwards. */
export interface GrantedRuns {
  readonly storeId: string;
  readonly version: number;
  readonly firstRun: number;
  /** May be less than asked, at the end of the run space. */
  readonly runCount: number;
  readonly leasedAtMs: number;
}

export interface ReportCommand {
  readonly nonce: string;
  readonly lastSequence: number | null;
  readonly state: Progress["state"];
}

export interface Store {
  /** How the store is called in `status`: `memory`, `sqlite`, `redis`. */
  readonly kind: string;

  /**
   * Makes the record of a namespace, once.
   * @throws CoordinatorError `namespace_already_initialised`; nothing is changed.
   */
  createNamespace(namespace: string, storeId: string): Promise<NamespaceRecord>;

  /** @throws CoordinatorError `namespace_not_initialised`. */
  readNamespace(namespace: string): Promise<NamespaceRecord>;

  /** The names of all namespaces, sorted. */
  listNamespaces(): Promise<readonly string[]>;

  /**
   * Raises the high-water mark and writes the ledger entry, in one step; durable when it resolves, as far as the store can.
   * A run is never granted twice. When this rejects without a refusal of its own, runs may be burnt.
   * @throws CoordinatorError `namespace_not_initialised`, `store_went_back`, `run_space_exhausted`, `store_corrupt`: nothing
   *   is changed. `store_unavailable`: not known whether the mark moved.
   */
  lease(namespace: string, command: LeaseCommand): Promise<GrantedRuns>;

  /**
   * Notes how far a holder got. Progress never goes back, and a closed lease stays closed, in whatever order reports arrive.
   * @throws CoordinatorError `run_not_leased`, `not_the_holder` (another nonce than the lease's).
   */
  report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void>;

  /** The lease that holds a run, or undefined when none does. */
  findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined>;

  /** Up to `limit` leases, newest first, whose last run has a ledger id below `belowLedgerId`. */
  listLeases(
    namespace: string,
    page: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]>;

  /** The oldest lease granted at `timeMs` or later, or undefined. */
  firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined>;

  /** Finishes what is under way and lets go of files and connections. May be called twice. */
  close(): Promise<void>;
}
