/**
 * A log in front of the log: refusals, which callers can cause as fast as they like, get so many lines of each code a second, and what comes
 * beyond is told in one sum. Stands behind the hub: metrics and event stream are told of each one.
 */
import type { Log } from "./log.js";
import { RefusalSum, type RefusedCaller } from "./refusal-sum.js";

/** Of one code at one level: a flood of one hides no other, and none of lines that nobody reads hides those that somebody does. */
export const LINES_PER_SECOND_MAX = 20;
const SECOND_MS = 1_000;

type Level = "debug" | "info";

/** Of one code at one level, since the second began. */
interface Second {
  lineCount: number;
  readonly unlogged: RefusalSum;
}

export class RefusalLines implements Log {
  readonly #log: Log;
  readonly #seconds: Readonly<Record<Level, Map<unknown, Second>>> = { debug: new Map(), info: new Map() };
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  debug(fields: object, event: string): void {
    if (this.#hasLineFor("debug", fields, event)) this.#log.debug(fields, event);
  }

  info(fields: object, event: string): void {
    if (this.#hasLineFor("info", fields, event)) this.#log.info(fields, event);
  }

  warn(fields: object, event: string): void {
    this.#log.warn(fields, event);
  }

  error(fields: object, event: string): void {
    this.#log.error(fields, event);
  }

  /** Tells the sums that are pending; nothing is left running. */
  close(): void {
    clearTimeout(this.#timer);
    this.#endSecond();
  }

  #hasLineFor(level: Level, fields: object, event: string): boolean {
    if (event !== "refusal") return true;
    this.#timer ??= setTimeout(() => this.#endSecond(), SECOND_MS).unref();
    const second = this.#secondOf(level, (fields as { readonly code?: unknown }).code);
    if (second.lineCount < LINES_PER_SECOND_MAX) {
      second.lineCount++;
      return true;
    }
    second.unlogged.add(fields as RefusedCaller);
    return false;
  }

  #secondOf(level: Level, code: unknown): Second {
    const known = this.#seconds[level].get(code);
    if (known !== undefined) return known;
    const second = { lineCount: 0, unlogged: new RefusalSum() };
    this.#seconds[level].set(code, second);
    return second;
  }

  #endSecond(): void {
    this.#timer = undefined;
    for (const level of ["debug", "info"] as const) {
      for (const [code, { unlogged }] of this.#seconds[level]) {
        const told = unlogged.told();
        if (told.refusalCount > 0) this.#log[level]({ code, ...told }, "refusals");
      }
      this.#seconds[level].clear();
    }
  }
}
