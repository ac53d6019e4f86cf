/**
 * The port to what keeps the state. Every method that changes something is one atomic step in the store.
 * What a store must do is defined by the contract suite (test/store-contract.ts), which every store passes.
 */
import type { Finding } from "@callnumber/protocol/operator";
import type { Holder, LedgerEntry, Progress } from "@callnumber/protocol/wire";

export type { Finding };

/** What every step is told. */
interface StepBase {
  /** The only store that the step may touch. */
  readonly storeId: string;
  /** New and random for each step; the answer echoes it. */
  readonly nonce: string;
  /** Somebody vouches for the clock although the store was silent for very long. */
  readonly isSilenceAccepted: boolean;
}

/** What a step that needs an undoubted store compares it with. */
interface Remembered {
  /** Ledger id of the greatest run that the caller knows to be leased; 0 for none. Below it the store must have gone back. */
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
  readonly held: number;
  readonly holder: Holder;
  readonly coordinator: string;
  /** Of the token that the holder's request bore; undefined where nobody was asked for one. */
  readonly tokenId?: string | undefined;
  /** The nonce of the holder's request, kept in the ledger: reports must bear it. */
  readonly leaseNonce: string;
}

/** Writes the time, so that no silence arises while a coordinator runs. */
export interface TouchStep extends StepBase, Remembered {
  readonly step: "touch";
}

/** The first half of settling a doubt: whoever claims last may confirm. */
export interface ClaimStep extends StepBase {
  readonly step: "claim";
  /** As it was seen; another one means that somebody else claimed meanwhile. */
  readonly generation: number;
  readonly generationMin: number;
}

/** The second half, once the quorum has the claim: the jump onto the line. */
export interface ConfirmStep extends StepBase {
  readonly step: "confirm";
  readonly generation: number;
  readonly floor: number;
}

/** Ends leasing. */
export interface SealStep extends StepBase, Remembered {
  readonly step: "seal";
  /** `movedSeal`, which nothing lifts and which may be set again; or `FORKED_SEAL`, which `recover` lifts. */
  readonly seal: string;
}

/** Makes the record anew on the line, to be claimed by the next coordinator. Renames keys that no step of ours could have made. */
export interface RecoverStep extends StepBase {
  readonly step: "recover";
  readonly floor: number;
  readonly generationMin: number;
  readonly nodeCount: number | undefined;
  /** For a record that is gone; one that is there keeps its own. */
  readonly receiptKey: string;
}

/** Makes the record of a namespace, once. */
export interface InitStep extends StepBase {
  readonly step: "init";
  readonly nodeCount: number;
  readonly receiptKey: string;
}

/** Goes on to the next version of call numbers, once this one's run space is at its end. */
export interface AdvanceStep extends StepBase, Remembered {
  readonly step: "advance";
  /** As it was seen; another one means that somebody else advanced meanwhile. */
  readonly version: number;
}

export type StepCommand =
  | LeaseStep
  | TouchStep
  | ClaimStep
  | ConfirmStep
  | SealStep
  | RecoverStep
  | InitStep
  | AdvanceStep;

/** The record as a step left it. */
export interface RecordAfter {
  readonly nonce: string;
  readonly storeId: string;
  readonly version: number;
  /** The greatest run ever leased, or jumped to. */
  readonly highWaterMark: number;
  /** Never goes back, even when the clock does. */
  readonly changedAtMs: number;
  readonly epoch: string;
  readonly generation: number;
  readonly nodeCount: number;
}

/** How the store stood a moment later, after the quorum had the step. */
export interface CheckAnswer {
  readonly nonce: string;
  readonly role: string;
  readonly epoch: string;
  readonly generation: number;
}

/** All that is known of a step that was not refused. Whether it may be believed is the guard's decision. */
export interface Outcome {
  readonly after: RecordAfter;
  /** The runs granted, those up to the mark; 0 for every step but a lease. */
  readonly runCount: number;
  /** How many other nodes have acknowledged it. */
  readonly acknowledgedCount: number;
  readonly check: CheckAnswer;
  /** Of `recover`: the new names of keys of another type that were in the place of ours. */
  readonly movedAside?: readonly string[];
}

/** A namespace as it stands, without any judgement but that it can be read. */
export interface NamespaceRecord {
  readonly namespace: string;
  readonly storeId: string;
  readonly version: number;
  /** Version and run that this store begins with. */
  readonly firstVersion: number;
  readonly firstRun: number;
  /** The greatest run ever leased; `firstRun - 1` when none was. Only rises. */
  readonly highWaterMark: number;
  /** Time of the last write. Never goes back, even when the clock does. */
  readonly changedAtMs: number;
  readonly generation: number;
  /** 0 open, 1 claimed and not yet confirmed, 2 sealed. */
  readonly phase: number;
  /** Who sealed it, as guard/record.ts tells; `NO_SEAL` for nobody. */
  readonly seal: string;
  readonly nodeCount: number;
  /** Key of the receipts. Never leaves the coordinator. */
  readonly receiptKey: string;
}

