/** Starts and ends importers that are processes of their own, and passes on what they write and report. */
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { ClientOptions } from "@callnumber/client";
import { type Program, type SpawnProgram, startProgram } from "./coordinator-process.js";
import type { Workplace } from "./load.js";

export interface GeneratingSettings
  extends Pick<ClientOptions, "coordinator" | "namespace" | "holder" | "expectedStoreId">,
    Pick<ClientOptions, "spareRuns" | "maxRunsPerLease" | "waitTimeoutMs" | "requestTimeoutMs"> {
  /** How many call numbers at once. */
  readonly takeCount: number;
  /** Between two takes, ms. */
  readonly pauseMs: number;
  /** After its first numbers it forks, and both processes generate numbers. Default: it is in JavaScript. */
  readonly isInPython?: boolean;
}

/**
 * What such an importer reports: runs arrived; a request failed and will be repeated (`away`); a call failed, because no run came in
 * time (`refused`); its client has stopped permanently (`alarm`).
 */
export type GeneratingEvent = { readonly atMs: number; readonly pid?: number } & (
  | {
      readonly event: "lease";
      readonly storeId: string;
      readonly version: number;
      readonly firstRun: number;
      readonly runCount: number;
    }
  | { readonly event: "away" | "refused" | "alarm"; readonly code: string; readonly message: string }
);

/** Keeps what an importer reported: leases, and codes. The runs of each process rise, also where one was forked. */
export function noteEvent(
  { received, codes }: Pick<Workplace, "received" | "codes">,
  importer: string,
  event: GeneratingEvent,
): void {
  const ofProcess = event.pid === undefined ? importer : `${importer} (${event.pid})`;
  if (event.event === "lease") received.note({ importer: ofProcess, receivedAtMs: event.atMs, ...event });
  else codes.add(event.code);
}

export interface GeneratingListener {
  /** Call numbers, cut wherever the pipe cut them. */
  readonly onWritten: (piece: Buffer) => void;
  readonly onEvent: (event: GeneratingEvent) => void;
}

export class GeneratingProcess {
  /** What it reported. */
  readonly events: GeneratingEvent[] = [];
  leaseCount = 0;
  byteCount = 0;
  writtenAtMs = 0;
  readonly #program: Program;
  /** When it has ended, and all that it wrote was handed on. */
  readonly #ended: Promise<unknown>;
  #isExpectedToEnd = false;

  /** Makes its first request at once. */
  constructor(
    readonly settings: GeneratingSettings,
    { onWritten, onEvent }: GeneratingListener,
    spawn?: SpawnProgram,
  ) {
    const { isInPython = false, ...given } = settings;
    const program = isInPython ? "generating-process.py" : "generating-process.mjs";
    this.#program = startProgram(program, given, spawn, { stdio: ["pipe", "pipe", "pipe", "pipe"] });
    const { child } = this.#program;
    child.stdout?.on("data", (piece: Buffer) => {
      this.byteCount += piece.length;
      this.writtenAtMs = Date.now();
      onWritten(piece);
    });
    child.stdin?.on("error", () => {}); // It has ended.
    createInterface(child.stdio[3] as Readable).on("line", (line) => {
      const event = JSON.parse(line) as GeneratingEvent;
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
    this.#program.child.stdin?.write("stop\n");
    await this.#ended;
  }
}
