/**
 * Buffers leased runs, so that generating does not wait for the network. Knows nothing of sequences and call numbers.
 *
 *   idle ── a run is wanted ──▶ requesting ── lease ──▶ idle
 *                               │    ▲
 *                   transient   │    │ after a pause: full jitter, never less than Retry-After
 *                   error       ▼    │
 *                               pausing            an error that no retry fixes ──▶ idle, callers get it
 *
 *   any state ── close() ──▶ over: nothing is requested or handed out any more, and every caller gets the reason
 *   any state ── stop(): another store, one that has lost runs, a copy of one; or this process is a copy
 *             ──▶ over, and the alarm is raised
 *
 * However many callers wait, one request is in flight. Its size and its moment are the demand's (demand.ts).
 * A request whose response is lost, late or invalid is never repeated with the same nonce: its runs are discarded.
 */
import process from "node:process";
import { type Lease, ledgerIdOf, type RunReport, STOPPING_CODES } from "@callnumber/protocol/api";
import { SEQUENCE_MAX } from "@callnumber/protocol/codec";
import { ClientError, closedError } from "./client-error.js";
import { Demand } from "./demand.js";
import { checkedLease } from "./lease-check.js";
import type { CallOptions } from "./lease-source.js";
import { limitTime, timers } from "./node-process.js";
import type { ClientHooks, Settings } from "./options.js";
import { asClientError, isRetryable, newNonce, requestTimeout, retryDelayMs, withTimeout } from "./requests.js";
import { Waiters } from "./waiters.js";

/** After so long without a response a client without a hook for it warns. */
const WARNING_AFTER_MS = 2_000;
const NO_RESPONSE = "the coordinator has not answered yet";
/** How long a close waits for the response to a lease request in flight, and then for those to its reports. */
const CLOSE_GRACE_MS = 1_000;
/**
 * A caller that only awaits buffered numbers would block the event loop, and with it the response to a refill, until the last run is used up.
 * So many runs take some ten milliseconds at full speed, well below what half of the largest lease lasts; a turn costs a thousandth of that.
 */
const RUNS_WITHOUT_TURN_MAX = 8;

/** One run that a lease holds. */
export interface HeldRun {
  readonly lease: Lease;
  readonly run: number;
}

/** Whether a client of this process has warned. */
export const warned = { once: false };

export class LeaseBuffer {
  readonly #settings: Settings;
  readonly #onStopped: () => void;
  readonly #demand: Demand;
  /** Lowest first. A run leaves it once and never comes back. */
  #stock: HeldRun[] = [];
  readonly #waiters = new Waiters();
  /** In flight. */
  readonly #reports = new Map<AbortController, Promise<void>>();

  #isRequesting = false;
  /** Settles when no request is in flight and none will be retried. */
  #requested: Promise<void> = Promise.resolve();
  /** Why nothing is requested or handed out any more. The first reason stays. */
  #endedBy: ClientError | undefined;
  #lastFailure: ClientError | undefined;
  #endPause: (() => void) | undefined;
  /** Of the lease request in flight. */
  #abort = new AbortController();

