/**
 * Makes call numbers: the sequence of the run in hand, one number after the other, without a network call.
 * Knows runs only as the lease buffer hands them out. Nothing here is ever persisted: a new process takes a new run.
 *
 * Invariant: a (run, sequence) leaves this object at most once. `#sequence` only rises within a run, stops at its end,
 * and a run is only ever begun at 0. A copy of the process that made this object makes no number at all.
 * Guarantees: G9 (docs/guarantees.md).
 */
import process from "node:process";
import { type CallNumber, callNumbersOfRun, SEQUENCE_COUNT, SEQUENCE_MAX } from "@callnumber/protocol/codec";
import { LEASE_RUN_COUNT_MAX, ledgerIdOf } from "@callnumber/protocol/wire";
import { ClientError } from "./client-error.js";
import { closedError, LeaseBuffer } from "./lease-buffer.js";
import { type ClientOptions, type Settings, settingsOf } from "./options.js";
import { beforeSnapshot, copiedError } from "./process-copy.js";
import type { HeldRun } from "./run-stock.js";

/** The most numbers that one `take` gives: those of the largest lease. */
export const TAKE_COUNT_MAX = LEASE_RUN_COUNT_MAX * SEQUENCE_COUNT;

/**
 * A client for one namespace, in the process and thread that makes it. Makes no request before the first number is wanted.
 * @throws TypeError or RangeError for an option that can't be, with its name and value.
 */
export function createClient(options: ClientOptions): Client {
  return new Client(settingsOf(options));
}

