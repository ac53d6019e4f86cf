/** Progress for people, on stderr: a bar that redraws itself on a terminal, else a plain line now and then. */
import type { Progress } from "./importing/import.js";
import { printable } from "./report/printable.js";
import { withoutTokens } from "./without-tokens.js";

export interface ProgressView {
  show(progress: Progress): void;
  note(text: string): void;
  /** Leaves the terminal as a next line expects it. */
  end(): void;
}

/** Where the view writes: `process.stderr` fits. */
export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const BAR_WIDTH = 24;
/** A terminal that does not know its width says 0. */
const DEFAULT_COLUMNS = 80;
const REDRAW_MS = 100;
const LINE_MS = 5_000;
const CLEAR_LINE = "\r\u001b[K";
const integer = new Intl.NumberFormat("en-US");

export function progressView(output: Output, now: () => number = () => performance.now()): ProgressView {
  return output.isTTY === true ? new Bar(output, now) : new Lines(output, now);
}

class Bar implements ProgressView {
  readonly #output: Output;
  readonly #pace: Pace;
  #line = "";

  constructor(output: Output, now: () => number) {
    this.#output = output;
    this.#pace = new Pace(now, REDRAW_MS, 0);
  }

  show(progress: Progress): void {
    const share = shareOf(progress);
    const filled = Math.floor(share * BAR_WIDTH);
    const line = `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}] ${this.#pace.describe(progress)}`;
    this.#line = line.slice(0, (this.#output.columns || DEFAULT_COLUMNS) - 1);
    if (this.#pace.isDue() || share === 1) this.#output.write(CLEAR_LINE + this.#line);
  }

  note(text: string): void {
    this.#output.write(`${CLEAR_LINE}${noteLine(text)}\n${this.#line}`);
  }

  end(): void {
    this.#output.write(this.#line === "" ? "" : `${CLEAR_LINE}${this.#line}\n`);
    this.#line = "";
  }
}

class Lines implements ProgressView {
  readonly #output: Output;
  readonly #pace: Pace;

  constructor(output: Output, now: () => number) {
    this.#output = output;
    this.#pace = new Pace(now, LINE_MS, LINE_MS);
  }

  show(progress: Progress): void {
    if (this.#pace.isDue()) this.#output.write(`${this.#pace.describe(progress)}\n`);
  }

  note(text: string): void {
    this.#output.write(`${noteLine(text)}\n`);
  }

  end(): void {}
}

const NOTE_LENGTH_MAX = 500;

function noteLine(text: string): string {
  return printable(withoutTokens(text), NOTE_LENGTH_MAX);
}

/** A forecast out of less is a guess. */
const FORECAST_AFTER_SECONDS = 3;

/** How fast it goes, and when it is time to say so again. */
class Pace {
  readonly #now: () => number;
  readonly #intervalMs: number;
  readonly #startedAtMs: number;
  #dueAtMs: number;
  /** Where the first messages stood: what came before is the start of processes, and foretells nothing. */
  #first: { readonly atMs: number; readonly share: number } | undefined;

  constructor(now: () => number, intervalMs: number, firstAfterMs: number) {
    this.#now = now;
    this.#intervalMs = intervalMs;
    this.#startedAtMs = now();
    this.#dueAtMs = this.#startedAtMs + firstAfterMs;
  }

  isDue(): boolean {
    const nowMs = this.#now();
    if (nowMs < this.#dueAtMs) return false;
    this.#dueAtMs = nowMs + this.#intervalMs;
    return true;
  }

  describe(progress: Progress): string {
    const share = shareOf(progress);
    const seconds = (this.#now() - this.#startedAtMs) / 1000;
    const percent = `${Math.floor(share * 100)} %`.padStart(5);
    const messages = `${integer.format(progress.messages)} messages`;
    if (seconds < 1 || progress.bytes === 0) return `${percent}  ${messages}`;
    this.#first ??= { atMs: this.#now(), share };
    const perSecond = Math.round(progress.messages / seconds);
    return `${percent}  ${messages}  ${integer.format(perSecond)}/s  ${this.#forecast(share)}`.trimEnd();
  }

  #forecast(share: number): string {
    if (this.#first === undefined || share === 1) return "";
    const seconds = (this.#now() - this.#first.atMs) / 1000;
    const done = share - this.#first.share;
    if (seconds < FORECAST_AFTER_SECONDS || done <= 0) return "";
    return `about ${duration(Math.ceil((seconds / done) * (1 - share)))} left`;
  }
}

/** A source may grow while it is imported. */
function shareOf({ bytes, bytesTotal }: Progress): number {
  return bytesTotal === 0 ? 1 : Math.min(bytes / bytesTotal, 1);
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
