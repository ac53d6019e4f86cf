/**
 * The guard of one namespace in one coordinator: no step counts before it is verified, and after a possible rollback the namespace is recovered
 * before anything is leased again.
 *
 *   active ── a step finds that the store may have rolled back ──▶ recovering
 *   recovering ── claim ─▶ the quorum has the claim ─▶ confirm: the high-water mark moves to the run ceiling ─▶ the quorum has it ──▶ active
 *   any state ── a refusal that only an operator ends ──▶ stopped; the next step that succeeds ──▶ active
 *
 * The quorum has the claim before the confirm: a node without the claim may still lease below the old mark.
 * Keeps nothing whose loss could repeat a run: the checkpoint is a lower bound for the store, never a counter.
 * Guarantees: G3, G7, G8, G10 (docs/guarantees.md).
 */
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { type Lease, type LeaseRequest, ledgerIdOf } from "@callnumber/protocol/api";
import type { GuardStatus } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { type Log, SILENT_LOG } from "../log.js";
import { type Store } from "../stores/store.js";
import { CeilingMonitor } from "./ceiling.js";
import {
  assertLatest,
  type Checkpoint,
  type CheckpointFile,
  CORRUPT,
  checkpointFields,
  checkpointOf,
  GuardMemory,
  isAttended,
  isSameCheckpoint,
  mergeCheckpoints,
  versionIn,
  withMove,
} from "./checkpoint.js";
import { type Bounds, DEFAULT_BOUNDS } from "./clocks.js";
import type { LeaseStep, Outcome, OwnStep, StepCommand } from "./commands.js";
import {
  asMoveUnfinished,
  asNamespaceLost,
  type GuardState,
  isRecoverable,
  RecoveryReport,
  StateMonitor,
  strayStore,
  withCheckpoint,
} from "./guard-state.js";
import { ProofKey, provenRunOf } from "./lease-proof.js";
import { NamespaceSteps } from "./namespace-steps.js";
import type { StepSignal } from "./queued-steps.js";
import { FORKED_SEAL, type NamespaceRecord } from "./record.js";
import { refused } from "./refusals.js";
import { Suspicion } from "./suspicion.js";
import { verifyOrDiscard } from "./verify-outcome.js";

export interface NamespaceGuardOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly checkpointFile: CheckpointFile;
  /** Name of the coordinator, for the ledger. Default: the name of this host. */
  readonly coordinator?: string;
  /** Default: none. */
  readonly log?: Log;
  /** The clock, ms. */
  readonly now?: () => number;
  /** Others than the defaults are for tests, as are the two below. */
  readonly bounds?: Bounds;
  readonly pause?: (pauseMs: number) => Promise<void>;
  /** 0 to 1; only pauses depend on it. */
  readonly random?: () => number;
}

export type GuardedLeaseRequest = Pick<LeaseStep, "runCount" | "holder" | "coordinator" | "tokenId" | "leaseNonce"> &
  Pick<LeaseRequest, "lastRun" | "proof"> & { readonly signal?: StepSignal | undefined };

/** Verified runs, which may be handed out. */
export type GuardedLease = Omit<Lease, "namespace" | "nonce">;

/** How often a namespace is recovered for one request before the request fails. */
const RECOVERIES_MAX = 4;
/** How long another coordinator's claim is left alone; no two coordinators wait for the same time. */
const CLAIM_PATIENCE_MS = 100;

export class NamespaceGuard {
  readonly #options: Required<NamespaceGuardOptions>;
  readonly #steps: NamespaceSteps;
  readonly ceiling: CeilingMonitor;
  readonly #monitor: StateMonitor;
  readonly #recoveryReport: RecoveryReport;
  readonly #memory: GuardMemory;
  readonly #suspicion: Suspicion;
  #proofKey: ProofKey;
  /** The recovery in flight. */
  #recovery: Promise<boolean> | undefined;
  /** Generation of another coordinator's claim, seen a moment ago. */
  #foreignClaim: number | undefined;
  /** Generation at which two copies of the store were met; a recovered record has a later one. */
  #forkedAt: number | undefined;
  /** What this coordinator has forgotten is unknown, because its checkpoint is missing or corrupt. Undefined once that was settled. */
  #mustRecover: "missing" | "corrupt" | undefined;
  /** The store is exclusive, and has what this coordinator, or its checkpoint, saw last. */
  #isIntact = false;

