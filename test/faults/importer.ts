/**
 * An importer that only takes runs, one lease after the other: the client's own source and its own check of every answer, without making
 * the 16,384 numbers of each. It never gives up, as a person who starts it repeatedly.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { httpSource } from "@callnumber/client";
import { type Lease, ledgerIdOf } from "@callnumber/protocol/wire";
import { checkedLease } from "../../packages/client/src/lease-check.js";
import { LeaseWaiters, type Received } from "./received.js";

export interface ImporterOptions {
  readonly name: string;
  readonly namespace: string;
  /** Used one after the other, a new one after each failure. */
  readonly coordinators: () => readonly string[];
  /** After each lease, too. */
  readonly changesCoordinators: boolean;
  /** Behind each lease. */
  readonly pauseMs: number;
  readonly received: Received;
  /** How often it was rejected, by code. */
  readonly codes: Map<string, number>;
  readonly runCount: number;
}

/** Between two tries that failed: a person would wait longer, a test must not. */
const RETRY_MS = 10;
const REQUEST_TIMEOUT_MS = 3_000;

export class Importer {
  readonly leases = new LeaseWaiters();
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();
  #turn = 0;
  #storeId: string | undefined;
  #lastRun: number | null = null;
  #receipt: string | null = null;

  constructor(readonly options: ImporterOptions) {}

  start(): void {
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      try {
        this.#accept(await this.#leaseOnce());
        if (this.options.changesCoordinators) this.#turn++;
        if (this.options.pauseMs > 0) await delay(this.options.pauseMs);
      } catch (error) {
        const { reason, code = undefined } = error as { reason?: unknown; code?: unknown };
        if (typeof code !== "string") throw error;
        const { codes } = this.options;
        const noted = typeof reason === "string" ? reason : code;
        codes.set(noted, (codes.get(noted) ?? 0) + 1);
        // A process of its own for the other store, as a person would start it after a move.
        if (code === "store_mismatch") [this.#storeId, this.#lastRun, this.#receipt] = [undefined, null, null];
        // At the run ceiling every importer waits: another coordinator of the store would return the same.
        if (code !== "run_ceiling_reached") this.#turn++;
        await delay(Math.max(RETRY_MS, this.options.pauseMs));
      }
    }
  }

  async #leaseOnce(): Promise<Lease> {
    const { namespace, coordinators, name, runCount } = this.options;
    const addresses = coordinators();
    const source = httpSource({ coordinator: addresses[this.#turn % addresses.length] as string });
    const nonce = randomBytes(12).toString("base64url");
    const holder = { name, host: "fault-test", pid: process.pid, labels: {} };
    const evidence = { lastRun: this.#lastRun, receipt: this.#receipt };
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const request = { runCount, nonce, holder, ...evidence, sentAtMs: Date.now() };
    const answer = await source.lease(namespace, request, { signal });
    return checkedLease(answer, {
      namespace,
      nonce,
      runCountMax: runCount,
      storeId: this.#storeId,
      lastRun: this.#lastRun,
    });
  }

  #accept(lease: Lease): void {
    const { received, name } = this.options;
    const { storeId, version, firstRun, runCount, receipt } = lease;
    received.note({ importer: name, storeId, version, firstRun, runCount, receivedAtMs: Date.now() });
    this.#storeId = storeId;
    this.#lastRun = ledgerIdOf(version, firstRun + runCount - 1);
    this.#receipt = receipt;
    this.leases.wake();
  }
}