export class Client implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #buffer: LeaseBuffer;
  readonly #pid = process.pid;

  #held: HeldRun | undefined;
  #spell: (sequence: number) => CallNumber = noRun;
  /** The next sequence to use. */
  #sequence = 0;
  /** From this sequence on minting stops to look around: time to refill, end of the run, or no run at all. */
  #stopAt = 0;
  #hasSpentRun = false;
  /** Ledger id of the run begun last: the last guard against a run that comes twice, whoever is to blame. */
  #lastBegun = -1;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /** Use `createClient`. */
  constructor(settings: Settings) {
    this.#settings = settings;
    this.#buffer = new LeaseBuffer(settings, () => this.#stopMinting());
    beforeSnapshot(() => this.#buffer.stop(copiedError()));
  }

  /** Id of the store that the numbers come from; keep it beside the archive and give it as `expectedStoreId` next time. */
  get storeId(): string | undefined {
    return this.#buffer.storeId;
  }

  /**
   * A call number from the run in hand, without waiting. No number is ever given twice.
   * A loop that never yields starves the answers of the coordinator: use `next()` or `take()` in long loops.
   * @throws ClientError `no_run_ready` when no run is in hand (one is then asked for in the background);
   *   `sequence_exhausted` under `onExhausted: "stop"`; `client_closed`; or why this client makes no more numbers at all
   *   (`other_store`, `run_not_rising`, `run_beyond_mark`, `store_replaced`, `store_forked`, `copied_process`).
   */
  nextSync(): CallNumber {
    if (this.#sequence >= this.#stopAt && !this.#lookAround()) {
      throw new ClientError("no_run_ready", "no run is in hand yet; one was asked for. Use next() to wait for it");
    }
    return this.#spell(this.#sequence++);
  }

  /**
   * A call number; waits for a lease when no run is in hand, at most `waitTimeoutMs`.
   * @throws ClientError as `nextSync`, but instead of `no_run_ready` why no run came: the coordinator's refusal,
   *   `coordinator_unreachable` or `wait_timed_out`. The client stays usable.
   */
  async next(): Promise<CallNumber> {
    // Others may use up the run between the moment it is ready and the moment this caller goes on: look again.
    while (this.#sequence >= this.#stopAt) await this.#untilReady();
    this.#mustBeOriginal();
    return this.#spell(this.#sequence++);
  }

  /**
   * `count` call numbers, 1 to 1,048,576, in the order they were made. Waits as `next()` does for each further run.
   * @throws RangeError for another count. ClientError as `next()`; the numbers already made for this call are then burnt.
   */
  async take(count: number): Promise<CallNumber[]> {
    if (!(Number.isInteger(count) && count >= 1 && count <= TAKE_COUNT_MAX)) {
      throw new RangeError(`take() gives 1 to ${TAKE_COUNT_MAX} numbers, not ${String(count)}`);
    }
    const callNumbers: CallNumber[] = [];
    while (callNumbers.length < count) {
      while (this.#sequence >= this.#stopAt) await this.#untilReady();
      this.#mustBeOriginal();
      const end = Math.min(this.#stopAt, this.#sequence + count - callNumbers.length);
      while (this.#sequence < end) callNumbers.push(this.#spell(this.#sequence++));
    }
    return callNumbers;
  }

  /** Call numbers without end; leaving the loop does not close the client. Each step is a `next()`. */
  [Symbol.asyncIterator](): AsyncIterator<CallNumber, never> {
    return { next: async () => ({ done: false, value: await this.next() }) };
  }

  /**
   * Gives up the run in hand and all spare runs for ever, and reports how far they got. Callers that wait are refused with
   * `client_closed`. Never rejects: a report that fails goes to `onReportFailed`. May be called twice.
   * In a copy of the process nothing is reported: the runs are the original's.
   */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      if (this.#isCopy()) this.#buffer.stop(copiedError());
      const held = this.#held;
      const lastSequence = this.#sequence === 0 ? null : this.#sequence - 1;
      // First of all no more numbers; then whatever else a close does.
      this.#isClosed = true;
      this.#stopMinting();
      this.#closing = this.#buffer.close(held, lastSequence);
    }
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #untilReady(): Promise<void> {
    const deadlineMs = performance.now() + this.#settings.waitTimeoutMs;
    while (!this.#lookAround()) await this.#buffer.untilRunsCome(Math.max(deadlineMs - performance.now(), 0));
  }

  /** Whether a number can be made now; sets the next stop. Throws when none can be made however long one waits. */
  #lookAround(): boolean {
    if (this.#isClosed) throw closedError();
    this.#mustBeOriginal();
    if (this.#sequence < this.#stopAt) return true;
    if (this.#held !== undefined) {
      if (this.#sequence < SEQUENCE_COUNT) {
        this.#stopAt = SEQUENCE_COUNT;
        this.#buffer.refill();
        return true;
      }
      this.#leaveRun(this.#held);
    }
    return this.#beginRun();
  }

  #leaveRun(held: HeldRun): void {
    const { firstRun, runCount } = held.lease;
    if (held.run === firstRun + runCount - 1) {
      this.#buffer.report(held, { lastSequence: SEQUENCE_MAX, state: "exhausted" });
    }
    this.#hasSpentRun = true;
    this.#stopMinting();
  }

  #beginRun(): boolean {
    if (this.#settings.stopWhenExhausted && this.#hasSpentRun) {
      const message = `all ${SEQUENCE_COUNT} numbers of the run are used, and this client was told to take no other`;
      throw new ClientError("sequence_exhausted", message);
    }
    const held = this.#buffer.take();
    if (held === undefined) return false;
    const ledgerId = ledgerIdOf(held.lease.version, held.run);
    if (ledgerId <= this.#lastBegun) throw new Error(`broken invariant: run ${held.run} was about to be begun again`);
    this.#lastBegun = ledgerId;
    this.#held = held;
    this.#spell = callNumbersOfRun(held.lease.version, held.run);
    this.#sequence = 0;
    this.#stopAt = this.#refillSequence();
    if (this.#stopAt === 0) {
      this.#stopAt = SEQUENCE_COUNT;
      this.#buffer.refill();
    }
    return true;
  }

  /** The first sequence at which fewer numbers are left in the run than the buffer wants to have before it refills. */
  #refillSequence(): number {
    if (this.#settings.stopWhenExhausted) return SEQUENCE_COUNT;
    const sequence = Math.floor(SEQUENCE_COUNT - this.#buffer.refillBelow()) + 1;
    return Math.min(Math.max(sequence, 0), SEQUENCE_COUNT);
  }

  /**
   * A second look, beside the one before a snapshot. Not at every `nextSync`: there it would cost a quarter of the number, and
   * nothing in Node changes the pid under a running client.
   */
  #mustBeOriginal(): void {
    if (!this.#isCopy()) return;
    const error = copiedError();
    this.#buffer.stop(error);
    throw error;
  }

  #isCopy(): boolean {
    // Read from the process each time: an imported `pid` keeps the value of the process that was copied.
    return process.pid !== this.#pid;
  }

  #stopMinting(): void {
    this.#held = undefined;
    this.#spell = noRun;
    this.#sequence = 0;
    this.#stopAt = 0;
  }
}

function noRun(): never {
  throw new Error("broken invariant: a call number was about to be made without a run");
}
