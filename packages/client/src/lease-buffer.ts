/**
 * Buffers leased runs, so that minting does not wait for the network. Knows nothing of sequences and call numbers.
 *
 *   idle ── a run is wanted ──▶ requesting ── lease ──▶ idle
 *                               │    ▲
 *                   transient   │    │ after a pause: full jitter, never less than Retry-After
 *                   error       ▼    │
 *                               pausing            an error that no retry fixes ──▶ idle, callers get it
 *
 *   any state ── close() ──▶ closed: nothing is requested or handed out any more
 *   any state ── stop(): another store, one that has lost runs, a copy of one; or this process is a copy
 *             ──▶ stopped: the same, the alarm is raised, and every caller gets the reason
 *
 * However many callers wait, one request is in flight. Its size and its moment are the demand's (demand.ts).
 * A request whose response is lost, late or invalid is never repeated with the same nonce: its runs are discarded.
 */
import process from "node:process";
import { type ClientErrorCode, type Lease, ledgerIdOf, type ReportRequest } from "@callnumber/protocol/http-api";
import { ClientError, closedError } from "./client-error.js";
import { Demand } from "./demand.js";
import { checkedLease } from "./lease-check.js";
import type { CallOptions } from "./lease-source.js";
import { EventLoop, timers } from "./node-process.js";
import type { ClientHooks, Settings } from "./options.js";
import { asClientError, isRetryable, newNonce, retryDelayMs, withTimeout } from "./requests.js";
import { type HeldRun, RunStock } from "./run-stock.js";
import { Waiters } from "./waiters.js";

/** After so long without a response a client without a hook for it warns. */
const WARNING_AFTER_MS = 2_000;
const NO_RESPONSE = "the coordinator has not answered yet";
/** How long a close waits for the response to a lease request in flight. */
const CLOSE_GRACE_MS = 1_000;

/**
 * Errors after which the buffered runs must not be used any more either: the store is not the one that leased them, or has lost them, or
 * there are two of it. Another holder may get the same runs.
 */
const STOPPING_CODES: ReadonlySet<ClientErrorCode> = new Set([
  "store_mismatch",
  "run_not_increasing",
  "run_above_high_water_mark",
  "store_id_mismatch",
  "store_forked",
]);

export class LeaseBuffer {
  readonly #settings: Settings;
  readonly #onStopped: () => void;
  readonly #demand: Demand;
  readonly #loop = new EventLoop();
  readonly #stock = new RunStock();
  readonly #waiters = new Waiters();
  readonly #reports = new Set<Promise<void>>();

  #isRequesting = false;
  /** Settles when no request is in flight and none will be retried. */
  #requested: Promise<void> = Promise.resolve();
  #closed = false;
  #stoppedBy: ClientError | undefined;
  #lastFailure: ClientError | undefined;
  #endPause: (() => void) | undefined;
  /** Of the lease request in flight. */
  #abort = new AbortController();

  #storeId: string | undefined;
  #lastRun: number | null = null;
  /** Of the lease that `#lastRun` came with. */
  #proof: string | null = null;
  #hasWarned = false;

  /** `onStopped` is called once, when the run in use must not be used any more either. */
  constructor(settings: Settings, onStopped: () => void) {
    this.#settings = settings;
    this.#demand = new Demand(settings);
    this.#onStopped = onStopped;
    this.#storeId = settings.expectedStoreId;
  }

  /** Id of the store that the runs come from; undefined before the first lease of a client that pins none. */
  get storeId(): string | undefined {
    return this.#storeId;
  }

  /** Buffered runs, without the one in use. */
  get runCount(): number {
    return this.#stock.runCount;
  }

  /** Whether callers must let the event loop turn, because the response to a request can't come in otherwise. */
  get isTurnDue(): boolean {
    return this.#isRequesting && this.#loop.isTurnDue;
  }

