/**
 * The guard of one namespace in one coordinator: no step counts before it is judged, and a doubt about the store is settled
 * before anything is leased again.
 *
 *   open ── a step finds that the store may have forgotten something ──▶ in doubt
 *   in doubt ── claim ─▶ the quorum has the claim ─▶ confirm: the mark jumps onto the line ─▶ the quorum has it ──▶ open
 *   any state ── a refusal that only an operator ends ──▶ fenced; the next step that is not refused ──▶ open
 *
 * Claim before jump, with the quorum in between: a node that has not heard of the claim may still lease below the old mark.
 * Keeps nothing whose loss could repeat a run: what it remembers is a floor for the store, never a counter.
 * Guarantees: G3, G7, G10 (docs/guarantees.md).
 */
import { type GuardAnswer, type Holder, ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { LeaseStep, NamespaceRecord, Outcome, StepCommand, Store } from "../store.js";
import type { Bounds } from "./bounds.js";
import { CeilingMonitor } from "./ceiling.js";
import { type Checkpoint, type CheckpointFile, CORRUPT, checkpointOf, isSameCheckpoint, merged } from "./checkpoint.js";
import {
  activeSince,
  asEmptied,
  clearsState,
  type GuardState,
  isRecoverable,
  nextState,
  RecoveryReport,
  withMemory,
} from "./guard-state.js";
import { FORKED_SEAL, ReceiptKey } from "./record.js";
import { refused } from "./refusals.js";
import { freshNonce, verifyOrDiscard } from "./verify-outcome.js";

export interface NamespaceGuardOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly bounds: Bounds;
  readonly now: () => number;
  readonly log: Log;
  readonly witness: CheckpointFile;
  /** Waits; a simulation lets its own clock run. */
  readonly pause: (pauseMs: number) => Promise<void>;
  /** 0 to 1; only pauses depend on it. */
  readonly random: () => number;
}

export interface GuardedLeaseRequest {
  readonly runCount: number;
  readonly holder: Holder;
  readonly coordinator: string;
  readonly tokenId: string | undefined;
  readonly leaseNonce: string;
  readonly lastRun: number | null;
  readonly receipt: string | null;
}

type AskedLease = Pick<LeaseStep, "runCount" | "held" | "holder" | "coordinator" | "tokenId" | "leaseNonce">;

/** Runs that may leave the house. */
export interface GuardedLease {
  readonly storeId: string;
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
  readonly receipt: string;
}

/** How often a doubt is settled for one request before the request is refused. */
const SETTLE_TRIES_MAX = 4;
/** How long another coordinator's claim is left alone, and no two coordinators for the same time. */
const CLAIM_PATIENCE_MS = 100;

type Own<S extends StepCommand> = Omit<S, "storeId" | "nonce" | "isSilenceAccepted">;
type OwnCommand = { readonly [S in StepCommand as S["step"]]: Own<S> }[StepCommand["step"]];

export class NamespaceGuard {
  readonly #options: NamespaceGuardOptions;
  #remembered: Checkpoint;
  #receiptKey: ReceiptKey;
  #state: GuardState;
  #settling: Promise<void> | undefined;
  /** The writing that is about to begin. */
  #noting: Promise<void> | undefined;
  /** Generation of a claim of somebody else, seen a moment ago. */
  #foreignClaim: number | undefined;
  /** Generation at which two copies of the store were met; a recovered record has a later one. */
  #forkedAt: number | undefined;
  /** What a witness knew is lost: the store is doubted once, whatever it says. */
  #mustJump = false;
  /** Nobody else can have leased, and what is remembered is what was found: however long the silence, it was only that. */
  #isSilenceAccepted = false;
  readonly line: CeilingMonitor;
  readonly #recovery: RecoveryReport;

  private constructor(options: NamespaceGuardOptions, remembered: Checkpoint, record: NamespaceRecord) {
    this.#options = options;
    this.#remembered = remembered;
    this.#receiptKey = new ReceiptKey(record.receiptKey);
    this.line = new CeilingMonitor(options);
    this.#recovery = new RecoveryReport(options, this.line, record);
    this.#state = activeSince(options.now());
  }

