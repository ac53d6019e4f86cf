/**
 * The control: a plain INCR on the same server under the same faults. It must repeat numbers, or the faults were none: a run in
 * which it repeats nothing proves nothing.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";

export class Control {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #seen = new Set<number>();
  #repeatCount = 0;
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();

  constructor(address: { readonly host: string; readonly port: number }, key: string) {
    this.#key = key;
    this.#redis = new Redis({ ...address, maxRetriesPerRequest: 0, commandTimeout: 1_000, retryStrategy: () => 20 });
    this.#redis.on("error", () => {});
  }

  start(): void {
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
    this.#redis.disconnect();
  }

  get count(): number {
    return this.#seen.size;
  }

  get repeatCount(): number {
    return this.#repeatCount;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const number = await this.#redis.incr(this.#key);
        if (this.#seen.has(number)) this.#repeatCount++;
        this.#seen.add(number);
      } catch {
        // As an importer: it tries again.
        await delay(5);
      }
    }
  }
}
