/**
 * A log in front of the log: refusals, and what else callers can cause as fast as they like, get so many lines of each code a second, and what
 * comes beyond is told in one sum. Stands behind the hub: metrics and event stream are told of each one.
 */
import { CALLER_EVENTS, sumNameOf } from "./caller-events.js";
import type { Log } from "./log.js";
import { RefusalSum, type RefusedCaller } from "./refusal-sum.js";

/** Of one event and code at one level: a flood of one hides no other, and none of lines that nobody reads hides those that somebody does. */
export const LINES_PER_SECOND_MAX = 20;
const SECOND_MS = 1_000;

const LEVELS = ["debug", "info", "warn", "error"] as const;
type Level = (typeof LEVELS)[number];

/** Of one event and code at one level, since the second began. */
interface Second {
  readonly event: string;
  readonly code: unknown;
  lineCount: number;
  readonly unlogged: RefusalSum;
}

export class RefusalLines implements Log {
  readonly #log: Log;
  readonly #seconds: Readonly<Record<Level, Map<string, Second>>> = {
    debug: new Map(),
    info: new Map(),
    warn: new Map(),
    error: new Map(),
  };
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
    if (this.#hasLineFor("warn", fields, event)) this.#log.warn(fields, event);
  }

  error(fields: object, event: string): void {
    if (this.#hasLineFor("error", fields, event)) this.#log.error(fields, event);
  }

  /** Tells the sums that are pending; nothing is left running. */
  close(): void {
    clearTimeout(this.#timer);
    this.#endSecond();
  }

  #hasLineFor(level: Level, fields: object, event: string): boolean {
    if (!CALLER_EVENTS.has(event)) return true;
    this.#timer ??= setTimeout(() => this.#endSecond(), SECOND_MS).unref();
    const second = this.#secondOf(level, event, (fields as { readonly code?: unknown }).code);
    if (second.lineCount < LINES_PER_SECOND_MAX) {
      second.lineCount++;
      return true;
    }
    second.unlogged.add(fields as RefusedCaller);
    return false;
  }

  #secondOf(level: Level, event: string, code: unknown): Second {
    const key = `${event} ${code}`;
    const known = this.#seconds[level].get(key);
    if (known !== undefined) return known;
    const second = { event, code, lineCount: 0, unlogged: new RefusalSum() };
    this.#seconds[level].set(key, second);
    return second;
  }

  #endSecond(): void {
    this.#timer = undefined;
    for (const level of LEVELS) {
      for (const { event, code, unlogged } of this.#seconds[level].values()) {
        const told = unlogged.told();
        if (told.refusalCount === 0) continue;
        const fields = event === "refusal" ? { code, ...told } : { of: event, eventCount: told.refusalCount };
        this.#log[level](fields, sumNameOf(event));
      }
      this.#seconds[level].clear();
    }
  }
}
