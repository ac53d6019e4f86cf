/**
 * The processes at work: each gets the next range when it has finished the last. So at most one range per process is on
 * its way, however large the sources are. A process is started only when there is a range for it.
 *
 * When one fails or dies, the others finish what they have in hand and end.
 */
import { ImporterError } from "../errors.js";
import type { Range } from "../sources/range.js";
import { ImportingChild } from "./importing-child.js";
import type { ProcessSettings } from "./process-messages.js";
import type { RangeResult } from "./range-importer.js";

export interface CrewListener {
  onStarted(processNumber: number, pid: number | undefined): void;
  onImported(range: Range, result: RangeResult): void;
  onWaiting(processNumber: number, reason: string): void;
}

export class Crew {
  readonly #settings: Omit<ProcessSettings, "processNumber">;
  readonly #processes: number;
  readonly #listener: CrewListener;
  readonly #children: ImportingChild[] = [];
  #stopping = false;
  #killed = false;
  #failure: unknown;

  constructor(processes: number, settings: Omit<ProcessSettings, "processNumber">, listener: CrewListener) {
    this.#processes = processes;
    this.#settings = settings;
    this.#listener = listener;
  }

  /** How many processes there was work for. */
  get started(): number {
    return this.#children.length;
  }

  get runsLeased(): number {
    return this.#children.reduce((sum, { runs }) => sum + runs.leased, 0);
  }

  get runsUsed(): number {
    return this.#children.reduce((sum, { runs }) => sum + runs.used, 0);
  }

  /**
   * Imports all ranges. Resolves when every process has ended, also after `stop`.
   * @throws the first failure of a process.
   */
  async run(ranges: AsyncGenerator<Range, void>): Promise<void> {
    await Promise.all(Array.from({ length: this.#processes }, (_, index) => this.#serve(index + 1, ranges)));
    await ranges.return();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Every process ends after the transaction in hand. */
  stop(): void {
    this.#stopping = true;
    for (const child of this.#children) child.stop();
  }

  /** Every process ends at once. What is committed stands. */
  kill(): void {
    this.#stopping = true;
    this.#killed = true;
    for (const child of this.#children) child.kill();
  }

  async #serve(processNumber: number, ranges: AsyncGenerator<Range, void>): Promise<void> {
    let child: ImportingChild | undefined;
    try {
      while (!this.#stopping) {
        const next = await ranges.next();
        if (next.done === true || this.#stopping) break;
        child ??= this.#start(processNumber);
        this.#listener.onImported(next.value, await child.import(next.value));
      }
    } catch (error) {
      this.#noticeFailure(error);
    }
    child?.stop();
    await child?.ended;
  }

  #start(processNumber: number): ImportingChild {
    const settings = { ...this.#settings, processNumber };
    const child = new ImportingChild(settings, {
      onWaiting: (reason) => this.#listener.onWaiting(processNumber, reason),
    });
    this.#children.push(child);
    this.#listener.onStarted(processNumber, child.pid);
    return child;
  }

  /** A process that was told to end gives up a range that waits for numbers: no failure, it is imported next time. */
  #noticeFailure(error: unknown): void {
    const gaveUp = this.#stopping && error instanceof ImporterError && error.code === "client_closed";
    if (gaveUp || this.#killed) return;
    this.#failure ??= error;
    this.stop();
  }
}
