/** The importers that work in a world while faults happen to it. The usual ones live in this process: two that only take runs, one that mints. */
import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient } from "@callnumber/client";
import { Importer, type ImporterOptions } from "./importer.js";

/** Otherwise the control and the other importers would get no processor time. */
const MINTING_PAUSE_MS = 5;
const TAKE_COUNT = 4_096;
const WAIT_TIMEOUT_MS = 500;

/** What an importer knows of its world. */
export type Workplace = Omit<ImporterOptions, "name" | "changesCoordinators" | "pauseMs">;

export interface Load {
  readonly callNumberCount: number;
  /** What came twice, or should not have come, beyond runs. */
  readonly problems: readonly string[];
  start(workplace: Workplace, storeId: string): void;
  /** Resolves when every importer got runs that it requested after this call. */
  nextLeases(): Promise<unknown>;
  /** A number that the control made. It makes the next one when this resolves. */
  noteControl(number: number): Promise<void> | void;
  /** Resolves when no importer works any more. Without effect before the start, and the second time. */
  stop(): Promise<void>;
}

export class UsualLoad implements Load {
  #importers: readonly Importer[] = [];
  #minting: MintingImporter | undefined;

  /** @param pauseMs of each importer and of the control after each response. Default 0: as fast as they can, which takes a whole core. */
  constructor(readonly pauseMs = 0) {}

  get callNumberCount(): number {
    return this.#minting?.callNumberCount ?? 0;
  }

  get problems(): readonly string[] {
    const own = this.#minting?.repeatCount ?? 0;
    return own > 0 ? [`${own} call numbers were made twice by one client`] : [];
  }

  start(workplace: Workplace): void {
    const taking = { ...workplace, pauseMs: this.pauseMs };
    this.#importers = [
      new Importer({ ...taking, name: "a", changesCoordinators: false }),
      // Meets every coordinator in turn, and so whatever one of them would do differently.
      new Importer({ ...taking, name: "b", changesCoordinators: true }),
    ];
    this.#minting = new MintingImporter({ ...workplace, name: "minting", pauseMs: this.pauseMs + MINTING_PAUSE_MS });
    for (const one of [...this.#importers, this.#minting]) one.start();
  }

  nextLeases(): Promise<unknown> {
    return Promise.all(this.#importers.map((importer) => importer.leases.wait()));
  }

  /** The control counts its repeats itself. */
  async noteControl(): Promise<void> {
    if (this.pauseMs > 0) await delay(this.pauseMs);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#importers, this.#minting].map((one) => one?.stop()));
  }
}

type MintingOptions = Workplace & { readonly name: string; readonly pauseMs: number };

/**
 * An importer as users write it: the real client, making every number of every run. When the client stops permanently, a new one is
 * made, as a person would start the importer again.
 */
class MintingImporter {
  callNumberCount = 0;
  /** Call numbers that this importer itself got twice. */
  repeatCount = 0;
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();
  #turn = 0;

  constructor(readonly options: MintingOptions) {}

  start(): void {
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
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
    const { pauseMs } = this.options;
    let seen = new Set<string>();
    while (!this.#isStopped) {
      const callNumbers = await client.take(TAKE_COUNT);
      for (const callNumber of callNumbers) {
        if (seen.has(callNumber)) this.repeatCount++;
        seen.add(callNumber);
      }
      this.callNumberCount += callNumbers.length;
      // Repeated runs are found by what was leased; here only the numbers of the last runs are compared.
      if (seen.size > 8 * TAKE_COUNT) seen = new Set(callNumbers);
      await delay(pauseMs);
    }
  }

  #newClient(): Client {
    const { coordinators, namespace, name, received } = this.options;
    const addresses = coordinators();
    // Each client is a process of its own to the store: runs rise within it.
    const importer = `${name} ${this.#turn}.${received.leaseCount}`;
    return createClient({
      coordinator: addresses[this.#turn % addresses.length] as string,
      namespace,
      holder: { name },
      maxRunsPerLease: 4,
      waitTimeoutMs: WAIT_TIMEOUT_MS,
      hooks: {
        onLease: ({ storeId, version, firstRun, runCount }) => {
          received.note({ importer, storeId, version, firstRun, runCount, receivedAtMs: Date.now() });
        },
        onRetry: ({ error }) => this.#noteCode(error.reason ?? error.code),
      },
    });
  }

  #noteCode(code: string): void {
    const { codes } = this.options;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
}
