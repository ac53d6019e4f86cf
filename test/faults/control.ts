/**
 * The control: a plain counter in the same store under the same faults. It must repeat numbers, or the faults were none: a run in
 * which it repeats nothing proves nothing.
 */
import { setTimeout as delay } from "node:timers/promises";

export interface Counter {
  /** The next number, from whatever keeps the counter now. */
  next(): Promise<number>;
  end(): void;
}

/** As an importer: it tries again. */
const RETRY_MS = 5;

export class Control {
  readonly #counter: Counter;
  readonly #seen = new Set<number>();
  #repeatCount = 0;
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  /** `onNumber` hears each number, also one that came before; the next one is made when it resolves. */
  start(onNumber: (number: number) => Promise<void> | void): void {
    this.#working = this.#work(onNumber);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
    this.#counter.end();
  }

  get count(): number {
    return this.#seen.size;
  }

  get repeatCount(): number {
    return this.#repeatCount;
  }

  async #work(onNumber: (number: number) => Promise<void> | void): Promise<void> {
    while (!this.#isStopped) {
      try {
        const number = await this.#counter.next();
        if (this.#seen.has(number)) this.#repeatCount++;
        this.#seen.add(number);
        await onNumber(number);
      } catch {
        await delay(RETRY_MS);
      }
    }
  }
}
