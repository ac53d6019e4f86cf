/** Starts and ends importers that are processes of their own, and passes on what they write and report. */
import { once } from "node:events";
import type { ClientOptions } from "@callnumber/client";
import { type Program, type SpawnProgram, startProgram } from "./coordinator-process.js";
import type { Workplace } from "./load.js";

export interface MintingSettings
  extends Pick<ClientOptions, "coordinator" | "namespace" | "holder" | "expectedStoreId">,
    Pick<ClientOptions, "spareRuns" | "maxRunsPerLease" | "waitTimeoutMs" | "requestTimeoutMs"> {
  /** How many call numbers at once. */
  readonly takeCount: number;
  /** Between two takes, ms. */
  readonly pauseMs: number;
}

/**
 * What such an importer reports: runs arrived; a request failed and will be repeated (`away`); a call failed, because no run came in
 * time (`refused`); its client has stopped permanently (`alarm`).
 */
export type MintingEvent = { readonly atMs: number } & (
  | {
      readonly event: "lease";
      readonly storeId: string;
      readonly version: number;
      readonly firstRun: number;
      readonly runCount: number;
    }
  | { readonly event: "away" | "refused" | "alarm"; readonly code: string; readonly message: string }
);

/** Keeps what an importer reported: leases, and codes. */
export function noteEvent(
  { received, codes }: Pick<Workplace, "received" | "codes">,
  importer: string,
  event: MintingEvent,
): void {
  if (event.event === "lease") received.note({ importer, receivedAtMs: event.atMs, ...event });
  else codes.add(event.code);
}

export interface MintingListener {
  /** Call numbers, cut wherever the pipe cut them. */
  readonly onWritten: (piece: Buffer) => void;
  readonly onEvent: (event: MintingEvent) => void;
}

export class MintingProcess {
  /** What it reported. */
  readonly events: MintingEvent[] = [];
  leaseCount = 0;
  byteCount = 0;
  writtenAtMs = 0;
  readonly #program: Program;
  /** When it has ended, and all that it wrote was handed on. */
  readonly #ended: Promise<unknown>;
  #isExpectedToEnd = false;

  /** Makes its first request at once. */
  constructor(
    readonly settings: MintingSettings,
    { onWritten, onEvent }: MintingListener,
    spawn?: SpawnProgram,
  ) {
    this.#program = startProgram("minting-process.mjs", settings, spawn);
    const { child } = this.#program;
    child.stdout?.on("data", (piece: Buffer) => {
      this.byteCount += piece.length;
      this.writtenAtMs = Date.now();
      onWritten(piece);
    });
    child.on("message", (event: MintingEvent) => {
      this.events.push(event);
      if (event.event === "lease") this.leaseCount++;
      onEvent(event);
    });
    this.#ended = once(child, "close");
  }

  /** Why it ended by itself, which it never should; undefined while it has not. */
  get failure(): string | undefined {
    const { exitCode, signalCode } = this.#program.child;
    if (this.#isExpectedToEnd || (exitCode === null && signalCode === null)) return undefined;
    return `an importer ended by itself (${exitCode ?? signalCode}): ${this.#program.errors()}`;
  }

  /** kill -9. Resolves when what it had written by then was handed on too. */
  async kill(): Promise<void> {
    this.#isExpectedToEnd ||= this.failure === undefined;
    this.#program.child.kill("SIGKILL");
    await this.#ended;
  }

  /** Lets it close its client. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#isExpectedToEnd ||= this.failure === undefined;
    if (this.#program.child.connected) this.#program.child.send("stop");
    await this.#ended;
  }
}
