/**
 * Makes call numbers: the sequence of the run in hand, one number after the other, without a network call.
 * Knows runs only as the lease buffer hands them out. Nothing here is ever persisted: a new process takes a new run.
 *
 * Numbers are spelt ahead, some hundred at a time, as one text; a call cuts eight characters from it. Between two texts the client
 * looks around: time to refill, end of the run, no run, closed, stopped.
 *
 * Invariant: a (run, sequence) leaves this object at most once. `#speltUpTo` and `#position` only rise within a run, stop at its end,
 * and a run is only ever begun at 0. A copy of the process that made this object makes no number at all.
 * Guarantees: G9 (docs/guarantees.md).
 */
import process from "node:process";
import { CALL_NUMBER_LENGTH, type CallNumber, SEQUENCE_COUNT, SEQUENCE_MAX } from "@callnumber/protocol/codec";
import { LEASE_RUN_COUNT_MAX, ledgerIdOf } from "@callnumber/protocol/http-api";
import { ClientError } from "./client-error.js";
import { EventLoop } from "./event-loop.js";
import { closedError, LeaseBuffer } from "./lease-buffer.js";
import { type ClientOptions, type Settings, settingsOf } from "./options.js";
import { beforeSnapshot, copiedError } from "./process-copy.js";
import { RunNumbers, TEXT_COUNT_MAX } from "./run-numbers.js";
import type { HeldRun } from "./run-stock.js";

/** The most numbers that one call gives: those of the largest lease. */
export const TAKE_COUNT_MAX = LEASE_RUN_COUNT_MAX * SEQUENCE_COUNT;

// Of this module, not imported: only then the compiler of Node 20 takes them for constant, and they stand in the hottest line.
const LENGTH = CALL_NUMBER_LENGTH;
const TEXT_END = TEXT_COUNT_MAX * CALL_NUMBER_LENGTH;

/**
 * A client for one namespace, in the process and thread that makes it. Makes no request before the first number is wanted.
 * @throws TypeError or RangeError for an option that can't be, with its name and value.
 */
export function createClient(options: ClientOptions): Client {
  return new Client(settingsOf(options));
}

