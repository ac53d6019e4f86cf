/**
 * The spare runs that clients told of when they asked last: the latest word of each process that asked within ten minutes.
 * Remembers a bounded number of processes: a crash loop makes new ones all the time.
 */
import type { Holder } from "@callnumber/protocol/wire";

/** As long as a holder counts as live. */
const LIVE_MS = 600_000;
const HOLDER_COUNT_MAX = 10_000;

interface Told {
  readonly spareRunCount: number;
  readonly atMs: number;
}

export class SpareRuns {
  readonly #now: () => number;
  /** By holder, whoever told longest ago first. */
  readonly #told = new Map<string, Told>();

  /** @param now a clock that only rises, ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  note({ name, host, pid }: Pick<Holder, "name" | "host" | "pid">, spareRunCount: number): void {
    const holder = `${pid} ${host} ${name}`;
    this.#told.delete(holder);
    this.#told.set(holder, { spareRunCount, atMs: this.#now() });
    if (this.#told.size > HOLDER_COUNT_MAX) this.#forgetOldest();
  }

  /** Spare runs and processes of those that asked within ten minutes. */
  sum(): { readonly runCount: number; readonly holderCount: number } {
    const liveFromMs = this.#now() - LIVE_MS;
    for (const { atMs } of this.#told.values()) {
      if (atMs >= liveFromMs) break;
      this.#forgetOldest();
    }
    let runCount = 0;
    for (const { spareRunCount } of this.#told.values()) runCount += spareRunCount;
    return { runCount, holderCount: this.#told.size };
  }

  #forgetOldest(): void {
    for (const holder of this.#told.keys()) {
      this.#told.delete(holder);
      return;
    }
  }
}
