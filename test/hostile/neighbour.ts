/** The other caller beside the rows, seen from here. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Target } from "./row.js";

const PROGRAM = join(import.meta.dirname, "neighbour-process.mjs");

export interface Worked {
  /** Of each lease. */
  readonly tookMs: readonly number[];
  readonly runCount: number;
  /** Opened meanwhile, and answered on. */
  readonly connectionCount: number;
  readonly failures: readonly string[];
}

/** Ends with the test. */
export class Neighbour {
  readonly #process: ChildProcess;

  constructor({ host, port, isEncrypted = false, leaseToken }: Target) {
    const words = [PROGRAM, isEncrypted ? "https" : "http", host, String(port), leaseToken];
    this.#process = spawn(process.execPath, words, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    onTestFinished(async () => {
      this.#process.kill("SIGKILL");
      if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, "close");
    });
  }

  /** What it did while `act` went on: at least so long. */
  async during<T>(act: () => Promise<T>): Promise<{ readonly result: T; readonly worked: Worked }> {
    this.#process.send("go");
    try {
      const result = await act();
      return { result, worked: await this.#halt() };
    } catch (error) {
      await this.#halt();
      throw error;
    }
  }

  async #halt(): Promise<Worked> {
    const answered = once(this.#process, "message") as Promise<[Worked]>;
    this.#process.send("halt");
    return (await answered)[0];
  }
}
