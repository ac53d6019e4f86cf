/**
 * Lets the event loop turn now and then. A caller that only ever awaits numbers that are in hand would keep it from turning, and
 * the answer to a refill from coming in, until the last run is used up and everybody waits.
 */

/** Some ten milliseconds at full speed: well below what half of the largest lease lasts, and a turn costs a thousandth of that. */
const RUNS_WITHOUT_TURN_MAX = 8;

export class EventLoop {
  #runsWithoutTurn = 0;

  get isTurnDue(): boolean {
    return this.#runsWithoutTurn >= RUNS_WITHOUT_TURN_MAX;
  }

  /** A run was begun. */
  runBegun(): void {
    this.#runsWithoutTurn++;
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.hasTurned();
  }

  /** Whoever has waited for the network has let it turn. */
  hasTurned(): void {
    this.#runsWithoutTurn = 0;
  }
}
