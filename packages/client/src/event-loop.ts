/**
 * Lets the event loop turn now and then. A caller that only ever awaits numbers that are in hand would keep it from turning, and
 * the answer to a refill from coming in, until the last run is used up and everybody waits.
 */

/** Longer, and the answer to a refill may come too late; shorter, and the turns would cost more than they bring. */
const TURN_EVERY_MS = 10;

export class EventLoop {
  #turnedAtMs = performance.now();

  get isTurnDue(): boolean {
    return performance.now() - this.#turnedAtMs >= TURN_EVERY_MS;
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.hasTurned();
  }

  /** Whoever has waited for the network has let it turn. */
  hasTurned(): void {
    this.#turnedAtMs = performance.now();
  }
}
