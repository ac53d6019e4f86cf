/** Starts, kills, freezes and restarts coordinator processes, and keeps what they logged. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import type { Bounds } from "../../packages/coordinator/src/guard/clocks.js";
import { PYTHON, pythonEnv } from "../python/python.js";
import type { ReceivedLease } from "./received.js";
import type { Counts } from "./refusal-codes.js";

/** As `spawn`, perhaps on another host; `options` ask for a channel for messages. */
export type SpawnProgram = (program: string, words: readonly string[], options: SpawnOptions) => ChildProcess;

export interface Program {
  readonly child: ChildProcess;
  /** What it wrote to its standard error. */
  readonly errors: () => string;
}

const WITH_MESSAGES: SpawnOptions = { stdio: ["ignore", "pipe", "pipe", "ipc"] };

/** Starts a program of this directory, in JavaScript or Python, which takes its settings as its first parameter. */
export function startProgram(
  name: string,
  settings: object,
  spawnProgram: SpawnProgram = spawn,
  options = WITH_MESSAGES,
): Program {
  const words = [join(import.meta.dirname, name), JSON.stringify(settings)];
  const child = name.endsWith(".py")
    ? spawnProgram(PYTHON as string, words, { ...options, env: pythonEnv() })
    : spawnProgram(process.execPath, words, options);
  let errors = "";
  child.stderr?.on("data", (chunk) => (errors += String(chunk)));
  return { child, errors: () => errors };
}

export interface CoordinatorSettings {
  readonly storeUrl: string;
  readonly name: string;
  readonly bounds: Bounds;
  /** null: remembers nothing outside its memory. */
  readonly checkpointDir: string | null;
  /** Where an embedded store marks that nothing was forgotten: a folder in memory; null for a store that has none. */
  readonly markerFolder: string | null;
  readonly preflightEveryMs: number;
  /** Names of findings that are accepted. Default: none. */
  readonly overrides?: readonly string[];
}

interface LogMessage {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface LeasedInALoop {
  readonly leases: readonly Omit<ReceivedLease, "importer">[];
  /** Changes that were sent to the store, of leases and heartbeats, and those that were made. */
  readonly tries: number;
  readonly changes: number;
  /** Why it ended early. */
  readonly failure?: string;
}

export class CoordinatorProcess {
  #settings: CoordinatorSettings;
  #child: ChildProcess | undefined;
  #port = 0;
  #clockOffsetMs = 0;
  #url = "";

  private constructor(
    settings: CoordinatorSettings,
    /** Every code that a recovery or a stop was logged with. */
    readonly codes: Counts,
    readonly spawn: SpawnProgram | undefined,
  ) {
    this.#settings = settings;
  }

  /** Resolves when it listens, at an address of the host that `spawn` starts it on. `codes` collects what it logs. */
  static async start(settings: CoordinatorSettings, codes: Counts, spawn?: SpawnProgram): Promise<CoordinatorProcess> {
    const coordinator = new CoordinatorProcess(settings, codes, spawn);
    await coordinator.start();
    return coordinator;
  }

  get url(): string {
    return this.#url;
  }

  /**
   * Starts it again at the same address, perhaps with other settings.
   * @throws Error that names the code when it does not start.
   */
  async start(changed: Partial<CoordinatorSettings> = {}): Promise<void> {
    if (this.#child !== undefined) throw new Error("the coordinator runs already");
    this.#settings = { ...this.#settings, ...changed };
    const settings = { ...this.#settings, port: this.#port, clockOffsetMs: this.#clockOffsetMs };
    const { child, errors } = startProgram("coordinator-process.mjs", settings, this.spawn);
    let failure: string | undefined;
    const ended = once(child, "exit").then(() => {
      this.#child = undefined;
      throw new Error(`the coordinator ended before it listened: ${failure ?? errors()}`);
    });
    const listening = new Promise<void>((resolve) => {
      child.on("message", (message: LogMessage) => {
        if (message.event === "listening") {
          this.#url = String(message.fields["url"]);
          this.#port = Number(new URL(this.#url).port);
          resolve();
        }
        if (message.event === "failed") failure = `${message.fields["code"]}: ${message.fields["reason"]}`;
        this.#note(message);
      });
    });
    await Promise.race([listening, ended]);
    ended.catch(() => {});
    this.#child = child;
  }

  async kill(): Promise<void> {
    this.thaw();
    if (this.#child !== undefined) await killed(this.#child);
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Moves its clock; 0 sets it right. */
  moveClock(clockOffsetMs: number): void {
    this.#clockOffsetMs = clockOffsetMs;
    this.#child?.send({ clockOffsetMs });
  }

  /** Lets it lease one run after the other for a while, without a pause and past HTTP. */
  async leaseFor(leaseForMs: number): Promise<LeasedInALoop> {
    const child = this.#child as ChildProcess;
    return await new Promise((resolve, reject) => {
      const listen = ({ event, fields }: LogMessage) => {
        if (event !== "leased") return;
        child.off("message", listen);
        resolve(fields as unknown as LeasedInALoop);
      };
      child.on("message", listen);
      child.once("exit", () => reject(new Error("the coordinator ended while it leased")));
      child.send({ leaseForMs });
    });
  }

  #note({ event, fields }: LogMessage): void {
    const isRecovery = event === "recovering" || event === "recovered";
    const code = (isRecovery ? fields["reason"] : undefined) ?? fields["code"];
    if (typeof code === "string") this.codes.add(code);
  }
}

/** kill -9. Resolves when the process is gone. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
