/** Counts the requests under way, so that a stop can wait for them. Knows nothing of what they ask. */
import type { ServerResponse } from "node:http";

export class InFlight {
  #count = 0;
  #onNone: (() => void) | undefined;

  /** The request is under way until its answer is sent or its connection breaks. */
  begin(response: ServerResponse): void {
    this.#count++;
    response.once("close", () => {
      this.#count--;
      if (this.#count === 0) this.#onNone?.();
    });
  }

  /** Resolves when none is under way, or after `timeoutMs`. */
  async untilNone(timeoutMs: number): Promise<void> {
    if (this.#count === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#onNone = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }
}
