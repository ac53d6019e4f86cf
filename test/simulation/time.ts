/**
 * The simulation's time: moves only when a history says so. Clocks of servers and hosts are this time and an error of their own.
 */
interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** Later than the release, before which no clock is believed. */
export const BEGIN_MS = Date.UTC(2026, 11, 1);

export class Time {
  nowMs = BEGIN_MS;
  /** By rising instant. */
  readonly #timers: Timer[] = [];

  after(waitMs: number, run: () => void): void {
    const atMs = this.nowMs + Math.ceil(waitMs);
    const later = this.#timers.findIndex((timer) => timer.atMs > atMs);
    this.#timers.splice(later === -1 ? this.#timers.length : later, 0, { atMs, run });
  }

  /** Moves on to the next timer that is due by `untilMs`, and runs it; false when there is none. */
  ring(untilMs: number): boolean {
    const next = this.#timers[0];
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
