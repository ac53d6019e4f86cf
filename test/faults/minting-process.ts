/** Starts and ends importers that are processes of their own, and passes on what they write and report. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { ClientOptions } from "@callnumber/client";
import { type SpawnProgram, spawnHere } from "./coordinator-process.js";
import type { Workplace } from "./load.js";
import { LeaseWaiters } from "./received.js";

const PROGRAM = fileURLToPath(new URL("./minting-process.mjs", import.meta.url));

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
 * time (`refused`); its client has stopped for good (`alarm`).
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
  else codes.set(event.code, (codes.get(event.code) ?? 0) + 1);
}

export interface MintingListener {
  /** Call numbers, cut wherever the pipe cut them. */
  readonly onWritten: (piece: Buffer) => void;
  readonly onEvent: (event: MintingEvent) => void;
}

export class MintingProcess {
  readonly leases = new LeaseWaiters();
  readonly #child: ChildProcess;
  /** When it has ended, and all that it wrote was handed on. */
  readonly #ended: Promise<unknown>;
  #isExpectedToEnd = false;
  #output = "";

  /** Makes its first request at once. */
  constructor(settings: MintingSettings, { onWritten, onEvent }: MintingListener, spawn: SpawnProgram = spawnHere) {
    const stdio = ["ignore", "pipe", "pipe", "ipc"] as const;
    this.#child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], { stdio: [...stdio] });
    this.#child.stdout?.on("data", onWritten);
    this.#child.stderr?.on("data", (chunk) => (this.#output += String(chunk)));
    this.#child.on("message", (event: MintingEvent) => {
      onEvent(event);
      if (event.event === "lease") this.leases.wake();
    });
    this.#ended = once(this.#child, "close");
  }

  /** Why it ended by itself, which it never should; undefined while it has not. */
  get failure(): string | undefined {
    const { exitCode, signalCode } = this.#child;
    if (this.#isExpectedToEnd || (exitCode === null && signalCode === null)) return undefined;
    return `an importer ended by itself (${exitCode ?? signalCode}): ${this.#output}`;
  }

  /** kill -9. Resolves when what it had written by then was handed on too. */
  async kill(): Promise<void> {
    this.#isExpectedToEnd ||= this.failure === undefined;
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Lets it close its client. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#isExpectedToEnd ||= this.failure === undefined;
    if (this.#child.connected) this.#child.send("stop");
    await this.#ended;
  }
}
