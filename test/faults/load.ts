/** The importers that work in a world while faults happen to it. The usual ones live in this process: two that only take runs, one that mints. */
import { setTimeout as delay } from "node:timers/promises";
import { Importer, type ImporterOptions } from "./importer.js";
import { MintingImporter } from "./minting-importer.js";

/** Else the control and the other importers would stand still. */
const MINTING_PAUSE_MS = 5;

/** What an importer is told of its world. */
export type Workplace = Omit<ImporterOptions, "name" | "wanders" | "pauseMs">;

export interface Load {
  readonly callNumberCount: number;
  /** What came twice, or should not have come, beyond runs. */
  readonly problems: readonly string[];
  start(workplace: Workplace, storeId: string): void;
  /** Resolves when every importer got runs that it asked for after this call. */
  nextLeases(): Promise<unknown>;
  /** A number that the control made. It makes the next one when this resolves. */
  noteControl(number: number): Promise<void> | void;
  /** Resolves when no importer works any more. Without effect before the start, and the second time. */
  stop(): Promise<void>;
}

export class UsualLoad implements Load {
  readonly #pauseMs: number;
  #importers: readonly Importer[] = [];
  #minting: MintingImporter | undefined;

  /** @param pauseMs of each importer and of the control behind each answer. Default 0: as fast as they can, which takes a whole core. */
  constructor(pauseMs = 0) {
    this.#pauseMs = pauseMs;
  }

  get callNumberCount(): number {
    return this.#minting?.callNumberCount ?? 0;
  }

  get problems(): readonly string[] {
    const own = this.#minting?.repeatCount ?? 0;
    return own > 0 ? [`${own} call numbers were made twice by one client`] : [];
  }

  start(workplace: Workplace): void {
    const taking = { ...workplace, pauseMs: this.#pauseMs };
    this.#importers = [
      new Importer({ ...taking, name: "a", wanders: false }),
      // Meets every coordinator in turn, and so whatever one of them would do differently.
      new Importer({ ...taking, name: "b", wanders: true }),
    ];
    this.#minting = new MintingImporter({ ...workplace, name: "minting", pauseMs: this.#pauseMs + MINTING_PAUSE_MS });
    for (const one of [...this.#importers, this.#minting]) one.start();
  }

  nextLeases(): Promise<unknown> {
    return Promise.all(this.#importers.map((importer) => importer.nextLease()));
  }

  /** The control counts its repeats itself. */
  async noteControl(): Promise<void> {
    if (this.#pauseMs > 0) await delay(this.#pauseMs);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#importers, this.#minting].map((one) => one?.stop()));
  }
}
