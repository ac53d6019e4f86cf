/** A coordinator in the same process that leases rising runs, each answer after a time of its own, and remembers what it was asked. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseSource } from "@callnumber/client";
import type { Lease, LeaseRequest } from "@callnumber/protocol/wire";

const RECEIPT = randomBytes(32).toString("base64url");

export class SlowSource implements LeaseSource {
  readonly asked: { readonly atMs: number; readonly runCount: number }[] = [];
  /** How long each answer took. */
  readonly answersMs: number[] = [];
  readonly #delayMs: () => number;
  readonly #startedAtMs = performance.now();
  #mark = 0;

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  async lease(namespace: string, { runCount, nonce }: LeaseRequest): Promise<Lease> {
    const atMs = performance.now();
    this.asked.push({ atMs: atMs - this.#startedAtMs, runCount });
    const firstRun = this.#mark + 1;
    this.#mark += runCount;
    await sleep(this.#delayMs());
    this.answersMs.push(performance.now() - atMs);
    return { namespace, storeId: "bench", version: 0, firstRun, runCount, leasedAtMs: 1, nonce, receipt: RECEIPT };
  }

  async report(): Promise<void> {}
}
