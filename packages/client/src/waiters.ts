/** The callers that wait for runs, and how many runs each of them misses. */
import type { ClientError } from "./client-error.js";
import { limitTime } from "./node-process.js";

interface Waiter {
  readonly runCount: number;
  readonly resolve: () => void;
  readonly reject: (error: ClientError) => void;
}

export class Waiters {
  readonly #waiters = new Set<Waiter>();

  /** The most runs that one of them misses; 0 when none waits. */
  get runCount(): number {
    let runCount = 0;
    for (const waiter of this.#waiters) runCount = Math.max(runCount, waiter.runCount);
    return runCount;
  }

  /** Waits for `resolveAll`, at most `waitMs`. @throws ClientError that of `rejectAll`; after `waitMs` what `timeoutError` returns. */
  async wait(runCount: number, waitMs: number, timeoutError: () => ClientError): Promise<void> {
    let waiter!: Waiter;
    let callOff!: () => void;
    try {
      await new Promise<void>((resolve, reject) => {
        waiter = { runCount, resolve, reject };
        this.#waiters.add(waiter);
        callOff = limitTime(() => reject(timeoutError()), waitMs);
      });
    } finally {
      callOff();
      this.#waiters.delete(waiter);
    }
  }

  /** From now on none waits: what they missed counts no more. A caller that still misses runs waits again. */
  resolveAll(): void {
    for (const waiter of this.#waiters) waiter.resolve();
    this.#waiters.clear();
  }

  rejectAll(error: ClientError): void {
    for (const waiter of this.#waiters) waiter.reject(error);
  }
}
