/**
 * Importers that are processes of their own and mint as fast as they can; every call number of theirs is checked. When a client reports why
 * no run comes, its process is killed and another one started at the next coordinator, as a person would.
 */
import { encodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { CallNumberCheck } from "./call-number-check.js";
import type { Load, Workplace } from "./load.js";
import { type MintingEvent, MintingProcess, noteEvent } from "./minting-process.js";
import { LeaseWaiters } from "./received.js";

/** Enough that the channel costs little. */
const TAKE_COUNT = SEQUENCE_COUNT;
const WAIT_TIMEOUT_MS = 1_000;
/** Every process waits at the run ceiling. */
const WORTH_WAITING = "run_ceiling_reached";

export interface ProcessLoadOptions {
  readonly importerCount: number;
  /** Checks what importers make. */
  readonly check: CallNumberCheck;
  /** Checks the numbers of the control in the same way. */
  readonly controlCheck: CallNumberCheck;
}

export class ProcessLoad implements Load {
  #importers: readonly ProcessImporter[] = [];
  #checkControl: (piece: Buffer) => void = () => {};
  readonly #countBefore: number;

  constructor(readonly options: ProcessLoadOptions) {
    this.#countBefore = options.check.count;
  }

  get callNumberCount(): number {
    return this.options.check.count - this.#countBefore;
  }

  get problems(): readonly string[] {
    return this.#importers.flatMap(({ failures }) => failures);
  }

  start(workplace: Workplace, storeId: string): void {
    const { importerCount, check, controlCheck } = this.options;
    this.#checkControl = controlCheck.reader(storeId, "the control");
    this.#importers = Array.from(
      { length: importerCount },
      (_, index) => new ProcessImporter(workplace, index, (name) => check.reader(storeId, name)),
    );
    for (const importer of this.#importers) importer.start();
  }

  nextLeases(): Promise<unknown> {
    return Promise.all(this.#importers.map((importer) => importer.leases.wait()));
  }

  /** As call numbers of a plain counter: the first run's, then the next one's. */
  noteControl(number: number): void {
    const parts = { version: 0, run: Math.floor(number / SEQUENCE_COUNT), sequence: number % SEQUENCE_COUNT };
    this.#checkControl(Buffer.from(encodeCallNumber(parts), "latin1"));
  }

  /** kill -9 of one of the importers while it mints; another process takes its place. */
  async killOne(random: () => number): Promise<void> {
    await this.#importers[Math.floor(random() * this.#importers.length)]?.replace();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#importers.map((importer) => importer.stop()));
  }
}

class ProcessImporter {
  readonly failures: string[] = [];
  readonly leases = new LeaseWaiters();
  #process: MintingProcess | undefined;
  #processCount = 0;
  #isStopped = false;
  #replacing: Promise<void> = Promise.resolve();

  constructor(
    readonly workplace: Workplace,
    readonly index: number,
    readonly readerFor: (name: string) => (piece: Buffer) => void,
  ) {}

  start(): void {
    const { coordinators, namespace } = this.workplace;
    const addresses = coordinators();
    const turn = this.index + this.#processCount++;
    const name = `importer ${this.index + 1}, process ${this.#processCount}`;
    const coordinator = addresses[turn % addresses.length] as string;
    const given = { coordinator, namespace, holder: { name }, waitTimeoutMs: WAIT_TIMEOUT_MS, maxRunsPerLease: 8 };
    this.#process = new MintingProcess(
      { ...given, takeCount: TAKE_COUNT, pauseMs: 0 },
      { onWritten: this.readerFor(name), onEvent: (event) => this.#note(name, event) },
    );
  }

  /** Resolves when the process is dead, all it had written has come, and the next one has begun. */
  replace(): Promise<void> {
    const old = this.#process;
    this.#replacing = this.#replacing.then(async () => {
      if (old === undefined || old !== this.#process || this.#isStopped) return;
      if (old.failure !== undefined) this.failures.push(old.failure);
      await old.kill();
      this.start();
    });
    return this.#replacing;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#replacing;
    if (this.#process?.failure !== undefined) this.failures.push(this.#process.failure);
    await this.#process?.kill();
  }

  #note(name: string, event: MintingEvent): void {
    noteEvent(this.workplace, name, event);
    if (event.event === "lease") this.leases.wake();
    else if (event.event !== "away" && event.code !== WORTH_WAITING) void this.replace();
  }
}