declare global {
  // For importers whose `lib` has no esnext.disposable.
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

export class Client {
  readonly #settings: Settings;
  readonly #buffer: LeaseBuffer;
  readonly #pid = process.pid;

  /** The call numbers that are spelt and not used yet stand at its end. */
  #text = "";
  /** Of the next one in the text; `TEXT_END` when none is left. */
  #position = TEXT_END;
  /** The first sequence of the run that is neither used nor spelt. */
  #speltUpTo = 0;
  #held: HeldRun | undefined;
  #numbers: RunNumbers | undefined;
  /** From this sequence on it is time to refill. */
  #refillAt = 0;
  readonly #loop = new EventLoop();
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
    const position = this.#position;
    if (position === TEXT_END) return this.#nextOfNewText();
    this.#position = position + LENGTH;
    return this.#text.substring(position, position + LENGTH) as CallNumber;
  }

  /**
   * A call number; waits for a lease when no run is in hand, at most `waitTimeoutMs`.
   * @throws ClientError as `nextSync`, but instead of `no_run_ready` why no run came: the coordinator's refusal,
   *   `coordinator_unreachable` or `wait_timed_out`. The client stays usable.
   */
  async next(): Promise<CallNumber> {
    // Others may use up the run between the moment it is ready and the moment this caller goes on: look again.
    while (this.#position === TEXT_END && !this.#spellNow()) await this.#untilRun();
    this.#mustBeOriginal();
    return this.nextSync();
  }

  /**
   * `count` call numbers, 1 to 1,048,576, in the order they were made. Waits as `next()` does for each further run.
   * One promise for all of them, which costs more than many numbers.
   * @throws RangeError for another count. ClientError as `next()`; the numbers already made for this call are then burnt.
   */
  async take(count: number): Promise<CallNumber[]> {
    mustBeWithin("take() gives", count);
    // Array.from would fill it first, for a third of the price of the numbers.
    // oxlint-disable-next-line unicorn/no-new-array
    const callNumbers = new Array<CallNumber>(count);
    for (let taken = 0; taken < count; ) {
      while (this.#position === TEXT_END && !this.#spellNow()) await this.#untilRun();
      this.#mustBeOriginal();
      taken = this.#takeFromText(callNumbers, taken);
    }
    return callNumbers;
  }

  /**
   * Fills `target` with call numbers, eight ASCII characters each, in the order they are made: for who writes files or packets and
   * needs no strings. Waits as `take()` does.
   * @throws TypeError when `target` is no Uint8Array, or was taken away meanwhile; RangeError when its length is not a multiple of 8
   *   for 1 to 1,048,576 numbers. ClientError as `take()`: what was written is burnt.
   */
  async takeBytes(target: Uint8Array): Promise<void> {
    if (!(target instanceof Uint8Array)) throw new TypeError("takeBytes() fills a Uint8Array");
    const count = target.length / LENGTH;
    mustBeWithin("takeBytes() takes the length in bytes of", count);
    await this.#takeRanges(count, (numbers, taken, from, to) => {
      mustStillHold(target, count * LENGTH);
      numbers.writeBytes(target, taken * LENGTH, from, to);
    });
  }

  /**
   * Fills `target` with call numbers as plain numbers, 0 to 2^47 - 1, as `toNumber` of the codec gives them, in the order they are made:
   * for a database's integer column. Waits as `take()` does.
   * @throws TypeError when `target` is no Float64Array, or was taken away meanwhile; RangeError when it does not hold 1 to 1,048,576
   *   numbers. ClientError as `take()`: what was written is burnt.
   */
  async takeNumbers(target: Float64Array): Promise<void> {
    if (!(target instanceof Float64Array)) throw new TypeError("takeNumbers() fills a Float64Array");
    const count = target.length;
    mustBeWithin("takeNumbers() fills", count);
    await this.#takeRanges(count, (numbers, taken, from, to) => {
      mustStillHold(target, count);
      numbers.writeNumbers(target, taken, from, to);
    });
  }

  /** Call numbers without end; leaving the loop does not close the client. A step waits only when no run is in hand. */
  [Symbol.asyncIterator](): AsyncIterator<CallNumber, never> {
    return {
      next: () => {
        if (this.#position === TEXT_END || this.#isCopy()) return this.next().then(yielded);
        return Promise.resolve(yielded(this.nextSync()));
      },
    };
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
      const used = this.#usedCount();
      const lastSequence = used === 0 ? null : used - 1;
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

  #nextOfNewText(): CallNumber {
    if (!this.#spellAhead()) {
      throw new ClientError("no_run_ready", "no run is in hand yet; one was asked for. Use next() to wait for it");
    }
    const position = this.#position;
    this.#position = position + LENGTH;
    return this.#text.substring(position, position + LENGTH) as CallNumber;
  }

  #takeFromText(callNumbers: CallNumber[], taken: number): number {
    const text = this.#text;
    let position = this.#position;
    const end = Math.min(TEXT_END, position + (callNumbers.length - taken) * LENGTH);
    let index = taken;
    // First of all used, then given: whatever happens in between, no number is given twice.
    this.#position = end;
    for (; position < end; position += LENGTH) {
      callNumbers[index++] = text.substring(position, position + LENGTH) as CallNumber;
    }
    return index;
  }

  async #takeRanges(
    count: number,
    write: (numbers: RunNumbers, taken: number, from: number, to: number) => void,
  ): Promise<void> {
    for (let taken = 0; taken < count; ) {
      while (this.#isTurnDue() || !this.#lookAround()) await this.#untilRun();
      const from = this.#usedCount();
      const to = Math.min(from + count - taken, this.#nextStop(from));
      this.#useUpTo(to);
      write(this.#numbers as RunNumbers, taken, from, to);
      taken += to - from;
    }
  }

  /** Resolves when a number could be made; another caller may have made it by the time that this one goes on. */
  async #untilRun(): Promise<void> {
    if (this.#isTurnDue()) await this.#loop.turn();
    if (this.#lookAround()) return;
    const deadlineMs = performance.now() + this.#settings.waitTimeoutMs;
    do await this.#buffer.untilRunsCome(Math.max(deadlineMs - performance.now(), 0));
    while (!this.#lookAround());
    this.#loop.hasTurned();
  }

  #isTurnDue(): boolean {
    return this.#isRunUsed() && this.#buffer.isAsking && this.#loop.isTurnDue;
  }

  /** Whether there is a text now, without waiting for anything; then it is spelt. */
  #spellNow(): boolean {
    return !this.#isTurnDue() && this.#spellAhead();
  }

  /** Whether there is a text now with a number left. Throws when none can be made however long one waits. */
  #spellAhead(): boolean {
    if (!this.#lookAround()) return false;
    if (this.#position < TEXT_END) return true;
    const from = this.#speltUpTo;
    const to = Math.min(from + TEXT_COUNT_MAX, this.#nextStop(from));
    this.#speltUpTo = to;
    this.#text = (this.#numbers as RunNumbers).textUpTo(from, to);
    this.#position = TEXT_END - (to - from) * LENGTH;
    return true;
  }

  /** Whether a number can be made now; refills when it is time. Throws when none can be made however long one waits. */
  #lookAround(): boolean {
    if (this.#isClosed) throw closedError();
    this.#mustBeOriginal();
    if (this.#position < TEXT_END) return true;
    if (this.#held !== undefined && this.#isRunUsed()) this.#leaveRun(this.#held);
    if (this.#held === undefined && !this.#beginRun()) return false;
    if (this.#speltUpTo >= this.#refillAt) {
      this.#refillAt = SEQUENCE_COUNT;
      this.#buffer.refill();
    }
    return true;
  }

  /** Where minting stops to look around. */
  #nextStop(sequence: number): number {
    return sequence < this.#refillAt ? this.#refillAt : SEQUENCE_COUNT;
  }

  #isRunUsed(): boolean {
    return this.#usedCount() === SEQUENCE_COUNT;
  }

  /** How many sequences of the run in hand are used, which is the next one to use. */
  #usedCount(): number {
    return this.#speltUpTo - (TEXT_END - this.#position) / LENGTH;
  }

  /** The sequences up to before `sequence` are used, spelt or not. */
  #useUpTo(sequence: number): void {
    const speltLeft = Math.max(this.#speltUpTo - sequence, 0);
    this.#speltUpTo = Math.max(this.#speltUpTo, sequence);
    this.#position = TEXT_END - speltLeft * LENGTH;
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
    this.#numbers = new RunNumbers(held.lease.version, held.run);
    this.#refillAt = this.#refillSequence();
    this.#loop.runBegun();
    return true;
  }

  /** The first sequence at which fewer numbers are left in the run than the buffer wants to have before it refills. */
  #refillSequence(): number {
    if (this.#settings.stopWhenExhausted) return SEQUENCE_COUNT;
    const sequence = Math.floor(SEQUENCE_COUNT - this.#buffer.refillBelow()) + 1;
    return Math.min(Math.max(sequence, 0), SEQUENCE_COUNT);
  }

  /**
   * A second look, beside the one before a snapshot. Not at every `nextSync`: there it would cost more than the number, and
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
    this.#position = TEXT_END;
    this.#text = "";
    this.#speltUpTo = 0;
    this.#held = undefined;
    this.#numbers = undefined;
  }
}

function yielded(value: CallNumber): IteratorResult<CallNumber, never> {
  return { done: false, value };
}

function mustBeWithin(what: string, count: number): void {
  if (Number.isInteger(count) && count >= 1 && count <= TAKE_COUNT_MAX) return;
  throw new RangeError(`${what} 1 to ${TAKE_COUNT_MAX} numbers, not ${String(count)}`);
}

/** Writing into an array whose memory was transferred or resized away would lose numbers without a word. */
function mustStillHold(target: Uint8Array | Float64Array, length: number): void {
  if (target.length !== length) throw new TypeError("the array was taken away while it was being filled");
}