  /**
   * Gets to know the store of a namespace: by the witness, or else by believing the store once.
   * @throws CoordinatorError `namespace_not_initialised`; `store_emptied` or `store_replaced` when a witness knows better;
   *   whatever the store says of the record.
   */
  static async open(options: NamespaceGuardOptions): Promise<NamespaceGuard> {
    const { store, namespace, witness } = options;
    const found = witness.read();
    const witnessed = found === CORRUPT ? undefined : found;
    const record = await store.readNamespace(namespace).catch((error: unknown) => {
      throw witnessed === undefined ? error : withMemory(asEmptied(error, namespace, witnessed), witnessed);
    });
    if (witnessed !== undefined && witnessed.storeId !== record.storeId) {
      throw refused("FOREIGN", record.storeId, namespace);
    }
    const seen = checkpointOf(record);
    const remembered = witnessed === undefined ? seen : merged(witnessed, seen);
    // A damaged file goes once ours is written: not before the jump, or the start after a kill would believe the store.
    if (found !== CORRUPT) witness.note(remembered);
    // Believed once, because nobody here knew better: who expected otherwise finds out by this line.
    if (found === undefined) options.log.info({ namespace, ...seen }, "pin");
    const guard = new NamespaceGuard(options, remembered, record);
    guard.#mustJump = found === CORRUPT;
    guard.#isSilenceAccepted = store.isExclusive && witnessed !== undefined && isSameCheckpoint(witnessed, seen);
    return guard;
  }

  get namespace(): string {
    return this.#options.namespace;
  }

  /** What is remembered: the pin of the store, and a floor for everything it says. */
  get remembered(): Checkpoint {
    return this.#remembered;
  }

  /**
   * Leases fresh runs; settles a doubt first when there is one.
   * @throws CoordinatorError: nothing was leased, or what was leased is burnt.
   */
  async lease(request: GuardedLeaseRequest): Promise<GuardedLease> {
    const { runCount, holder, coordinator, tokenId, leaseNonce, lastRun, receipt } = request;
    if (this.#forkedAt !== undefined) await this.#mustNotBeForked(this.#forkedAt);
    const held = lastRun === null ? 0 : await this.#evidenceOf(lastRun, receipt, holder);
    const asked = { runCount, held, holder, coordinator, tokenId, leaseNonce };
    const { after, runCount: granted } = await this.#settled(() => this.#takeLease(asked));
    const { storeId, version, highWaterMark, changedAtMs } = after;
    return {
      storeId,
      version,
      firstRun: highWaterMark - granted + 1,
      runCount: granted,
      leasedAtMs: changedAtMs,
      receipt: this.#receiptKey.receiptOf(storeId, ledgerIdOf(version, highWaterMark)),
    };
  }

  /** Writes the time into the record, and settles a doubt before anybody waits for it. @throws CoordinatorError */
  async touch(): Promise<void> {
    if (this.#forkedAt !== undefined) await this.#mustNotBeForked(this.#forkedAt);
    await this.#settled(() => {
      const { ledgerId: floor, generation: generationMin } = this.#remembered;
      return this.#take({ step: "touch", floor, generationMin });
    });
  }

