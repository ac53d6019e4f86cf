/**
 * Keeps runs in hand, so that minting does not wait for the network. Knows nothing of sequences and call numbers.
 *
 *   idle ── a run is wanted ──▶ asking ── lease ──▶ idle
 *                               │    ▲
 *                    passing    │    │ after a pause: full jitter, never less than Retry-After
 *                    failure    ▼    │
 *                               pausing            a refusal that waiting can't mend ──▶ idle, waiters are told
 *
 *   any state ── close() ──▶ closed: nothing is asked or handed out any more
 *   any state ── stop(): another store, one that has forgotten runs, a copy of one; or this process is a copy
 *             ──▶ stopped: the same, the alarm is raised, and every caller is told why
 *
 * However many callers wait, one request is under way. Hunger says how much is kept in hand: it begins at one run, doubles when
 * callers had to wait, and halves when a lease lasted long. A small importer leaves little unused, a hungry one asks seldom. Up to the
 * largest lease it is the size of a request, made when half of the last one is left; beyond it, requests are made earlier.
 * A request whose answer is lost, late or wrong is never repeated with the same nonce: its runs are burnt.
 */
import process from "node:process";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import {
  type ClientErrorCode,
  ERROR_RULES,
  isErrorCode,
  type Lease,
  ledgerIdOf,
  type ReportRequest,
} from "@callnumber/protocol/http-api";
import { retryDelayMs } from "./backoff.js";
import { ClientError } from "./client-error.js";
import { checkedLease } from "./lease-check.js";
import type { CallOptions } from "./lease-source.js";
import type { ClientHooks, Settings } from "./options.js";
import { type HeldRun, RunStock } from "./run-stock.js";

/** A lease that lasted longer than this was larger than needed. */
const CALM_LEASE_MS = 10_000;
/** Hunger at most, in largest leases: then the next one is asked for while two wait. */
const HUNGER_LEASES_MAX = 4;
/** A shorter wait is no slow coordinator, but a caller that did not let the event loop turn: asking earlier would not help it. */
const SLOW_ANSWER_MS = 5;
/** After so long without a response a client without a hook for it warns. */
const WARNING_AFTER_MS = 2_000;
const NO_ANSWER = "the coordinator has not answered yet";
/** How long a close waits for the answer to a lease request under way. */
const CLOSE_GRACE_MS = 1_000;

/**
 * Refusals after which the runs in hand must not be used any more either: the store is not the one that leased them, or has
 * forgotten them, or there are two of it. Another holder may get the same runs.
 */
const STOPS_FOR_GOOD: ReadonlySet<ClientErrorCode> = new Set([
  "other_store",
  "run_not_rising",
  "run_beyond_mark",
  "store_replaced",
  "store_forked",
]);

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: ClientError) => void;
}

export class LeaseBuffer {
  readonly #settings: Settings;
  readonly #onStopped: () => void;
  readonly #stock = new RunStock();
  readonly #waiters = new Set<Waiter>();
  readonly #reports = new Set<Promise<void>>();

  #asking = false;
  /** Settled when the asking has ended. */
  #asked: Promise<void> = Promise.resolve();
  #closed = false;
  #stoppedBy: ClientError | undefined;
  #lastFailure: ClientError | undefined;
  #endPause: (() => void) | undefined;
  /** Of the lease request under way. */
  #abort = new AbortController();

  #storeId: string | undefined;
  #lastRun: number | null = null;
  /** Of the lease that `#lastRun` came with. */
  #receipt: string | null = null;
  #lastLeaseRunCount = 0;
  #lastLeaseAtMs = 0;
  /** How many runs are wanted in hand, spares apart. */
  #hunger = 1;
  /** A caller found no run, and none has come since. */
  #isDry = false;
  #hasWarned = false;
  #dryAtMs = 0;

  /** `onStopped` is called once, when the runs in hand must not be used any more either. */
  constructor(settings: Settings, onStopped: () => void) {
    this.#settings = settings;
    this.#onStopped = onStopped;
    this.#storeId = settings.expectedStoreId;
  }

