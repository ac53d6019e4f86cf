/**
 * A log that no flood of refusals can fill: of each code so many lines in a second, and what comes beyond in one sum. Nothing else is left
 * out, and listeners of the hub (metrics, the event stream) are told each refusal as before.
 */
import type { EventLevel } from "./events.js";
import type { Log } from "./log.js";

/** Of one code: enough to see who is refused and why. Each has its own, so that a flood of one hides no other. */
export const REFUSAL_LINES_PER_SECOND_MAX = 20;
const SECOND_MS = 1_000;

export class SparingLog implements Log {
  readonly #log: Log;
  /** By code; the codes are few. */
  readonly #counts = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  debug(fields: object, event: string): void {
    this.#write("debug", fields, event);
  }

  info(fields: object, event: string): void {
    this.#write("info", fields, event);
  }

  warn(fields: object, event: string): void {
    this.#log.warn(fields, event);
  }

  error(fields: object, event: string): void {
    this.#log.error(fields, event);
  }

  /** Writes the sums that are pending; nothing is left running. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [code, count] of this.#counts) {
      const refusalCount = count - REFUSAL_LINES_PER_SECOND_MAX;
      if (refusalCount > 0) this.#log.info({ code, refusalCount }, "refusals");
    }
    this.#counts.clear();
  }

  #write(level: EventLevel, fields: object, event: string): void {
    if (event !== "refusal") {
      this.#log[level](fields, event);
      return;
    }
    const code = String((fields as { code?: unknown }).code);
    const count = (this.#counts.get(code) ?? 0) + 1;
    this.#counts.set(code, count);
    if (count <= REFUSAL_LINES_PER_SECOND_MAX) this.#log[level](fields, event);
    this.#timer ??= setTimeout(() => this.close(), SECOND_MS).unref();
  }
}
