/**
 * The simulation's time: moves only when a history says so. Clocks of servers and hosts are this time and an error of their own.
 */
interface Timer {
  readonly atMs: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Later than the release, before which no clock is believed. */
export const BEGIN_MS = Date.UTC(2026, 11, 1);

export class Time {
  nowMs = BEGIN_MS;
  /** By rising instant. */
  readonly #timers: Timer[] = [];

  /** Runs it when so much time has passed, unless what this returns is called before. */
  after(waitMs: number, run: () => void): () => void {
    const timer = { atMs: this.nowMs + Math.ceil(waitMs), run, isCancelled: false };
    const before = this.#timers.findLastIndex(({ atMs }) => atMs <= timer.atMs);
    this.#timers.splice(before + 1, 0, timer);
    return () => {
      timer.isCancelled = true;
    };
  }

  /** Moves on to the next timer that is due by `untilMs`, and runs it; false when there is none. */
  ring(untilMs: number): boolean {
    while (this.#timers[0]?.isCancelled) this.#timers.shift();
    const [next] = this.#timers;
    if (next === undefined || next.atMs > untilMs) return false;
    this.#timers.shift();
    this.nowMs = Math.max(this.nowMs, next.atMs);
    next.run();
    return true;
  }

  moveTo(instantMs: number): void {
    this.nowMs = Math.max(this.nowMs, instantMs);
  }
}
