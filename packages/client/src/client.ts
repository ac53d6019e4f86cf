/**
 * Generates call numbers: the sequences of a leased run, one after the other, without a network call. Nothing is persisted: a new process takes a
 * new run. Numbers are encoded ahead as one text, and a call cuts eight characters from it. Between two texts the client checks whether it is
 * time to refill, the run is used up, or the client is closed or stopped.
 *
 * Invariant: a (run, sequence) leaves this object at most once. `#encodedThrough` and `#position` only rise within a run, stop at its end,
 * and a run is only ever started at 0. A copy of the process that created this object generates no number at all.
 * Guarantees: G9 (docs/guarantees.md).
 */
import process from "node:process";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { CALL_NUMBER_LENGTH, type CallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { assertCount, bytesTarget, numbersTarget, type Target } from "./call-arguments.js";
import { ClientError, copiedError, exhaustedError } from "./client-error.js";
import { type HeldRun, LeaseBuffer } from "./lease-buffer.js";
import { beforeSnapshot } from "./node-process.js";
import { type ClientOptions, type Settings, settingsOf } from "./options.js";
import { RunNumbers, TEXT_COUNT_MAX } from "./run-numbers.js";

// Constants of this module: the compiler of Node 20 does not treat imports as constant, and these are on the hottest path.
const LENGTH = CALL_NUMBER_LENGTH;
const TEXT_END = TEXT_COUNT_MAX * CALL_NUMBER_LENGTH;

/**
 * Creates a client for one namespace, for the current process and thread. Sends no request before the first number is wanted.
 * @throws TypeError or RangeError for an invalid option, with its name and value.
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

  /** The call numbers that are encoded and not used yet are at its end. */
  #text = "";
  /** Of the next number in the text; `TEXT_END` when none is left. */
  #position = TEXT_END;
  /** The first sequence of the run that is neither used nor encoded. */
  #encodedThrough = 0;
  #held: HeldRun | undefined;
  #numbers: RunNumbers | undefined;
  /** From this sequence on it is time to refill. */
  #refillAt = 0;
  #hasSpentRun = false;
  /** Ledger id of the last run: a final check against a run that comes twice, for any reason. */
  #lastRun = -1;
  #closing: Promise<void> | undefined;

  /** Use `createClient`. */
  constructor(settings: Settings) {
    this.#settings = settings;
    this.#buffer = new LeaseBuffer(settings, () => this.#stopGenerating());
    beforeSnapshot(() => this.#buffer.stop(copiedError()));
  }

  /** Id of the store that the numbers come from; store it with the archive and pass it as `expectedStoreId` next time. */
  get storeId(): string | undefined {
    return this.#buffer.storeId;
  }

  /**
   * Returns a call number from a buffered run, without waiting. No number is ever returned twice.
   * A loop that never yields blocks the responses of the coordinator: use `next()` or `take()` in long loops.
   * @throws ClientError `no_run_available` when no run is buffered (one is then requested in the background);
   *   `sequence_exhausted` under `onExhausted: "stop"`; `client_closed`; or why this client generates no more numbers at all
   *   (`store_mismatch`, `run_not_increasing`, `run_above_high_water_mark`, `store_id_mismatch`, `store_forked`, `process_cloned`).
   */
  nextSync(): CallNumber {
    const position = this.#position;
    if (position === TEXT_END) return this.#nextOfNewText();
    this.#position = position + LENGTH;
    return this.#text.substring(position, position + LENGTH) as CallNumber;
  }

  /**
   * Returns a call number; waits for a lease when no run is buffered, at most `waitTimeoutMs`.
   * @throws ClientError as `nextSync`, but instead of `no_run_available` why no run arrived: the coordinator's error,
   *   `coordinator_unreachable` or `wait_timeout`. The client stays usable.
   */
  async next(): Promise<CallNumber> {
    // Other callers may use up the text between the moment it is there and the moment this caller goes on: check again.
    while (this.#position === TEXT_END && !this.#encodeNow()) await this.#waitForText(1);
    this.#assertUsable();
    return this.nextSync();
  }

  /**
   * Returns `count` call numbers, 1 to 1,048,576, in the order they were made. Waits as `next()` does for each further run.
   * @throws RangeError for another count. ClientError as `next()`; the numbers already made for this call are then discarded.
   */
  async take(count: number): Promise<CallNumber[]> {
    assertCount("take() gives", count);
    // Array.from would fill it first, for a third of the price of the numbers.
    // oxlint-disable-next-line unicorn/no-new-array
    const callNumbers = new Array<CallNumber>(count);
    this.#requestFor(count);
    for (let taken = 0; taken < count; ) {
      while (this.#position === TEXT_END && !this.#encodeNow()) await this.#waitForText(count - taken);
      this.#assertUsable();
      taken = this.#takeFromText(callNumbers, taken);
    }
    return callNumbers;
  }

  /**
   * Resolves when the next `count` calls of `nextSync()`, 1 to 1,048,576, find a run: for code that cannot wait, such as the default of a
   * column. Reserves nothing: other callers of this client take from the same numbers. Waits as `take()` does.
   * @throws RangeError for another count. ClientError as `next()`; under `onExhausted: "stop"` `sequence_exhausted` when the run in use has
   *   fewer left. No number is used in any case.
   */
  async ready(count: number): Promise<void> {
    assertCount("ready() waits for", count);
    await this.#buffer.waitForRuns(() => {
      const missing = this.#missingRunCount(count);
      this.#assertLeft(count);
      return missing;
    });
  }

  /**
   * Fills `target` with call numbers, eight ASCII characters each, in the order they are made: for files or packets that need no strings.
   * Waits as `take()` does.
   * @throws TypeError when `target` is no Uint8Array, or was detached meanwhile; RangeError when its length is not a multiple of 8
   *   for 1 to 1,048,576 numbers. ClientError as `take()`: what was written is discarded.
   */
  async fillBytes(target: Uint8Array): Promise<void> {
    await this.#fill(bytesTarget(target));
  }

  /**
   * Fills `target` with call numbers as plain numbers, 0 to 2^47 - 1, as `toNumber` of the codec returns them, in the order they are made:
   * for a database's integer column. Waits as `take()` does.
   * @throws TypeError when `target` is no Float64Array, or was detached meanwhile; RangeError when it does not hold 1 to 1,048,576
   *   numbers. ClientError as `take()`: what was written is discarded.
   */
  async fillNumbers(target: Float64Array): Promise<void> {
    await this.#fill(numbersTarget(target));
  }

  /** Call numbers without end; leaving the loop does not close the client. A step waits only when no run is buffered. */
  [Symbol.asyncIterator](): AsyncIterator<CallNumber, never> {
    return {
      next: () => {
        if (this.#position === TEXT_END || this.#isCopy()) return this.next().then(yielded);
        return Promise.resolve(yielded(this.nextSync()));
      },
    };
  }

  /**
   * Gives up all runs permanently, and reports how far they got. Callers that wait get `client_closed`. Never rejects: a report that fails
   * goes to `onReportFailed`. May be called twice. In a copy of the process nothing is reported: the runs are the original's.
   */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      if (this.#isCopy()) this.#buffer.stop(copiedError());
      const held = this.#held;
      const used = this.#usedCount();
      const lastSequence = used === 0 ? null : used - 1;
      // First of all no more numbers; then the rest of the close.
      this.#stopGenerating();
      this.#closing = this.#buffer.close(held, lastSequence);
    }
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #nextOfNewText(): CallNumber {
    if (!this.#encodeAhead()) {
      this.#buffer.refill(1);
      throw new ClientError("no_run_available", "no run is buffered yet; one was requested. Use next() to wait for it");
    }
    return this.nextSync();
  }

  #takeFromText(callNumbers: CallNumber[], taken: number): number {
    const text = this.#text;
    let position = this.#position;
    const end = Math.min(TEXT_END, position + (callNumbers.length - taken) * LENGTH);
    let index = taken;
    // Marked as used before they are returned: whatever happens in between, no number is returned twice.
    this.#position = end;
    for (; position < end; position += LENGTH) {
      callNumbers[index++] = text.substring(position, position + LENGTH) as CallNumber;
    }
    return index;
  }

  async #fill(target: Target): Promise<void> {
    this.#requestFor(target.count);
    for (let taken = 0; taken < target.count; ) {
      while (this.#buffer.isTurnDue || !this.#ensureRun()) {
        const missing = runsFor(target.count - taken);
        await this.#buffer.waitForRuns(() => (this.#ensureRun() ? 0 : missing), missing);
      }
      const from = this.#usedCount();
      const to = Math.min(from + target.count - taken, this.#nextStop(from));
      this.#useUpTo(to);
      target.write(this.#numbers as RunNumbers, taken, from, to);
      taken += to - from;
    }
  }

  /** Requests the runs that `count` numbers miss, in the background: as many as are needed, not one after the other. */
  #requestFor(count: number): void {
    const missing = this.#missingRunCount(count);
    if (missing > 0 && !this.#settings.stopWhenExhausted) this.#buffer.refill(missing);
  }

  /** Resolves when there is a text, with the first of `count` numbers. Another caller may have used it by the time this one goes on. */
  async #waitForText(count: number): Promise<void> {
    const missing = runsFor(count);
    await this.#buffer.waitForRuns(() => (this.#encodeAhead() ? 0 : missing), missing);
  }

  /** How many runs the next `count` numbers need in addition to those at hand. @throws ClientError when none can be made, for any wait. */
  #missingRunCount(count: number): number {
    this.#assertUsable();
    return runsFor(count - this.#heldCount()) - this.#buffer.runCount;
  }

  /** @throws ClientError when a client that takes no further run has fewer numbers than `count`. */
  #assertLeft(count: number): void {
    if (!this.#settings.stopWhenExhausted) return;
    const countMax = this.#held === undefined && !this.#hasSpentRun ? SEQUENCE_COUNT : this.#heldCount();
    if (count > countMax) throw exhaustedError(countMax);
  }

  /** How many numbers of the run in use are left. With none it is finished. */
  #heldCount(): number {
    if (this.#held === undefined) return 0;
    const count = SEQUENCE_COUNT - this.#usedCount();
    if (count === 0) this.#finishRun(this.#held);
    return count;
  }

  /** Whether there is a text now, without a turn of the event loop that is due. */
  #encodeNow(): boolean {
    return !this.#buffer.isTurnDue && this.#encodeAhead();
  }

  /** Whether there is a text now with a number left. @throws ClientError when none can be made, for any wait. */
  #encodeAhead(): boolean {
    if (!this.#ensureRun()) return false;
    // Another caller's, who waited for the same run.
    if (this.#position < TEXT_END) return true;
    const from = this.#encodedThrough;
    const to = Math.min(from + TEXT_COUNT_MAX, this.#nextStop(from));
    this.#encodedThrough = to;
    this.#text = (this.#numbers as RunNumbers).textUpTo(from, to);
    this.#position = TEXT_END - (to - from) * LENGTH;
    return true;
  }

  /** Whether a number can be made now; refills when it is time. @throws ClientError when none can be made, for any wait. */
  #ensureRun(): boolean {
    this.#assertUsable();
    if (this.#position < TEXT_END) return true;
    if (this.#heldCount() === 0 && !this.#startRun()) return false;
    if (this.#encodedThrough >= this.#refillAt) {
      this.#refillAt = SEQUENCE_COUNT;
      this.#buffer.refill();
    }
    return true;
  }

  /** The sequence at which the client checks again. Never below `sequence`: numbers would come twice. */
  #nextStop(sequence: number): number {
    return sequence < this.#refillAt ? this.#refillAt : SEQUENCE_COUNT;
  }

  /** How many sequences of the run are used, which is the next one to use. */
  #usedCount(): number {
    return this.#encodedThrough - (TEXT_END - this.#position) / LENGTH;
  }

  /** Marks the sequences below `sequence` as used, encoded or not. */
  #useUpTo(sequence: number): void {
    const encodedLeft = Math.max(this.#encodedThrough - sequence, 0);
    this.#encodedThrough = Math.max(this.#encodedThrough, sequence);
    this.#position = TEXT_END - encodedLeft * LENGTH;
  }

  #finishRun(held: HeldRun): void {
    this.#buffer.finish(held);
    this.#hasSpentRun = true;
    this.#stopGenerating();
  }

  #startRun(): boolean {
    if (this.#settings.stopWhenExhausted && this.#hasSpentRun) {
      throw exhaustedError(0);
    }
    const held = this.#buffer.take();
    if (held === undefined) return false;
    const ledgerId = ledgerIdOf(held.lease.version, held.run);
    if (ledgerId <= this.#lastRun) throw new Error(`broken invariant: run ${held.run} came twice`);
    this.#lastRun = ledgerId;
    this.#held = held;
    this.#numbers = new RunNumbers(held.lease.version, held.run);
    this.#refillAt = this.#buffer.refillAt();
    return true;
  }

  /** Not in every `nextSync`, where it would cost more than the number: nothing in Node changes the pid of a running client. */
  #assertUsable(): void {
    if (this.#isCopy()) this.#buffer.stop(copiedError());
    this.#buffer.assertUsable();
  }

  #isCopy(): boolean {
    // Read from the process each time: an imported `pid` keeps the value of the process that was copied.
    return process.pid !== this.#pid;
  }

  #stopGenerating(): void {
    this.#position = TEXT_END;
    this.#text = "";
    this.#encodedThrough = 0;
    this.#held = undefined;
    this.#numbers = undefined;
  }
}

/** How many runs have `count` numbers. */
function runsFor(count: number): number {
  return Math.ceil(count / SEQUENCE_COUNT);
}

function yielded(value: CallNumber): IteratorResult<CallNumber, never> {
  return { done: false, value };
}
