/**
 * A log in front of the log: refusals, which callers can cause as fast as they like, get so many lines of each code a second, and what comes
 * beyond is told in one sum. Stands behind the hub: metrics and event stream are told of each one.
 */
import type { Log } from "./log.js";

/** Of one code at one level: a flood of one hides no other, and none of lines that nobody reads hides those that somebody does. */
export const LINES_PER_SECOND_MAX = 20;
const SECOND_MS = 1_000;

type Level = "debug" | "info";

export class RefusalLines implements Log {
  readonly #log: Log;
  /** How many of a code came since the second began, by level. */
  readonly #counts: Readonly<Record<Level, Map<unknown, number>>> = { debug: new Map(), info: new Map() };
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
    const { code } = fields as { readonly code?: unknown };
    this.#timer ??= setTimeout(() => this.#endSecond(), SECOND_MS).unref();
    const counts = this.#counts[level];
    const count = (counts.get(code) ?? 0) + 1;
    counts.set(code, count);
    return count <= LINES_PER_SECOND_MAX;
  }

  #endSecond(): void {
    this.#timer = undefined;
    for (const level of ["debug", "info"] as const) {
      for (const [code, count] of this.#counts[level]) {
        const refusalCount = count - LINES_PER_SECOND_MAX;
        if (refusalCount > 0) this.#log[level]({ code, refusalCount }, "refusals_unlogged");
      }
      this.#counts[level].clear();
    }
  }
}
