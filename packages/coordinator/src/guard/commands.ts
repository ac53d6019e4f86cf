/**
 * The steps of the guard: what a coordinator or an operator asks for, and what a step that was done returns. `decide.ts` decides on
 * them, `namespace-steps.ts` does them.
 */
import type { Holder } from "@callnumber/protocol/api";
import type { NamespaceState } from "./record.js";

/** What every step has. */
interface StepBase {
  /** The only store that the step may touch. */
  readonly storeId: string;
  /** An operator has checked the clocks: a long heartbeat gap was only that. */
  readonly isSilenceAccepted: boolean;
  /** What the caller knows of a node that the record does not count, see uncounted-node.ts. Default: 0, none was seen. */
  readonly recoveredMin?: number | undefined;
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
  /** Who sets it makes the new store next: it is set once, over the first seal of the same move, as long as the store lives on. Default false. */
  readonly makesStore?: boolean;
  /** The whole seal of an earlier move, which this one replaces: the store that it names runs nowhere, as an operator knows. Default: none. */
  readonly replaces?: string | undefined;
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

/**
 * Keeps in the record that a node was attached which it does not count, for those who have not seen it: leasing ends until `recover`. After a
 * failure the next step that is refused tries again, also when the node is gone.
 */
export interface SuspectStep extends StepBase {
  readonly step: "suspect";
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
  | AdvanceStep
  | SuspectStep;

/** A step without what every step of a guard carries. */
export type OwnStep = {
  readonly [S in StepCommand as S["step"]]: Omit<S, keyof StepBase>;
}[StepCommand["step"]];

/** The record as a step left it. */
export type RecordAfter = Omit<NamespaceState, "namespace" | "id" | "phase" | "proofKey" | "seal">;

/** The server a moment later, after the quorum had the step. */
export interface CheckAnswer extends Pick<RecordAfter, "epoch" | "generation"> {
  readonly role: string;
}

/** The result of a step that was not refused. Whether it counts is the guard's decision. */
export interface Outcome {
  readonly after: RecordAfter;
  /** The runs granted, those up to the mark; 0 for every step but a lease. */
  readonly runCount: number;
  /** Number of other nodes that have acknowledged it. */
  readonly acknowledgedCount: number;
  /** Undefined for a single node: nothing was waited for in which it could have changed. */
  readonly check: CheckAnswer | undefined;
  /** Of `recover`: the new names of keys of another type that were in the place of ours. */
  readonly movedAside?: readonly string[];
}
