/**
 * What a long run says of itself while it works: what it is doing, how far it is, and for how long already. On standard error: on a
 * terminal one line that is written over, elsewhere a plain line now and then. One for all long runs; `npm test` has none.
 */
import process from "node:process";
import { onTestFinished } from "vitest";
import { shortened } from "../packages/cli/src/table.js";

/** Words, or what says them anew each time: then they go on while nobody calls. */
export type Words = string | (() => string);

export interface SignsOptions {
  readonly write: (text: string) => void;
  /** Of the terminal; undefined where there is none. */
  readonly columns: number | undefined;
  readonly nowMs: () => number;
}

const ON_TERMINAL_EVERY_MS = 500;
const ELSEWHERE_EVERY_MS = 15_000;
/** The timer looks so often whether it is time: whoever calls may have been told of meanwhile. */
const LOOKS_EACH = 5;
/** Erases the line on which the cursor stands. */
const ERASED = "\u001b[2K";

export class SignsOfLife {
  readonly #options: SignsOptions;
  readonly #beganMs: number;
  readonly #everyMs: number;
  readonly #timer: ReturnType<typeof setInterval>;
  #words: Words | undefined;
  #stands = false;
  #saidMs = Number.NEGATIVE_INFINITY;

  constructor(options: SignsOptions) {
    this.#options = options;
    this.#beganMs = options.nowMs();
    this.#everyMs = options.columns === undefined ? ELSEWHERE_EVERY_MS : ON_TERMINAL_EVERY_MS;
    this.#timer = setInterval(() => this.#sayIfTime(), this.#everyMs / LOOKS_EACH).unref();
  }

  /**
   * What is being done from now on. Costs next to nothing, so that a loop which lets no timer run may call it at each of its turns: said is
   * it only when it is time.
   */
  show(words: Words): void {
    this.#words = words;
    this.#sayIfTime();
  }

  /** As `show`, with how much of a known time is over. */
  showTimed(words: string, durationMs: number): void {
    const beganMs = this.#options.nowMs();
    this.show(() => `${words}: ${seconds(this.#options.nowMs() - beganMs)} of ${seconds(durationMs)} s`);
  }

  /** Takes the line away, for what is to stand there: a table, for one. The next sign comes when it is time. */
  wipe(): void {
    if (this.#options.columns !== undefined && this.#stands) this.#options.write(ERASED);
    this.#stands = false;
  }

  end(): void {
    clearInterval(this.#timer);
    this.wipe();
  }

  #sayIfTime(): void {
    if (this.#options.nowMs() - this.#saidMs >= this.#everyMs) this.#say();
  }

  #say(): void {
    const { write, columns, nowMs } = this.#options;
    if (this.#words === undefined) return;
    const words = typeof this.#words === "string" ? this.#words : this.#words();
    this.#stands = true;
    this.#saidMs = nowMs();
    const line = `[${clockOf(this.#saidMs - this.#beganMs)}] ${words}`;
    // The cursor goes back: whatever is printed next, by whomever, stands over the sign and not behind it.
    write(columns === undefined ? `${line}\n` : `${ERASED}${shortened(line, columns - 1)}\r`);
  }
}

/** Those of this run, until the test is finished. How wide the terminal is, whoever started the run says (scripts/long-run.mjs). */
export function signsOfLife(): SignsOfLife {
  const columns = Number(process.env["CALLNUMBER_SIGNS_COLUMNS"] ?? 0);
  const signs = new SignsOfLife({
    write: (text) => process.stderr.write(text),
    columns: columns > 0 ? columns : undefined,
    nowMs: () => performance.now(),
  });
  onTestFinished(() => signs.end());
  return signs;
}

function clockOf(elapsedMs: number): string {
  const elapsedSeconds = Math.floor(elapsedMs / 1000);
  return `${Math.floor(elapsedSeconds / 60)}:${String(elapsedSeconds % 60).padStart(2, "0")}`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(0);
}
