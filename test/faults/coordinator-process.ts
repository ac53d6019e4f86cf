/** Starts, kills, freezes and restarts coordinator processes, and keeps what they logged. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Bounds } from "../../packages/coordinator/src/guard/bounds.js";

const PROGRAM = fileURLToPath(new URL("./coordinator-process.mjs", import.meta.url));

/** As `spawn`, perhaps on another host; `options` ask for a channel for messages. */
export type SpawnProgram = (program: string, words: readonly string[], options: SpawnOptions) => ChildProcess;

export const spawnHere: SpawnProgram = (program, words, options) => spawn(program, words, options);

export interface CoordinatorSettings {
  readonly storeUrl: string;
  readonly name: string;
  readonly bounds: Bounds;
  /** null: remembers nothing outside its memory. */
  readonly checkpointDir: string | null;
  /** Where an embedded store marks that nothing was forgotten: a folder in memory; null for a store that has none. */
  readonly markerFolder: string | null;
  readonly preflightEveryMs: number;
}

interface LogMessage {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
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
    readonly codes: Map<string, number>,
    readonly spawn: SpawnProgram,
  ) {
    this.#settings = settings;
  }

  /** Resolves when it listens, at an address of the host that `spawn` starts it on. `codes` collects what it logs. */
  static async start(
    settings: CoordinatorSettings,
    codes: Map<string, number>,
    spawn: SpawnProgram = spawnHere,
  ): Promise<CoordinatorProcess> {
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
    const child = this.spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], {
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    let output = "";
    let failure: string | undefined;
    child.stderr?.on("data", (chunk) => (output += String(chunk)));
    const ended = once(child, "exit").then(() => {
      this.#child = undefined;
      throw new Error(`the coordinator ended before it listened: ${failure ?? output}`);
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

  #note({ event, fields }: LogMessage): void {
    const isRecovery = event === "recovering" || event === "jump";
    const code = (isRecovery ? fields["reason"] : undefined) ?? fields["code"];
    if (typeof code === "string") this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
  }
}

/** kill -9. Resolves when the process is gone. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
