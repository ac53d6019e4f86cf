/** An importer that is a process of its own, and is started again as a person would. */

import { type GeneratingEvent, GeneratingProcess, type GeneratingSettings, noteEvent } from "./generating-process.js";
import type { Workplace } from "./load.js";

const WAIT_TIMEOUT_MS = 1_000;
/** Every process waits at the run ceiling. */
const WORTH_WAITING = "run_ceiling_reached";

export interface ProcessImporterOptions extends Pick<GeneratingSettings, "takeCount" | "pauseMs"> {
  /** From 0: which of the coordinators its first process uses. */
  readonly index: number;
  readonly isInPython: boolean;
  /** So many leases, and it is killed; another process takes its place. Default: never. */
  readonly killEveryLeases?: number;
  /** Gets the numbers of one process. */
  readonly readerFor: (name: string) => (piece: Buffer) => void;
}

/** When its client reports why no run comes, its process is killed and another one started at the next coordinator. */
export class ProcessImporter {
  leaseCount = 0;
  readonly #failures: string[] = [];
  #process: GeneratingProcess;
  #processCount = 0;
  #isStopped = false;
  #replacing: Promise<void> = Promise.resolve();

  constructor(
    readonly workplace: Workplace,
    readonly options: ProcessImporterOptions,
  ) {
    this.#process = this.#newProcess();
  }

  /** Of processes that ended by themselves, the present one included. */
  get failures(): readonly string[] {
    const { failure } = this.#process;
    return failure === undefined ? this.#failures : [...this.#failures, failure];
  }

  /** Resolves when the process is dead, all it had written has come, and the next one has begun. */
  replace(): Promise<void> {
    const old = this.#process;
    this.#replacing = this.#replacing.then(async () => {
      if (old !== this.#process || this.#isStopped) return;
      await this.#kill();
      this.#process = this.#newProcess();
    });
    return this.#replacing;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#replacing;
    await this.#kill();
  }

  async #kill(): Promise<void> {
    if (this.#process.failure !== undefined) this.#failures.push(this.#process.failure);
    await this.#process.kill();
  }

  #newProcess(): GeneratingProcess {
    const { coordinators, namespace } = this.workplace;
    const addresses = coordinators();
    const { index, isInPython, takeCount, pauseMs, readerFor } = this.options;
    const turn = index + this.#processCount++;
    const name = `importer ${index + 1}, process ${this.#processCount}`;
    const coordinator = addresses[turn % addresses.length] as string;
    const given = { coordinator, namespace, holder: { name }, waitTimeoutMs: WAIT_TIMEOUT_MS, maxRunsPerLease: 8 };
    return new GeneratingProcess(
      { ...given, takeCount, pauseMs, isInPython },
      { onWritten: readerFor(name), onEvent: (event) => this.#note(name, event) },
    );
  }

  #note(name: string, event: GeneratingEvent): void {
    noteEvent(this.workplace, name, event);
    const { killEveryLeases = Number.POSITIVE_INFINITY } = this.options;
    if (event.event === "lease") {
      if (++this.leaseCount % killEveryLeases === 0) void this.replace();
    } else if (event.event !== "away" && event.code !== WORTH_WAITING) void this.replace();
  }
}
