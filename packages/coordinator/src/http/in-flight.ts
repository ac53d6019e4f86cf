/** Knows the requests under way, so that a stop can wait for them. Knows nothing of what they ask. */
import type { IncomingMessage, ServerResponse } from "node:http";

export interface Patience {
  /** For answers. */
  readonly timeoutMs: number;
  /** For the rest of requests that have begun to arrive. */
  readonly arrivalMs: number;
}

export class InFlight {
  readonly #requests = new Set<IncomingMessage>();
  #onNone: (() => void) | undefined;

  /** The request is under way until its answer is sent or its connection breaks. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#requests.add(request);
    response.once("close", () => {
      this.#requests.delete(request);
      if (this.#requests.size === 0) this.#onNone?.();
    });
  }

  /**
   * Resolves when none is under way, or after `timeoutMs`. One that has not arrived whole after `arrivalMs` is cut off: nothing was begun
   * for it, and whoever sends it slowly would hold up the stop.
   */
  async untilNone({ timeoutMs, arrivalMs }: Patience): Promise<void> {
    if (this.#requests.size === 0) return;
    const timers: ReturnType<typeof setTimeout>[] = [];
    await new Promise<void>((resolve) => {
      this.#onNone = resolve;
      timers.push(setTimeout(resolve, timeoutMs));
      timers.push(setTimeout(() => this.#cutOffIncomplete(), arrivalMs));
    });
    for (const timer of timers) clearTimeout(timer);
  }

  #cutOffIncomplete(): void {
    for (const request of this.#requests) if (!request.complete) request.destroy();
  }
}