  private constructor(options: Required<NamespaceGuardOptions>, checkpoint: Checkpoint, record: NamespaceRecord) {
    this.#options = options;
    this.#steps = new NamespaceSteps(options);
    this.#memory = new GuardMemory(options.namespace, options.checkpointFile, checkpoint);
    this.#suspicion = new Suspicion(options, this.#steps, this.#memory);
    this.#proofKey = new ProofKey(record.proofKey);
    this.ceiling = new CeilingMonitor(options);
    this.#recoveryReport = new RecoveryReport(options, this.ceiling, record);
    this.#monitor = new StateMonitor(options);
  }

  /**
   * Opens the guard: what it knows of the store comes from the checkpoint file, else from the store itself, once.
   * @throws CoordinatorError `namespace_not_found`; `namespace_lost` or `store_id_mismatch` when the checkpoint contradicts the store;
   *   every error of `Store.readNamespace`.
   */
  static async open(given: NamespaceGuardOptions): Promise<NamespaceGuard> {
    const options: Required<NamespaceGuardOptions> = {
      coordinator: hostname(),
      log: SILENT_LOG,
      now: Date.now,
      bounds: DEFAULT_BOUNDS,
      pause: async (pauseMs) => void (await delay(pauseMs)),
      random: Math.random,
      ...given,
    };
    const { store, namespace, checkpointFile, log } = options;
    const read = checkpointFile.read();
    const known = checkpointFile.readable();
    const record = await store.readNamespace(namespace).catch((error: unknown) => {
      if (known !== undefined) assertLatest(namespace, versionIn(known), checkpointFile);
      const cause =
        read === undefined
          ? asMoveUnfinished(error, namespace, checkpointFile)
          : asNamespaceLost(error, namespace, read);
      throw known === undefined ? cause : withCheckpoint(cause, known);
    });
    if (known !== undefined && known.storeId !== record.storeId) throw refused("FOREIGN", record.storeId, namespace);
    assertLatest(namespace, record, checkpointFile);
    // Of a store that has a checkpoint here, another one is not moved here: `move` would have refused.
    const stray = known === undefined ? strayStore(namespace, record.storeId, checkpointFile) : undefined;
    if (stray !== undefined) throw stray;
    const found = checkpointOf(record);
    const checkpoint = withMove(known === undefined ? found : mergeCheckpoints(known, found), checkpointFile);
    const guard = new NamespaceGuard(options, checkpoint, record);
    const { move } = guard.#memory;
    if (read === CORRUPT) guard.#mustRecover = "corrupt";
    else if (read === undefined && !store.isExclusive) guard.#mustRecover = "missing";
    // The first write removes a corrupt file. Before the recovery, that would let a restarted coordinator believe the store.
    if (guard.#mustRecover === undefined || move !== undefined) checkpointFile.note(checkpoint);
    // The store is believed once: the log shows what was believed.
    if (read === undefined) log.info({ namespace, ...checkpointFields(found) }, "checkpoint_created");
    if (move !== undefined) guard.#noteRefusal(move);
    guard.#isIntact = store.isExclusive && read !== CORRUPT && known !== undefined && isSameCheckpoint(known, found);
    return guard;
  }

  get namespace(): string {
    return this.#options.namespace;
  }

  get state(): GuardState {
    return this.#monitor.state;
  }

  /** The store that the guard expects, and a lower bound for everything that it returns. */
  get checkpoint(): Checkpoint {
    return this.#memory.checkpoint;
  }

  /**
   * Leases fresh runs; recovers the namespace first where the store may have rolled back.
   * @throws CoordinatorError: nothing was leased, or what was leased is discarded.
   */
  async lease({ lastRun, proof, signal, ...request }: GuardedLeaseRequest): Promise<GuardedLease> {
    this.#memory.refresh("lease");
    if (this.#forkedAt !== undefined) await this.#assertRecoveredSince(this.#forkedAt);
    const context = { checkpoint: this.checkpoint, proofKey: this.#proofKey, log: this.#options.log };
    const shown = { proof, holder: request.holder, readRecord: () => this.readRecord() };
    const provenRun = lastRun === null ? 0 : await provenRunOf({ lastRun, ...shown, ...context });
    const { after, runCount } = await this.#tryStep(async () => {
      try {
        return await this.#step({ step: "lease", ...this.#memory.lowerBounds, ...request, provenRun }, signal);
      } catch (error) {
        if ((error as CoordinatorError).code === "store_forked") await this.#sealFork();
        throw error;
      }
    });
    const { storeId, version, highWaterMark, changedAtMs } = after;
    return {
      storeId,
      version,
      firstRun: highWaterMark - runCount + 1,
      runCount,
      leasedAtMs: changedAtMs,
      proof: this.#proofKey.proofOf(storeId, ledgerIdOf(version, highWaterMark)),
    };
  }

  /** Writes the time into the record; recovers the namespace before a request has to wait for it. @throws CoordinatorError */
  async heartbeat(): Promise<void> {
    if (this.#forkedAt !== undefined) await this.#assertRecoveredSince(this.#forkedAt);
    await this.#tryStep(() => this.#step({ step: "heartbeat", ...this.#memory.lowerBounds }));
  }

  /** Reads the record. @throws CoordinatorError; `namespace_lost` when it is gone. */
  async readRecord(): Promise<NamespaceRecord> {
    const { store, namespace } = this.#options;
    try {
      return await store.readNamespace(namespace);
    } catch (error) {
      throw asNamespaceLost(error, namespace, this.checkpoint);
    }
  }

  /**
   * Reads the record for operators.
   * @throws CoordinatorError as `readRecord`, with all that is known without the store.
   */
  async showRecord(): Promise<NamespaceRecord> {
    try {
      return await this.readRecord();
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      throw withCheckpoint(error, this.checkpoint, this.#monitor.knownState(error));
    }
  }

  /** Returns the state for operators; `record` as read just now. */
  answer({ generation, nodeCount, ...mark }: NamespaceRecord): GuardStatus {
    const [headroomRuns, lastRecovery] = [this.ceiling.headroomAbove(mark), this.#recoveryReport.last];
    return { ...this.state, generation, nodeCount, headroomRuns, lastRecovery };
  }

  close(): void {
    this.#memory.close();
  }

  /** Does a step. Where the store may have rolled back, recovers the namespace and tries again. Keeps the state. */
  async #tryStep(step: () => Promise<Outcome>): Promise<Outcome> {
    for (let recoveries = 0; ; recoveries++) {
      try {
        if (this.#mustRecover !== undefined) await this.#recoverOnce(this.#mustRecover);
        const outcome = await step();
        this.#mustRecover = undefined;
        this.#foreignClaim = undefined;
        this.#monitor.noteSuccess(outcome.after);
        return outcome;
      } catch (error) {
        if (error instanceof CoordinatorError) this.#noteRefusal(error);
        if (!isRecoverable(error) || recoveries === RECOVERIES_MAX) throw error;
        await this.#recover(error);
      }
    }
  }

  async #recoverOnce(checkpoint: "missing" | "corrupt"): Promise<void> {
    const { now, bounds } = this.#options;
    const record = await this.readRecord();
    // By this clock alone: asked again until a step has succeeded, which compares the clocks.
    if (checkpoint === "missing" && isAttended(record, now(), bounds)) return;
    const generation = String(record.generation);
    const cause = refused(checkpoint === "corrupt" ? "STALEGEN" : "GAP", generation, this.namespace);
    // What another coordinator recovered need not cover what this one has forgotten.
    if (!(await this.#recover(cause))) throw refused("RACED", generation, this.namespace);
    this.#mustRecover = undefined;
  }

  /** However many requests wait, there is one recovery. Resolves to false when another coordinator was faster, after a pause. */
  #recover(cause: CoordinatorError): Promise<boolean> {
    this.#recovery ??= this.#claimAndConfirm(cause).finally(() => {
      this.#recovery = undefined;
    });
    return this.#recovery;
  }

  async #claimAndConfirm({ reason = "conflict", generation = 0 }: CoordinatorError): Promise<boolean> {
    if (reason === "claimed" && this.#foreignClaim !== generation) {
      await this.#waitForOthers(generation);
      return false;
    }
    try {
      const [idleSinceMs, isIntact] = [this.#recoveryReport.changedAtMs, this.#isIntact];
      const { generationMin } = this.#memory.lowerBounds;
      const { after: claimed } = await this.#step({ step: "claim", generation, generationMin });
      const { floor } = this.#memory.lowerBounds;
      const skippedBy = reason === "heartbeat_expired" && isIntact ? this.#options.coordinator : undefined;
      const confirm = { step: "confirm", generation: claimed.generation, floor, skippedBy } as const;
      const { after: confirmed } = await this.#step(confirm);
      this.#recoveryReport.note({ reason, idleSinceMs, claimed, confirmed });
      this.#proofKey = new ProofKey((await this.readRecord()).proofKey);
      return true;
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      this.#noteRefusal(error);
      if (error.reason !== "conflict") throw error;
      await this.#waitForOthers(error.generation ?? generation);
      return false;
    }
  }

  async #waitForOthers(generation: number): Promise<void> {
    this.#foreignClaim = generation;
    await this.#options.pause(CLAIM_PATIENCE_MS * (0.5 + this.#options.random()));
  }

  /** Sends one step and verifies what it did: where this rejects, the step has no effect that may be used. */
  async #step(own: OwnStep, signal?: StepSignal): Promise<Outcome> {
    this.#memory.refresh(own.step);
    const command = { ...own, ...this.#memory.base } as StepCommand;
    const outcome = await this.#steps.do(command, signal).catch(async (error: unknown) => {
      this.#memory.noteMove(error);
      await this.#suspicion.noteRefusal(error, own.step);
      throw asNamespaceLost(this.ceiling.noteRefusal(error), this.namespace, this.checkpoint);
    });
    // At once, and in the order of the steps: what a later step saw must not be held against an earlier one.
    verifyOrDiscard(this.#options, { command, outcome, seenLedgerId: this.checkpoint.ledgerId });
    const { after } = outcome;
    this.#recoveryReport.changedAtMs = after.changedAtMs;
    this.#isIntact = this.#options.store.isExclusive;
    // On file before the outcome is used.
    await this.#memory.noteStep(after);
    if (command.step === "heartbeat") this.ceiling.assertNear(after);
    return outcome;
  }

  /** @throws CoordinatorError `store_forked` until an operator has recovered a forked store. */
  async #assertRecoveredSince(forkedAt: number): Promise<void> {
    const { generation } = await this.readRecord();
    if (generation <= forkedAt) throw refused("FORKED", "0", this.namespace);
    this.#forkedAt = undefined;
  }

  /** Seals a forked store. A partitioned master lacks runs, too, and is no copy. @throws CoordinatorError when the quorum does not follow. */
  async #sealFork(): Promise<void> {
    const lowerBounds = this.#memory.lowerBounds;
    await this.#step({ step: "heartbeat", ...lowerBounds });
    // Where this fails, at least this coordinator leases no more.
    await this.#step({ step: "seal", ...lowerBounds, seal: FORKED_SEAL }).catch((error: Error) => {
      this.#options.log.error({ namespace: this.namespace, reason: error.message }, "seal_failed");
    });
  }

  #noteRefusal(error: CoordinatorError): void {
    this.#monitor.noteRefusal(error);
    if (error.code === "store_forked") this.#forkedAt ??= this.checkpoint.generation;
  }
}
