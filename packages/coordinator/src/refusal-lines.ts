/**
 * A log in front of the log: refusals that a stranger can cause as fast as he likes get so many lines a second, and what comes beyond is
 * told in one sum. Stands behind the hub: metrics and event stream are told of each one.
 */
import type { ErrorCode } from "@callnumber/protocol/wire";
import type { Log } from "./log.js";

/** Lines of one code. */
export const LINES_PER_SECOND_MAX = 10;
const SECOND_MS = 1_000;

/** What is refused before it is known who asks, or for how much somebody asks. */
const BOUNDED: ReadonlySet<unknown> = new Set<ErrorCode>([
  "unauthorized",
  "forbidden",
  "rate_limited",
  "overloaded",
  "request_timed_out",
  "headers_too_large",
]);

export class RefusalLines implements Log {
  readonly #log: Log;
  /** How many of a code came since the second began. */
  readonly #counts = new Map<unknown, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  debug(fields: object, event: string): void {
    this.#log.debug(fields, event);
  }

  info(fields: object, event: string): void {
    if (event === "refusal" && !this.#hasLineFor((fields as { code?: unknown }).code)) return;
    this.#log.info(fields, event);
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

  #hasLineFor(code: unknown): boolean {
    if (!BOUNDED.has(code)) return true;
    this.#timer ??= setTimeout(() => this.#endSecond(), SECOND_MS).unref();
    const count = (this.#counts.get(code) ?? 0) + 1;
    this.#counts.set(code, count);
    return count <= LINES_PER_SECOND_MAX;
  }

  #endSecond(): void {
    this.#timer = undefined;
    for (const [code, count] of this.#counts) {
      const refusalCount = count - LINES_PER_SECOND_MAX;
      if (refusalCount > 0) this.#log.info({ code, refusalCount }, "refusals_unlogged");
    }
    this.#counts.clear();
  }
}