  /** Returns the next run, or undefined when none is buffered: the caller then requests one. */
  take(): HeldRun | undefined {
    this.#assertUsable();
    const held = this.#stock.take();
    if (held !== undefined) {
      this.#demand.runStarted();
      this.#loop.runStarted();
    } else if (this.#demand.starved()) this.#call("onStall");
    return held;
  }

  /** It is time to refill when fewer numbers than this are left in the run in use. */
  refillBelow(): number {
    return this.#demand.refillBelow(this.#stock.runCount);
  }

  /** Requests runs in the background, unless a request is already in flight: the demand, or more that a call needs now. */
  refill(neededRunCount = 0): void {
    if (this.#isRequesting || this.#isOver) return;
    this.#isRequesting = true;
    this.#lastFailure = undefined;
    const timer = timers.setTimeout(() => this.#warn(), WARNING_AFTER_MS);
    timer.unref();
    this.#requested = this.#requestUntilLeased(neededRunCount).finally(() => timers.clearTimeout(timer));
  }

  /**
   * Resolves when no run is missing, as `missingRunCount` says; another caller may have taken them by the time this one goes on.
   * @throws ClientError the coordinator's error, when no retry fixes it; `waitTimeoutMs` after the last run that helped, the last failure or
   *   `wait_timeout`.
   */
  async waitForRuns(missingRunCount: () => number): Promise<void> {
    if (this.isTurnDue) await this.#loop.turn();
    let fewestMissing = Number.POSITIVE_INFINITY;
    let deadlineMs = 0;
    for (let missing = missingRunCount(); missing > 0; missing = missingRunCount()) {
      // Runs that other callers use up do not prolong the wait: it would have no end.
      if (missing < fewestMissing) {
        fewestMissing = missing;
        deadlineMs = performance.now() + this.#settings.waitTimeoutMs;
      }
      this.#assertUsable();
      const waitMs = Math.max(deadlineMs - performance.now(), 0);
      const arrived = this.#waiters.wait(missing, waitMs, () => this.#waitTimeoutError());
      // Only now: the waiters decide how large the request is.
      this.refill();
      await arrived;
      this.#loop.hasTurned();
    }
  }

  /** Reports in the background how far a run got. */
  report({ lease, run }: HeldRun, progress: Omit<ReportRequest, "nonce">): void {
    const report = this.#send(lease, run, progress).finally(() => this.#reports.delete(report));
    this.#reports.add(report);
  }

  /** Hands out no more runs and discards those buffered, without a report: another holder may have them. The first reason stays. */
  stop(reason: ClientError): void {
    if (this.#isOver) return;
    this.#stoppedBy = reason;
    // Node 22 aborts while it writes an error into a startup snapshot whose stack nothing has read.
    void reason.stack;
    this.#stock.clear();
    this.#onStopped();
    this.#endPause?.();
    this.#waiters.rejectAll(reason);
    this.#call("onStopped", reason);
  }

  /**
   * Stops all requests, discards the buffered runs, reports that and how far the run in use got, and resolves when every report has arrived
   * or failed.
   */
  async close(held: HeldRun | undefined, lastSequence: number | null): Promise<void> {
    this.#closed = true;
    if (held !== undefined) this.report(held, { lastSequence, state: "closed" });
    this.#endPause?.();
    this.#waiters.rejectAll(closedError());
    for (const lease of this.#stock.clear()) {
      this.report({ lease, run: lease.firstRun }, { lastSequence: null, state: "closed" });
    }
    // A lease of this moment would stay open in the ledger forever: its response is worth a short wait.
    const timer = timers.setTimeout(() => this.#abort.abort(), CLOSE_GRACE_MS);
    await this.#requested;
    timers.clearTimeout(timer);
    await Promise.all(this.#reports);
  }

  get #isOver(): boolean {
    return this.#closed || this.#stoppedBy !== undefined;
  }

  #assertUsable(): void {
    if (this.#closed) throw closedError();
    if (this.#stoppedBy) throw this.#stoppedBy;
  }

  async #requestUntilLeased(neededRunCount: number): Promise<void> {
    for (let attempt = 1; !this.#isOver; attempt++) {
      try {
        const lease = await this.#leaseOnce(neededRunCount);
        if (this.#stoppedBy) break;
        if (this.#closed) {
          // Too late to be used: discarded, and reported so.
          this.report({ lease, run: lease.firstRun }, { lastSequence: null, state: "closed" });
          break;
        }
        this.#isRequesting = false;
        this.#lastFailure = undefined;
        this.#accept(lease);
        return;
      } catch (thrown) {
        const error = asClientError(thrown);
        if (this.#isOver) break;
        this.#lastFailure = error;
        if (!isRetryable(error)) {
          this.#isRequesting = false;
          if (STOPPING_CODES.has(error.code)) this.stop(error);
          else this.#waiters.rejectAll(error);
          return;
        }
        const retryInMs = retryDelayMs(attempt, error.retryAfterMs);
        this.#call("onRetry", { error, attempt, retryInMs });
        await this.#pause(retryInMs);
      }
    }
    this.#isRequesting = false;
  }

  async #leaseOnce(neededRunCount: number): Promise<Lease> {
    const { source, namespace, holder, requestTimeoutMs } = this.#settings;
    const nonce = newNonce();
    const evidence = { lastRun: this.#lastRun, proof: this.#proof };
    const spareRunCount = this.#stock.runCount;
    const missing = Math.max(neededRunCount, this.#waiters.runCount);
    const runCount = this.#demand.runCountToRequest(missing, spareRunCount);
    const request = { runCount, nonce, holder, ...evidence, sentAtMs: Date.now(), spareRunCount };
    this.#abort = new AbortController();
    const send = (options: CallOptions) => source.lease(namespace, request, options);
    const response = await withTimeout(send, requestTimeoutMs, this.#abort);
    const expected = { namespace, nonce, runCountMax: runCount, storeId: this.#storeId, lastRun: this.#lastRun };
    return checkedLease(response, expected);
  }

  #accept(lease: Lease): void {
    this.#stock.add(lease);
    this.#storeId = lease.storeId;
    this.#lastRun = ledgerIdOf(lease.version, lease.firstRun + lease.runCount - 1);
    this.#proof = lease.proof;
    this.#demand.leased(lease.runCount);
    this.#waiters.resolveAll();
    this.#call("onLease", lease);
    if (this.#stock.runCount < this.#settings.spareRuns) this.refill();
  }

  /** Once: otherwise an operator sees nothing of an outage but a program that hangs. */
  #warn(): void {
    const { code, message } = this.#lastFailure ?? {};
    const isAnswered = code !== undefined && code !== "coordinator_unreachable";
    if (this.#hasWarned || isAnswered || this.#settings.hooks.onRetry !== undefined) return;
    this.#hasWarned = true;
    const text = `no run came within ${WARNING_AFTER_MS} ms: ${message ?? NO_RESPONSE}; the client keeps trying`;
    // Not every platform that has `fetch` has it.
    process.emitWarning?.(text, "CallnumberWarning");
  }

  /** A pause in the background does not keep a process alive; callers that wait do. */
  async #pause(delayMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#endPause = resolve;
      timer = timers.setTimeout(resolve, delayMs);
      timer.unref();
    });
    timers.clearTimeout(timer);
    this.#endPause = undefined;
  }

  async #send({ nonce, version }: Lease, run: number, progress: Omit<ReportRequest, "nonce">): Promise<void> {
    const { source, namespace, requestTimeoutMs } = this.#settings;
    const send = (options: CallOptions) =>
      source.report(namespace, ledgerIdOf(version, run), { nonce, ...progress }, options);
    try {
      await withTimeout(send, requestTimeoutMs);
    } catch (error) {
      this.#call("onReportFailed", asClientError(error));
    }
  }

  #waitTimeoutError(): ClientError {
    const { waitTimeoutMs } = this.#settings;
    const last = this.#lastFailure;
    const message = `no run came within ${waitTimeoutMs} ms: ${last?.message ?? NO_RESPONSE}`;
    return new ClientError(last?.code ?? "wait_timeout", message, { cause: last, retryAfterMs: last?.retryAfterMs });
  }

  /** In a microtask of its own: a hook may close the client or throw, and must not come between a caller and its number. */
  #call<K extends keyof ClientHooks>(name: K, ...parameters: Parameters<NonNullable<ClientHooks[K]>>): void {
    const hook = this.#settings.hooks[name] as ((...parameters: unknown[]) => void) | undefined;
    if (hook !== undefined) queueMicrotask(() => hook(...parameters));
  }
}
