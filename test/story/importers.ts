/** The importers of the story: processes that mint and write down what they minted, one of them in a crash loop. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** As a supervisor waits before it tries again. */
const RESTART_AFTER_MS = 300;
const PROGRAM = fileURLToPath(new URL("./importing-process.mjs", import.meta.url));

export interface ImporterSettings {
  readonly coordinator: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** It is killed by itself after so many numbers, and started again at once; undefined for one that is sound. */
  readonly crashesAfter?: number;
}

export class Importer {
  readonly settings: ImporterSettings;
  readonly #numbersFile: string;
  #child: ChildProcess | undefined;
  #isWanted = true;
  #running: Promise<void> = Promise.resolve();

  constructor(folder: string, settings: ImporterSettings) {
    this.settings = settings;
    this.#numbersFile = join(folder, `${settings.namespace}.${settings.name}.txt`);
    onTestFinished(() => this.stop("SIGKILL"));
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends it for good. Rejects when a sound importer did not end by itself with 0. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.#isWanted = false;
    this.#child?.kill(signal);
    await this.#running.catch((error: unknown) => {
      if (signal === "SIGTERM") throw error;
    });
  }

  /** All that it wrote down until now, over all its lives. */
  async numbers(): Promise<readonly string[]> {
    const text = await readFile(this.#numbersFile, "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  async #run(): Promise<void> {
    while (this.#isWanted) {
      const parameters = JSON.stringify({ ...this.settings, numbersFile: this.#numbersFile });
      const child = spawn(process.execPath, [PROGRAM, parameters], { stdio: ["ignore", "ignore", "pipe"] });
      let said = "";
      child.stderr?.on("data", (chunk) => (said += String(chunk)));
      this.#child = child;
      const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
      const isCrashing = this.settings.crashesAfter !== undefined;
      const hasCrashed = isCrashing && signal === "SIGKILL";
      // One that is started over and over may be told to stop before it listens to that.
      const wasStopped = isCrashing && !this.#isWanted;
      if (code !== 0 && !hasCrashed && !wasStopped)
        throw new Error(`importer ${this.settings.name} ended with ${code ?? signal}: ${said}`);
      if (hasCrashed && this.#isWanted) await delay(RESTART_AFTER_MS);
    }
  }
}
