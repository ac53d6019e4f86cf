/**
 * The spare runs of clients: what each process that asked for a lease within ten minutes reported last.
 * Remembers a bounded number of processes: a crash loop makes new ones all the time.
 */
import type { Holder } from "@callnumber/protocol/api";

/** As long as a holder counts as live. */
const LIVE_MS = 600_000;
const HOLDER_COUNT_MAX = 10_000;

export class SpareRuns {
  readonly #now: () => number;
  /** By holder, the oldest report first. */
  readonly #reported = new Map<string, { readonly spareRunCount: number; readonly atMs: number }>();

  /** @param now a monotonic clock, ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  note({ name, host, pid }: Pick<Holder, "name" | "host" | "pid">, spareRunCount: number): void {
    const holder = `${pid} ${host} ${name}`;
    this.#reported.delete(holder);
    this.#reported.set(holder, { spareRunCount, atMs: this.#now() });
    const [oldest] = this.#reported.keys();
    if (this.#reported.size > HOLDER_COUNT_MAX && oldest !== undefined) this.#reported.delete(oldest);
  }

  /** Returns the spare runs of the processes that asked within ten minutes, and how many these are. */
  sum(): { readonly runCount: number; readonly holderCount: number } {
    const liveFromMs = this.#now() - LIVE_MS;
    let runCount = 0;
    for (const [holder, { spareRunCount, atMs }] of this.#reported) {
      if (atMs < liveFromMs) this.#reported.delete(holder);
      else runCount += spareRunCount;
    }
    return { runCount, holderCount: this.#reported.size };
  }
}