/** How much of a ledger stands in archive files. */
export interface ArchivedPart {
  /** Undefined when there is no record. */
  readonly storeId: string | undefined;
  /** Ledger id: leases whose last run lies at or below it stand in the archive, and here only until they have ended. 0 for none. */
  readonly through: number;
}

/** The most leases that one cut lets go of: others wait meanwhile. */
export const LEDGER_CUT_LEASES_MAX = 500;

/** Leases that stand in archive files, on the disk, to be let go of. */
export interface LedgerCut {
  readonly storeId: string;
  /** As the caller found it; another one means that somebody else cuts, too. */
  readonly archivedThrough: number;
  /** What it is from now on: not below it, and below the newest lease, which stays for ever. */
  readonly through: number;
  /** At most `LEDGER_CUT_LEASES_MAX`, none above `through`. One that was reported on at another time than told stays. */
  readonly leases: readonly { readonly lastLedgerId: number; readonly reportedAtMs: number | null }[];
}

export interface CutAnswer {
  /** False when `archivedThrough` was another one: nothing is changed then. */
  readonly isCut: boolean;
  readonly archivedThrough: number;
  /** How many leases are no longer there. */
  readonly leaseCount: number;
}

export interface ReportCommand {
  readonly nonce: string;
  readonly lastSequence: number | null;
  readonly state: Progress["state"];
}

export interface Store {
  /** How the store is called in `status`: `memory`, `sqlite`, `redis`. */
  readonly kind: string;
  /** Whether one process at a time can have it open: then a witness that matches vouches for a long silence. */
  readonly isExclusive: boolean;

  /**
   * Does one step of the guard, atomically; what is written is durable when it resolves, as far as the store can.
   * A run is never granted twice. When this rejects without a refusal of its own, runs may be burnt.
   * @throws CoordinatorError for a refusal of guard/decisions.ts: nothing is changed. `store_unavailable`: not known whether
   *   the step was done.
   */
  step(namespace: string, command: StepCommand): Promise<Outcome>;

  /** @throws CoordinatorError `namespace_not_initialised`, `store_corrupt`, `store_unknown_schema`, `store_unavailable`. */
  readNamespace(namespace: string): Promise<NamespaceRecord>;

  /** The names of all namespaces, sorted. */
  listNamespaces(): Promise<readonly string[]>;

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

  /**
   * Looks at the servers that keep the state, as far as the coordinator's own rights reach: whether they could lose or repeat
   * what they hold. `asOperator`: also at what only an operator's user may ask. Changes nothing.
   * @throws CoordinatorError `store_unavailable`.
   */
  preflight(options?: { readonly asOperator?: boolean }): Promise<readonly Finding[]>;

  /**
   * Up to `limit` leases, oldest first, whose last run has a ledger id above `afterLedgerId`: the ledger as it stands, whether
   * or not it has a record.
   */
  exportLeases(
    namespace: string,
    page: { readonly afterLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]>;

  /**
   * Takes over leases of another store, oldest first, into a ledger that has no record yet: the record comes last, so that
   * nothing is leased before all is there. A lease that is there already stays as it is.
   * @throws CoordinatorError `store_replaced` when the ledger holds another lease there, `namespace_already_initialised` when
   *   there is a record and a lease is missing: none of the leases was added. `store_unavailable`: some may be there.
   */
  importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void>;

  /**
   * Gives a namespace its labels, instead of those it had: words for people, which no step looks at.
   * @throws CoordinatorError `namespace_not_initialised`, `store_unavailable`.
   */
  describeNamespace(namespace: string, labels: Holder["labels"]): Promise<void>;

  /**
   * The labels of a namespace; none when it was given none.
   * @throws CoordinatorError `namespace_not_initialised`, `store_corrupt`, `store_unavailable`.
   */
  readDescription(namespace: string): Promise<Holder["labels"]>;

  /**
   * Whether or not there is a record.
   * @throws CoordinatorError as `readNamespace`, but for a record that is missing.
   */
  readArchived(namespace: string): Promise<ArchivedPart>;

  /**
   * Lets go of leases that stand in the archive, in one atomic step. A place that has no record yet takes over how much is archived.
   * @throws CoordinatorError `store_replaced`, `store_moved`, `store_forked`: nothing is changed.
   *   `store_unavailable`: not known whether it was done; to find the same leases again is harmless.
   */
  cutLedger(namespace: string, cut: LedgerCut): Promise<CutAnswer>;

  /** Finishes what is under way and lets go of files and connections. May be called twice. */
  close(): Promise<void>;
}