  /** Ends leasing, with all refusals of a lease. @throws CoordinatorError */
  async seal(seal: string): Promise<Outcome> {
    return await this.#settled(() => {
      const { ledgerId: floor, generation: generationMin } = this.#remembered;
      return this.#take({ step: "seal", floor, generationMin, seal });
    });
  }

  /** The record as it stands. @throws CoordinatorError; `store_emptied` when it is gone. */
  async readRecord(): Promise<NamespaceRecord> {
    const { store, namespace } = this.#options;
    try {
      return await store.readNamespace(namespace);
    } catch (error) {
      throw asEmptied(error, namespace, this.#remembered);
    }
  }

  /**
   * The record for operators, who are told more where it can't be read.
   * @throws CoordinatorError as `readRecord`, with all that is known without the store.
   */
  async showRecord(): Promise<NamespaceRecord> {
    try {
      return await this.readRecord();
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      throw withMemory(error, this.#remembered, nextState(error, this.#state, this.#options.now()));
    }
  }

  /** The state for operators; `record` as read just now. */
  answer({ generation, nodeCount, ...mark }: NamespaceRecord): GuardAnswer {
    const [roomRuns, lastRecovery] = [this.line.roomAbove(mark), this.#recovery.last];
    return { ...this.#state, generation, nodeCount, roomRuns, lastRecovery };
  }

  get state(): GuardState {
    return this.#state;
  }

  close(): void {
    this.#options.witness.close();
  }

  /** Does a step until it is not in doubt any more, and keeps the state. */
  async #settled(attempt: () => Promise<Outcome>): Promise<Outcome> {
    for (let tries = 0; ; tries++) {
      try {
        if (this.#mustJump) await this.#jump();
        const outcome = await attempt();
        this.#foreignClaim = undefined;
        if (clearsState(this.#state, outcome.after)) this.#setState(activeSince(this.#options.now()));
        return outcome;
      } catch (error) {
        if (error instanceof CoordinatorError) this.#noteRefusal(error);
        if (!isRecoverable(error) || tries === SETTLE_TRIES_MAX) throw error;
        await this.#settle(error);
      }
    }
  }

  async #jump(): Promise<void> {
    const { generation } = await this.readRecord();
    await this.#settle(refused("STALEGEN", String(generation), this.namespace));
    this.#mustJump = false;
  }

  /** However many requests wait, one settles. */
  #settle(doubt: CoordinatorError): Promise<void> {
    this.#settling ??= this.#settleOnce(doubt).finally(() => {
      this.#settling = undefined;
    });
    return this.#settling;
  }

  async #settleOnce(doubt: CoordinatorError): Promise<void> {
    const generation = doubt.generation ?? 0;
    if (doubt.code === "store_claimed" && this.#foreignClaim !== generation) {
      await this.#leaveToOthers(generation);
      return;
    }
    try {
      const idleSinceMs = this.#recovery.changedAtMs;
      const { generation: generationMin } = this.#remembered;
      const { after: claimed } = await this.#take({ step: "claim", generation, generationMin });
      const { ledgerId: floor } = this.#remembered;
      const { after: confirmed } = await this.#take({ step: "confirm", generation: claimed.generation, floor });
      this.#recovery.note({ code: doubt.code, idleSinceMs, claimed, confirmed });
      this.#receiptKey = new ReceiptKey((await this.readRecord()).receiptKey);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      this.#noteRefusal(error);
      if (error.code !== "claim_raced") throw error;
      await this.#leaveToOthers(error.generation ?? generation);
    }
  }

  async #leaveToOthers(generation: number): Promise<void> {
    const { pause, random } = this.#options;
    this.#foreignClaim = generation;
    await pause(CLAIM_PATIENCE_MS * (0.5 + random()));
  }

  /** Written out part by part: it is done for every lease. */
  #takeLease({ runCount, held, holder, coordinator, tokenId, leaseNonce }: AskedLease): Promise<Outcome> {
    const { storeId, ledgerId: floor, generation: generationMin } = this.#remembered;
    const step: LeaseStep = {
      step: "lease",
      storeId,
      nonce: freshNonce(),
      isSilenceAccepted: this.#isSilenceAccepted,
      floor,
      generationMin,
      runCount,
      held,
      holder,
      coordinator,
      tokenId,
      leaseNonce,
    };
    return this.#do(step).catch((error: unknown) => this.#mustBeFork(error));
  }

  /** One step, judged: what it rejects with has no effect that anybody may use. */
  #take(own: OwnCommand): Promise<Outcome> {
    const { storeId } = this.#remembered;
    return this.#do({
      ...own,
      storeId,
      nonce: freshNonce(),
      isSilenceAccepted: this.#isSilenceAccepted,
    } as StepCommand);
  }

  async #do(command: StepCommand): Promise<Outcome> {
    const { store, namespace } = this.#options;
    let outcome: Outcome;
    try {
      outcome = await store.step(namespace, command);
    } catch (error) {
      throw asEmptied(this.line.judged(error), namespace, this.#remembered);
    }
    // At once, and in the order of the steps: what a later step saw must not be held against an earlier one.
    verifyOrDiscard(this.#options, { command, outcome, seenLedgerId: this.#remembered.ledgerId });
    this.#remember(outcome);
    await this.#noted();
    if (command.step === "touch") this.line.mustBeNear(outcome.after);
    return outcome;
  }

  #remember({ after }: Outcome): void {
    this.#remembered = { ...merged(this.#remembered, checkpointOf(after)), nodeCount: after.nodeCount };
    this.#recovery.changedAtMs = after.changedAtMs;
  }

  /**
   * What was seen until now is on file when this resolves: nothing leaves the house before. One writing for all steps that were
   * answered at the same moment.
   */
  #noted(): Promise<void> {
    this.#noting ??= Promise.resolve().then(() => {
      this.#noting = undefined;
      this.#options.witness.note(this.#remembered);
    });
    return this.#noting;
  }

  /**
   * What a holder's last run proves. With a receipt: that this store leased it. Without one it proves nothing, and is refused
   * when the store never leased that run.
   */
  async #evidenceOf(lastRun: number, receipt: string | null, holder: Holder): Promise<number> {
    const { namespace, log } = this.#options;
    const { storeId, ledgerId } = this.#remembered;
    // Nothing new: a store that has not leased this run lies below the floor of the step, and the step says so first.
    if (lastRun <= ledgerId) return 0;
    if (receipt !== null && this.#receiptKey.isReceiptOf(receipt, storeId, lastRun)) return lastRun;
    const { version, highWaterMark } = await this.readRecord();
    const mark = ledgerIdOf(version, highWaterMark);
    if (lastRun <= mark) return 0;
    log.warn({ namespace, mark, lastRun, holder }, "run_beyond_mark");
    throw new CoordinatorError(
      "run_beyond_mark",
      `the last run held is ${lastRun}, but this store's last one is ${mark}, and no receipt of this store came with it: the ` +
        "holder has met another store. Nothing was leased. Stop the importer and tell the operator",
    );
  }

  async #mustNotBeForked(forkedAt: number): Promise<void> {
    const { generation } = await this.readRecord();
    if (generation > forkedAt) this.#forkedAt = undefined;
    else throw refused("FORKED", "0", this.namespace);
  }

  #noteRefusal(error: CoordinatorError): void {
    this.#setState(nextState(error, this.#state, this.#options.now()));
    if (error.code === "store_forked") this.#forkedAt ??= this.#remembered.generation;
  }

  /**
   * A master that is alone on its side of a cut has never leased what the other side leases: that is no second store. Only what
   * the quorum still follows is one; then it is sealed, for the other coordinators and the next start of this one.
   * @throws what it was given, or why this server is not the one to judge.
   */
  async #mustBeFork(error: unknown): Promise<never> {
    if (!(error instanceof CoordinatorError) || error.code !== "store_forked") throw error;
    const { ledgerId: floor, generation: generationMin } = this.#remembered;
    await this.#take({ step: "touch", floor, generationMin });
    try {
      await this.#take({ step: "seal", floor, generationMin, seal: FORKED_SEAL });
    } catch (failure) {
      // This coordinator leases no more in any case.
      const { log, namespace } = this.#options;
      log.error({ namespace, reason: (failure as Error).message }, "seal_failed");
    }
    throw error;
  }

  #setState(state: GuardState): void {
    const { log, namespace } = this.#options;
    const hasChanged = state.code !== this.#state.code;
    this.#state = state;
    if (!hasChanged) return;
    const { code, explanation } = state;
    log[state.state === "open" ? "info" : "warn"]({ namespace, code, explanation }, state.state);
  }
}
