/**
 * A log that no flood of refusals can fill: so many lines in a second, and what comes beyond in one sum for each code. Nothing else is left
 * out, and listeners of the hub (metrics, the event stream) are told each refusal as before.
 */
import type { EventLevel } from "./events.js";
import type { Log } from "./log.js";

/** Enough to see who is refused and why. */
export const REFUSAL_LINES_PER_SECOND_MAX = 20;
const SECOND_MS = 1_000;

export class SparingLog implements Log {
  readonly #log: Log;
  #lineCount = 0;
  readonly #sums = new Map<string, number>();
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
    this.#lineCount = 0;
    for (const [code, refusalCount] of this.#sums) this.#log.info({ code, refusalCount }, "refusals");
    this.#sums.clear();
  }

  #write(level: EventLevel, fields: object, event: string): void {
    if (event !== "refusal" || this.#lineCount < REFUSAL_LINES_PER_SECOND_MAX) {
      this.#log[level](fields, event);
    } else {
      // The codes are few.
      const code = String((fields as { code?: unknown }).code);
      this.#sums.set(code, (this.#sums.get(code) ?? 0) + 1);
    }
    if (event !== "refusal") return;
    this.#lineCount++;
    this.#timer ??= setTimeout(() => this.close(), SECOND_MS).unref();
  }
}
