/** Importers that lease all the time over HTTP while faults happen: every lease that they were given, and where each must be at the end. */
import { setTimeout as delay } from "node:timers/promises";
import { type Lease, ledgerIdOf } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { expect, onTestFinished } from "vitest";
import { lastLedgerIdOf } from "../packages/coordinator/src/ledger/lease-identity.js";
import { expectNoRunTwice, requestAfter } from "../packages/coordinator/test/leasing-crowd.js";

const IMPORTER_COUNT = 2;
/** Together they take fewer runs than a store with the highest rate lets them after a recovery. */
const BETWEEN_LEASES_MS = 250;

export class LeasingImporters {
  /** Of all importers, as they came. */
  readonly leases: Lease[] = [];
  /** What they were rejected with, as it came; `unreachable` where nothing answered. */
  readonly rejections: { readonly code: string; readonly message: string }[] = [];
  readonly #stopping = new AbortController();
  readonly #working: Promise<unknown>;
  #url: string;
  #failure: unknown;

  /** They lease until the test ends. */
  constructor(url: string) {
    this.#url = url;
    const names = Array.from({ length: IMPORTER_COUNT }, (_, index) => `importer-${index}`);
    this.#working = Promise.all(names.map((name) => this.#work(name))).catch((error: unknown) => {
      this.#failure = error;
    });
    onTestFinished(() => this.stop());
  }

  /** From now on they ask this coordinator. */
  goTo(url: string): void {
    this.#url = url;
  }

  async untilLeased(): Promise<void> {
    const before = this.leases.length;
    // One response may have been on its way for each of them.
    await this.#until(() => this.leases.length > before + IMPORTER_COUNT);
  }

  /** Resolves to the message of the newest such rejection. */
  async untilRejected(code: string): Promise<string> {
    const before = this.rejections.length;
    const ofCode = () => this.rejections.slice(before).findLast((rejection) => rejection.code === code);
    await this.#until(() => ofCode() !== undefined);
    return ofCode()?.message ?? "";
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** No run was leased twice, and each lease, of those until now or of the first ones, is in the ledger of the store or in files. */
  expectAllIn(ledger: readonly LedgerEntry[], leases: readonly Lease[] = this.leases): void {
    expectNoRunTwice(this.leases);
    const nonces = new Map(ledger.map((entry) => [lastLedgerIdOf(entry), entry.nonce]));
    const lost = leases.filter(({ version, firstRun, runCount, nonce }) => {
      return nonces.get(ledgerIdOf(version, firstRun + runCount - 1)) !== nonce;
    });
    expect(lost).toEqual([]);
  }

  async #work(name: string): Promise<void> {
    const holder = { name, host: "test", pid: 1, labels: {} };
    let last: Lease | undefined;
    while (!this.#stopping.signal.aborted) {
      const body = JSON.stringify({ ...requestAfter(last), runCount: 1, holder });
      const answer = await fetch(new URL("/v1/namespaces/main/leases", this.#url), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      })
        .then(
          async (response) => (await response.json()) as Lease | { readonly code: string; readonly message: string },
        )
        .catch((error: unknown) => ({ code: "unreachable", message: String(error) }));
      if ("code" in answer) this.rejections.push(answer);
      else {
        this.leases.push(answer);
        last = answer;
      }
      await delay(BETWEEN_LEASES_MS);
    }
  }

  async #until(isSo: () => boolean): Promise<void> {
    await expect.poll(() => this.#failure !== undefined || isSo()).toBe(true);
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** The ledger of the store, as the coordinator exports it. */
export async function exportedLedger(url: string): Promise<readonly LedgerEntry[]> {
  const response = await fetch(new URL("/v1/namespaces/main/export", url));
  const lines = (await response.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as LedgerEntry & { end?: true });
  expect(lines.at(-1)?.end).toBe(true);
  return lines.slice(0, -1);
}