  /** Id of the store that the runs come from; undefined before the first lease of a client that pins none. */
  get storeId(): string | undefined {
    return this.#storeId;
  }

  /** Whether runs are being asked for, or will be after a pause. */
  get isAsking(): boolean {
    return this.#asking;
  }

  /** The next run, or undefined when none is in hand: then one is asked for in the background. */
  take(): HeldRun | undefined {
    this.#mustBeUsable();
    const held = this.#stock.take();
    if (held === undefined) this.#noteDry();
    return held;
  }

  /** How many numbers may be left in the run in use before it is time to refill: at least that many means "now". */
  refillBelow(): number {
    if (!this.#settings.refillAhead) return 0;
    const waiting = this.#stock.runCount;
    if (waiting < this.#settings.spareRuns) return Number.POSITIVE_INFINITY;
    return ((this.#lastLeaseRunCount + this.#hungerBeyondLargest()) / 2 - waiting) * SEQUENCE_COUNT;
  }

  /** None while the coordinator grants less than is asked for: what is scarce is not hoarded. */
  #hungerBeyondLargest(): number {
    const { leaseRunCountMax } = this.#settings;
    return this.#lastLeaseRunCount < leaseRunCountMax ? 0 : Math.max(this.#hunger - leaseRunCountMax, 0);
  }

  /** Asks for runs in the background, unless that is already under way. */
  refill(): void {
    if (this.#asking || this.#isOver) return;
    this.#asking = true;
    this.#lastFailure = undefined;
    const timer = setTimeout(() => this.#warn(), WARNING_AFTER_MS);
    timer.unref();
    this.#asked = this.#askUntilLeased().finally(() => clearTimeout(timer));
  }

  /**
   * Resolves when runs have come; another caller may have taken them by then.
   * @throws ClientError the refusal, when waiting can't mend it; after `waitMs` the last failure, or `wait_timed_out`.
   */
  async untilRunsCome(waitMs: number): Promise<void> {
    this.#mustBeUsable();
    this.refill();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let waiter: Waiter | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        waiter = { resolve, reject };
        this.#waiters.add(waiter);
        timer = setTimeout(() => reject(this.#waitedInVain()), waitMs);
      });
    } finally {
      clearTimeout(timer);
      if (waiter) this.#waiters.delete(waiter);
    }
  }

  /** Reports in the background how far a run got. */
  report({ lease, run }: HeldRun, progress: Omit<ReportRequest, "nonce">): void {
    const report = this.#send(lease, run, progress).finally(() => this.#reports.delete(report));
    this.#reports.add(report);
  }

  /** No more runs for anyone, and none of those in hand, without a report: they may be somebody else's. The first reason stays. */
  stop(reason: ClientError): void {
    if (this.#isOver) return;
    this.#stoppedBy = reason;
    this.#stock.empty();
    this.#onStopped();
    this.#endPause?.();
    this.#tellWaiters(reason);
    this.#call("onAlarm", reason);
  }

  /**
   * Stops all asking, burns what waits, reports that and how far the run in use got, and resolves when every report has
   * arrived or failed.
   */
  async close(held: HeldRun | undefined, lastSequence: number | null): Promise<void> {
    this.#closed = true;
    if (held !== undefined) this.report(held, { lastSequence, state: "closed" });
    this.#endPause?.();
    this.#tellWaiters(closedError());
    for (const lease of this.#stock.empty()) {
      this.report({ lease, run: lease.firstRun }, { lastSequence: null, state: "closed" });
    }
    // A lease that is granted just now would stay open in the ledger for ever: its answer is worth a short wait.
    const timer = setTimeout(() => this.#abort.abort(), CLOSE_GRACE_MS);
    await this.#asked;
    clearTimeout(timer);
    await Promise.all(this.#reports);
  }

  get #isOver(): boolean {
    return this.#closed || this.#stoppedBy !== undefined;
  }

  #mustBeUsable(): void {
    if (this.#closed) throw closedError();
    if (this.#stoppedBy) throw this.#stoppedBy;
  }

  #noteDry(): void {
    const waitsForFirstLease = this.#lastLeaseRunCount === 0;
    if (!this.#isDry && !waitsForFirstLease && this.#settings.refillAhead) {
      this.#growHunger(this.#settings.leaseRunCountMax);
      this.#call("onRefillLate");
    }
    if (!this.#isDry) this.#dryAtMs = performance.now();
    this.#isDry = true;
    this.refill();
  }

  #growHunger(most: number): void {
    if (this.#hunger < most) this.#hunger = Math.min(this.#hunger * 2, most);
  }

  async #askUntilLeased(): Promise<void> {
    for (let attempt = 1; !this.#isOver; attempt++) {
      try {
        const lease = await this.#leaseOnce();
        if (this.#stoppedBy) break;
        if (this.#closed) {
          // Too late to be used: burnt, and the ledger is told so.
          this.report({ lease, run: lease.firstRun }, { lastSequence: null, state: "closed" });
          break;
        }
        this.#asking = false;
        this.#lastFailure = undefined;
        this.#accept(lease);
        return;
      } catch (thrown) {
        const error = asClientError(thrown);
        if (this.#isOver) break;
        this.#lastFailure = error;
        if (!mayPass(error)) {
          this.#asking = false;
          if (STOPS_FOR_GOOD.has(error.code)) this.stop(error);
          else this.#tellWaiters(error);
          return;
        }
        const retryInMs = retryDelayMs(attempt, error.retryAfterMs);
        this.#call("onCoordinatorAway", { error, attempt, retryInMs });
        await this.#pause(retryInMs);
      }
    }
    this.#asking = false;
  }

  async #leaseOnce(): Promise<Lease> {
    const { source, namespace, holder } = this.#settings;
    const nonce = newNonce();
    const runCount = this.#runCountToAsk();
    const evidence = { lastRun: this.#lastRun, receipt: this.#receipt };
    const spareRunCount = this.#stock.runCount;
    const request = { runCount, nonce, holder, ...evidence, sentAtMs: Date.now(), spareRunCount };
    this.#abort = new AbortController();
    const answer = await this.#request((options) => source.lease(namespace, request, options), this.#abort);
    const expected = { namespace, nonce, runCountMax: runCount, storeId: this.#storeId, lastRun: this.#lastRun };
    return checkedLease(answer, expected);
  }

  #runCountToAsk(): number {
    const { spareRuns, leaseRunCountMax, stopWhenExhausted } = this.#settings;
    if (stopWhenExhausted) return 1;
    const wasCalm = !this.#isDry && performance.now() - this.#lastLeaseAtMs > CALM_LEASE_MS;
    if (wasCalm) this.#hunger = Math.max(Math.floor(Math.min(this.#hunger, leaseRunCountMax) / 2), 1);
    const missing = spareRuns - this.#stock.runCount + (this.#isDry ? 1 : 0);
    return Math.min(Math.max(this.#hunger, missing), leaseRunCountMax);
  }

  #accept(lease: Lease): void {
    this.#stock.add(lease);
    this.#storeId = lease.storeId;
    this.#lastRun = ledgerIdOf(lease.version, lease.firstRun + lease.runCount - 1);
    this.#receipt = lease.receipt;
    this.#lastLeaseRunCount = lease.runCount;
    this.#lastLeaseAtMs = performance.now();
    const { leaseRunCountMax } = this.#settings;
    const wasSlow = this.#isDry && this.#lastLeaseAtMs - this.#dryAtMs > SLOW_ANSWER_MS;
    if (wasSlow && this.#hunger >= leaseRunCountMax) this.#growHunger(leaseRunCountMax * HUNGER_LEASES_MAX);
    this.#isDry = false;
    for (const waiter of this.#waiters) waiter.resolve();
    this.#call("onLease", lease);
    if (this.#stock.runCount < this.#settings.spareRuns) this.refill();
  }

  /** Once: a program that hangs without a word is all that its operator sees of an outage. */
  #warn(): void {
    const { code, message } = this.#lastFailure ?? {};
    const isAnswered = code !== undefined && code !== "coordinator_unreachable";
    if (this.#hasWarned || isAnswered || this.#settings.hooks.onCoordinatorAway !== undefined) return;
    this.#hasWarned = true;
    const text = `no run came within ${WARNING_AFTER_MS} ms: ${message ?? NO_ANSWER}; the client keeps trying`;
    // Not every platform that has `fetch` has it.
    process.emitWarning?.(text, "CallnumberWarning");
  }

  #tellWaiters(error: ClientError): void {
    for (const waiter of this.#waiters) waiter.reject(error);
  }

  /** A pause of the background never keeps a process alive; callers that wait do. */
  async #pause(delayMs: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#endPause = resolve;
      timer = setTimeout(resolve, delayMs);
      timer.unref();
    });
    clearTimeout(timer);
    this.#endPause = undefined;
  }

  async #send({ nonce, version }: Lease, run: number, progress: Omit<ReportRequest, "nonce">): Promise<void> {
    const { source, namespace } = this.#settings;
    try {
      await this.#request((options) =>
        source.report(namespace, ledgerIdOf(version, run), { nonce, ...progress }, options),
      );
    } catch (error) {
      this.#call("onReportFailed", asClientError(error));
    }
  }

  /** One request with its time limit, also for a source that does not heed the signal. */
  async #request<T>(send: (options: CallOptions) => Promise<T>, controller = new AbortController()): Promise<T> {
    const { requestTimeoutMs } = this.#settings;
    const tooLong = `the coordinator did not answer within ${requestTimeoutMs} ms`;
    const timer = setTimeout(
      () => controller.abort(new ClientError("coordinator_unreachable", tooLong)),
      requestTimeoutMs,
    );
    try {
      const { signal } = controller;
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      // In a turn of its own: what is foreign never runs in the middle of our own steps.
      return await Promise.race([Promise.resolve().then(() => send({ signal })), aborted]);
    } finally {
      clearTimeout(timer);
    }
  }

  #waitedInVain(): ClientError {
    const { waitTimeoutMs } = this.#settings;
    const last = this.#lastFailure;
    const message = `no run came within ${waitTimeoutMs} ms: ${last?.message ?? NO_ANSWER}`;
    return new ClientError(last?.code ?? "wait_timed_out", message, { cause: last, retryAfterMs: last?.retryAfterMs });
  }

  /** In a turn of its own: a hook may close the client or throw, and must not stand between a caller and its number. */
  #call<K extends keyof ClientHooks>(name: K, ...parameters: Parameters<NonNullable<ClientHooks[K]>>): void {
    const hook = this.#settings.hooks[name] as ((...parameters: unknown[]) => void) | undefined;
    if (hook !== undefined) queueMicrotask(() => hook(...parameters));
  }
}

export function closedError(): ClientError {
  return new ClientError(
    "client_closed",
    "this client is closed; its run is given up. Create a new client for more numbers",
  );
}

/** 96 random bits in 16 characters: the ledger keeps one for each lease, so it is short. */
function newNonce(): string {
  return Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(12))).toString("base64url");
}

function mayPass(error: ClientError): boolean {
  return (
    error.code === "coordinator_unreachable" || (isErrorCode(error.code) && ERROR_RULES[error.code].retry === "later")
  );
}

function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  const { code, message, retryAfterMs } = (error ?? {}) as {
    code?: unknown;
    message?: unknown;
    retryAfterMs?: unknown;
  };
  return new ClientError(isErrorCode(code) ? code : "internal_error", String(message ?? error), {
    cause: error,
    retryAfterMs: typeof retryAfterMs === "number" ? retryAfterMs : undefined,
  });
}