  #storeId: string | undefined;
  #lastRun: number | null = null;
  /** Of the lease that `#lastRun` came with. */
  #proof: string | null = null;
  /** Of leases that are used up: the first goes with the next lease request. */
  #spent: RunReport[] = [];
  /** Runs begun since the event loop turned. */
  #runsWithoutTurn = 0;

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
    return this.#stock.length;
  }

  /** Whether callers must let the event loop turn, because the response to a request can't come in otherwise. */
  get isTurnDue(): boolean {
    return this.#isRequesting && this.#runsWithoutTurn >= RUNS_WITHOUT_TURN_MAX;
  }

  /** @throws ClientError why nothing is handed out any more. */
  assertUsable(): void {
    if (this.#endedBy) throw this.#endedBy;
  }

  /** Returns the next run, or undefined when none is buffered: the caller then requests one. */
  take(): HeldRun | undefined {
    const held = this.#stock.shift();
    if (held !== undefined) {
      this.#demand.runStarted();
      this.#runsWithoutTurn++;
    } else if (this.#demand.starved()) this.#call("onStall");
    return held;
  }

  /** From this sequence of the run in use on it is time to refill. */
  refillAt(): number {
    return this.#demand.refillAt(this.#stock.length);
  }

  /** Requests runs in the background, unless a request is already in flight: the demand, or more that a call needs now. */
  refill(neededRunCount = 0): void {
    if (this.#isRequesting || this.#endedBy) return;
    this.#isRequesting = true;
    this.#lastFailure = undefined;
    const timer = timers.setTimeout(() => this.#warn(), WARNING_AFTER_MS).unref();
    this.#requested = this.#requestUntilLeased(neededRunCount).finally(() => timers.clearTimeout(timer));
  }

  /**
   * Resolves when no run is missing, as `missingRunCount` says; another caller may have taken them by the time this one goes on.
   * `missingRunCount` throws what `assertUsable` does. `missing`: what it said just now.
   * @throws ClientError the coordinator's error, when no retry fixes it; `waitTimeoutMs` after the last run that helped, the last failure or
   *   `wait_timeout`.
   */
  async waitForRuns(missingRunCount: () => number, missing = missingRunCount()): Promise<void> {
    if (this.isTurnDue) {
      await new Promise((resolve) => timers.setImmediate(resolve));
      this.#runsWithoutTurn = 0;
      missing = missingRunCount();
    }
    let fewestMissing = Number.POSITIVE_INFINITY;
    let deadlineMs = 0;
    for (; missing > 0; missing = missingRunCount()) {
      // Runs that other callers use up do not prolong the wait: it would have no end.
      if (missing < fewestMissing) {
        fewestMissing = missing;
        deadlineMs = performance.now() + this.#settings.waitTimeoutMs;
      } else if (performance.now() >= deadlineMs) throw this.#waitTimeoutError();
      const waitMs = Math.max(deadlineMs - performance.now(), 0);
      const arrived = this.#waiters.wait(missing, waitMs, () => this.#waitTimeoutError());
      // Only now: the waiters decide how large the request is.
      this.refill();
      await arrived;
      this.#runsWithoutTurn = 0;
    }
  }

  /** The run is used up. With the last one of a lease, that is reported: in the next lease request, if there is one. */
  finish({ lease, run }: HeldRun): void {
    if (run < lease.firstRun + lease.runCount - 1) return;
    this.#spent.push(reportOn(lease, run, SEQUENCE_MAX, "exhausted"));
    if (this.#settings.stopWhenExhausted) this.#reportSpent();
  }

  /** Hands out no more runs and discards those buffered, without a report: another holder may have them. The first reason stays. */
  stop(reason: ClientError): void {
    if (this.#endedBy) return;
    this.#endedBy = reason;
    this.#stock = [];
    this.#spent = [];
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
    this.#endedBy ??= closedError();
    if (held !== undefined) this.#report(reportOn(held.lease, held.run, lastSequence, "closed"));
    this.#endPause?.();
    this.#waiters.rejectAll(this.#endedBy);
    for (const { lease, run } of this.#stock) if (run === lease.firstRun) this.#reportUnused(lease);
    this.#stock = [];
    // A lease of this moment would stay open in the ledger forever: its response is worth a short wait.
    await this.#atMostGrace(this.#requested);
    this.#reportSpent();
    await this.#atMostGrace(Promise.all(this.#reports.values()));
  }

  async #atMostGrace(answered: Promise<unknown>): Promise<void> {
    const callOff = limitTime(() => {
      for (const request of [this.#abort, ...this.#reports.keys()]) request.abort(this.#endedBy);
    }, CLOSE_GRACE_MS);
    await answered;
    callOff();
  }

  async #requestUntilLeased(neededRunCount: number): Promise<void> {
    for (let attempt = 1; !this.#endedBy; attempt++) {
      try {
        const lease = await this.#leaseOnce(neededRunCount, attempt);
        if (this.#endedBy) {
          // Too late to be used: discarded.
          this.#reportUnused(lease);
          break;
        }
        this.#isRequesting = false;
        this.#lastFailure = undefined;
        this.#accept(lease);
        return;
      } catch (thrown) {
        const error = asClientError(thrown);
        if (this.#endedBy) break;
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

  async #leaseOnce(neededRunCount: number, attempt: number): Promise<Lease> {
    const { source, namespace, holder } = this.#settings;
    const nonce = newNonce();
    const evidence = { lastRun: this.#lastRun, proof: this.#proof };
    const spareRunCount = this.#stock.length;
    const missing = Math.max(neededRunCount, this.#waiters.runCount);
    const runCount = this.#demand.runCountToRequest(missing, spareRunCount);
    const [report] = this.#spent;
    const request = { runCount, nonce, holder, ...evidence, sentAtMs: Date.now(), spareRunCount, report };
    this.#abort = new AbortController();
    const send = (options: CallOptions) => source.lease(namespace, request, options);
    const response = await withTimeout(send, requestTimeout(this.#settings, attempt), this.#abort);
    const expected = { namespace, nonce, runCountMax: runCount, storeId: this.#storeId, lastRun: this.#lastRun };
    const lease = checkedLease(response, expected);
    if (report) this.#spent.shift();
    // More came together while no lease did: the next request has room for one.
    this.#reportSpent(1);
    return lease;
  }

  #accept(lease: Lease): void {
    for (let index = 0; index < lease.runCount; index++) this.#stock.push({ lease, run: lease.firstRun + index });
    this.#storeId = lease.storeId;
    this.#lastRun = ledgerIdOf(lease.version, lease.firstRun + lease.runCount - 1);
    this.#proof = lease.proof;
    this.#demand.leased(lease.runCount);
    this.#waiters.resolveAll();
    this.#call("onLease", lease);
    if (this.#stock.length < this.#settings.spareRuns) this.refill();
  }

  /** Once a process: otherwise an operator sees nothing of an outage but a program that hangs. */
  #warn(): void {
    const { code, message } = this.#lastFailure ?? {};
    const isAnswered = code !== undefined && code !== "coordinator_unreachable";
    if (warned.once || isAnswered || this.#settings.hooks.onRetry !== undefined) return;
    warned.once = true;
    const text = `no run came within ${WARNING_AFTER_MS / 1000} s: ${message ?? NO_RESPONSE}; the client keeps trying`;
    // Not every platform that has `fetch` has it.
    process.emitWarning?.(text, "CallnumberWarning");
  }

  /** A pause in the background does not keep a process alive; callers that wait do. */
  async #pause(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = timers.setTimeout(resolve, delayMs).unref();
      this.#endPause = () => {
        timers.clearTimeout(timer);
        resolve();
      };
    });
    this.#endPause = undefined;
  }

  /** Unless this client has stopped: another holder may have the lease, or this process is a copy. */
  #reportUnused(lease: Lease): void {
    if (this.#endedBy?.code === "client_closed") this.#report(reportOn(lease, lease.firstRun, null, "closed"));
  }

  /** By requests of their own, but the last `keptCount`. */
  #reportSpent(keptCount = 0): void {
    while (this.#spent.length > keptCount) this.#report(this.#spent.shift() as RunReport);
  }

  /** Reports in the background, by a request of its own. */
  #report({ run, ...report }: RunReport): void {
    const { source, namespace, requestTimeoutMs } = this.#settings;
    const send = (options: CallOptions) => source.report(namespace, run, report, options);
    const abort = new AbortController();
    const sent = withTimeout(send, requestTimeoutMs, abort)
      .catch((error) => this.#call("onReportFailed", asClientError(error)))
      .then(() => void this.#reports.delete(abort));
    this.#reports.set(abort, sent);
  }

  #waitTimeoutError(): ClientError {
    const { waitTimeoutMs } = this.#settings;
    const last = this.#lastFailure;
    const message = `no run came within ${waitTimeoutMs / 1000} s: ${last?.message ?? NO_RESPONSE}`;
    return new ClientError(last?.code ?? "wait_timeout", message, { cause: last, retryAfterMs: last?.retryAfterMs });
  }

  /** In a microtask of its own: a hook may close the client or throw, and must not come between a caller and its number. */
  #call<K extends keyof ClientHooks>(name: K, ...parameters: Parameters<NonNullable<ClientHooks[K]>>): void {
    const hook = this.#settings.hooks[name] as ((...parameters: unknown[]) => void) | undefined;
    if (hook !== undefined) queueMicrotask(() => hook(...parameters));
  }
}

function reportOn(
  { version, nonce }: Lease,
  run: number,
  lastSequence: number | null,
  state: RunReport["state"],
): RunReport {
  return { run: ledgerIdOf(version, run), nonce, lastSequence, state };
}
