/** An importer process on some host, and what became of it since a given moment. */
import { type MintingEvent, type MintingListener, MintingProcess, type MintingSettings } from "./minting-process.js";
import type { SpawnProgram } from "./node-program.js";

interface Refusal {
  readonly atMs: number;
  readonly code: string;
  readonly message: string;
}

export class HostImporter {
  readonly #process: MintingProcess;
  readonly #leasedAtMs: number[] = [];
  readonly #refusals: Refusal[] = [];
  #byteCount = 0;
  #writtenAtMs = 0;

  constructor(
    readonly name: string,
    settings: MintingSettings,
    { onWritten, onEvent }: MintingListener,
    spawn: SpawnProgram,
  ) {
    const written = (piece: Buffer) => {
      this.#byteCount += piece.length;
      this.#writtenAtMs = Date.now();
      onWritten(piece);
    };
    const noted = (event: MintingEvent) => {
      if (event.event === "lease") this.#leasedAtMs.push(event.atMs);
      if (event.event === "refused") this.#refusals.push(event);
      onEvent(event);
    };
    this.#process = new MintingProcess(settings, { onWritten: written, onEvent: noted }, spawn);
  }

  get failure(): string | undefined {
    return this.#process.failure;
  }

  get leaseCount(): number {
    return this.#leasedAtMs.length;
  }

  /** What is counted from now on. */
  since(): Since {
    const atMs = Date.now();
    const [leaseCount, byteCount, refusalCount] = [this.leaseCount, this.#byteCount, this.#refusals.length];
    return {
      leaseCount: () => this.leaseCount - leaseCount,
      callNumberCount: () => Math.floor((this.#byteCount - byteCount) / 8),
      wroteForMs: () => Math.max(this.#writtenAtMs - atMs, 0),
      refusal: () => this.#refusals[refusalCount],
      // The first may have been under way: only the second was surely asked for afterwards.
      askedLeaseAfterMs: () => {
        const leasedAtMs = this.#leasedAtMs[leaseCount + 1];
        return leasedAtMs === undefined ? undefined : leasedAtMs - atMs;
      },
    };
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }
}

export interface Since {
  leaseCount(): number;
  callNumberCount(): number;
  /** Until when it wrote call numbers. */
  wroteForMs(): number;
  /** The first call that its client refused. */
  refusal(): Refusal | undefined;
  /** When it got a lease that it had asked for since then. */
  askedLeaseAfterMs(): number | undefined;
}
