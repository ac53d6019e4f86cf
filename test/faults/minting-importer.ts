/**
 * An importer as users write it: the real client, making every number of every run. When the client stops for good, a new one is
 * made, as a person would start the importer again.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient } from "@callnumber/client";
import type { Workplace } from "./load.js";

type MintingOptions = Workplace & { readonly name: string; readonly pauseMs: number };

const TAKE_COUNT = 4_096;
const WAIT_TIMEOUT_MS = 500;

export class MintingImporter {
  readonly #options: MintingOptions;
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();
  #turn = 0;
  #callNumberCount = 0;
  #repeatCount = 0;

  constructor(options: MintingOptions) {
    this.#options = options;
  }

  start(): void {
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
  }

  get callNumberCount(): number {
    return this.#callNumberCount;
  }

  /** Call numbers that this importer itself got twice. */
  get repeatCount(): number {
    return this.#repeatCount;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      const client = this.#newClient();
      try {
        await this.#mint(client);
      } catch (error) {
        const code = (error as { code?: unknown }).code;
        if (typeof code !== "string") throw error;
        this.#noteCode(code);
        this.#turn++;
      }
      await client.close();
    }
  }

  async #mint(client: Client): Promise<void> {
    const { pauseMs } = this.#options;
    let seen = new Set<string>();
    while (!this.#isStopped) {
      const callNumbers = await client.take(TAKE_COUNT);
      for (const callNumber of callNumbers) {
        if (seen.has(callNumber)) this.#repeatCount++;
        seen.add(callNumber);
      }
      this.#callNumberCount += callNumbers.length;
      // Runs are told apart by what was leased; here only the numbers of the last runs are compared.
      if (seen.size > 8 * TAKE_COUNT) seen = new Set(callNumbers);
      await delay(pauseMs);
    }
  }

  #newClient(): Client {
    const { coordinators, namespace, name, received } = this.#options;
    const addresses = coordinators();
    // Each client is a process of its own to the store: runs rise within it.
    const importer = `${name} ${this.#turn}.${received.leaseCount}`;
    return createClient({
      coordinator: addresses[this.#turn % addresses.length] as string,
      namespace,
      holder: { name },
      leaseRunCountMax: 4,
      waitTimeoutMs: WAIT_TIMEOUT_MS,
      hooks: {
        onLease: ({ storeId, version, firstRun, runCount }) => {
          received.note({ importer, storeId, version, firstRun, runCount, receivedAtMs: Date.now() });
        },
        onCoordinatorAway: ({ error }) => this.#noteCode(error.code),
      },
    });
  }

  #noteCode(code: string): void {
    const { codes } = this.#options;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
}
