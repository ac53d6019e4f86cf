/**
 * The log's way out of `serve`. Each line is written before whoever told it goes on: that of a lease is out before its answer. What can't be
 * written, on a full disk or to a reader that stalls, waits in order and in bounded memory; what is beyond that is lost, counted and told
 * of. Nothing waits for it, and nothing ends by it: a lease needs no line, for the store has it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { MINOR_EVENTS } from "../caller-events.js";
import { visibleJson } from "../shown-text.js";

const WAITING_BYTES_MAX = 8 * 1_024 * 1_024;
/** Lines that callers can cause as often as they ask, and those for debugging, have so much of it: they must not take the place of leases. */
const MINOR_SHARE = 1 / 8;
const MINOR_LINE = new RegExp(`^\\{"level":20,|"msg":"(?:${MINOR_EVENTS.join("|")})"\\}\\n$`);
/** A reader that only just fell behind is waited for in short steps, one that stalls in long ones. */
const PAUSE_MIN_MS = 2;
const PAUSE_MAX_MS = 100;
const SAY_EVERY_MS = 60_000;
const CLOSE_PATIENCE_MS = 1_000;

export interface LostLines {
  /** Lost since it was told last. */
  readonly lineCount: number;
  readonly reason: string;
}

export interface LogOutputOptions {
  /** Writes what can be written at once, and returns how many bytes; throws where that is nothing. It must not wait for whoever reads. */
  readonly write: (bytes: Buffer) => number;
  /** Words for people: at the first trouble, once a minute while it lasts, and when it is over. */
  readonly say: (text: string) => void;
  /** Bytes of lines that may wait; default 8 MiB. */
  readonly waitingBytesMax?: number;
  readonly now?: () => number;
}

export class LogOutput {
  readonly #write: (bytes: Buffer) => number;
  readonly #say: (text: string) => void;
  readonly #waitingBytesMax: number;
  readonly #now: () => number;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lostCount = 0;
  #untoldCount = 0;
  #reason = "";
  #saidAtMs = Number.NEGATIVE_INFINITY;
  /** Whether it was said, and not yet that it is over. */
  #isSaid = false;
  #pauseMs = PAUSE_MIN_MS;
  #timer: NodeJS.Timeout | undefined;
  #onLost: (lost: LostLines) => void = () => {};

  constructor({ write, say, waitingBytesMax = WAITING_BYTES_MAX, now = Date.now }: LogOutputOptions) {
    this.#write = write;
    this.#say = say;
    this.#waitingBytesMax = waitingBytesMax;
    this.#now = now;
  }

  /** Told at the first loss, then once a minute, and when lines are written again. It may write lines itself. */
  onLost(listener: (lost: LostLines) => void): void {
    this.#onLost = listener;
  }

  /** A line with its end, as pino makes it. Never throws. */
  write(line: string): void {
    this.flush();
    const bytes = Buffer.from(visibleJson(line));
    if (this.#waiting.length > 0 && this.#waitingBytes + bytes.length > this.#bytesMaxFor(line)) {
      this.#lostCount++;
      this.#untoldCount++;
      this.#tellTrouble();
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waiting.length === 1) this.flush();
  }

  /** Writes what waits, as far as that is possible now. */
  flush(): void {
    if (this.#waiting.length === 0) return;
    try {
      while (this.#waiting.length > 0) this.#writeNext();
    } catch (error) {
      this.#fail(error as NodeJS.ErrnoException);
      return;
    }
    this.#pauseMs = PAUSE_MIN_MS;
    this.#tellEnd();
  }

  /** Waits for what can be written within a second, and says how much could not. */
  async close(): Promise<void> {
    for (let waitedMs = 0; this.#waiting.length > 0 && waitedMs < CLOSE_PATIENCE_MS; waitedMs += PAUSE_MAX_MS) {
      await delay(PAUSE_MAX_MS);
      this.flush();
    }
    clearTimeout(this.#timer);
    if (this.#waiting.length > 0) this.#say(`the log's last lines could not be written: ${this.#inWords()}`);
  }

  #bytesMaxFor(line: string): number {
    return MINOR_LINE.test(line) ? this.#waitingBytesMax * MINOR_SHARE : this.#waitingBytesMax;
  }

  #writeNext(): void {
    const next = this.#waiting[0] as Buffer;
    const writtenBytes = this.#write(next);
    this.#waitingBytes -= writtenBytes;
    this.#pauseMs = PAUSE_MIN_MS;
    if (writtenBytes < next.length) this.#waiting[0] = next.subarray(writtenBytes);
    else this.#waiting.shift();
  }

  #fail({ code, message }: NodeJS.ErrnoException): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
      this.flush();
    }, this.#pauseMs).unref();
    const isBehind = code === "EAGAIN";
    this.#reason = isBehind ? "whoever reads it does not" : message;
    // A reader that falls behind is no trouble before something is lost.
    if (!isBehind || this.#untoldCount > 0) this.#tellTrouble();
  }

  #tellTrouble(): void {
    const nowMs = this.#now();
    // A clock that went back must not keep it silent.
    if (Math.abs(nowMs - this.#saidAtMs) < SAY_EVERY_MS) return;
    this.#saidAtMs = nowMs;
    this.#isSaid = true;
    this.#say(`THE LOG CAN'T BE WRITTEN, and leasing goes on: ${this.#inWords()}`);
    this.#tellLost();
  }

  #tellEnd(): void {
    if (this.#isSaid) {
      this.#isSaid = false;
      this.#say(`the log is written again; lines lost since the start: ${this.#lostCount}`);
    }
    this.#tellLost();
  }

  #tellLost(): void {
    const lineCount = this.#untoldCount;
    this.#untoldCount = 0;
    if (lineCount > 0) this.#onLost({ lineCount, reason: this.#reason });
  }

  #inWords(): string {
    return `${this.#reason}. Lines that wait in memory: ${this.#waiting.length}; lost: ${this.#lostCount}`;
  }
}
