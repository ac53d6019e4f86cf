/** A coordinator for the demo: the real command as a real process, with an embedded store in a folder of the demo. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The `callnumber` command, as its package ships it. */
export const CALLNUMBER = fileURLToPath(new URL("../bin/callnumber.js", import.meta.resolve("callnumber")));

export class DemoCoordinator {
  readonly url: string;
  readonly storePath: string;
  readonly #process: ChildProcess;

  private constructor(url: string, storePath: string, process: ChildProcess) {
    this.url = url;
    this.storePath = storePath;
    this.#process = process;
  }

  /** Starts it on a free port and waits until it listens. Rejects with what it said when it ends before that. */
  static async start(storePath: string): Promise<DemoCoordinator> {
    const store = ["--store", `sqlite:${storePath}`, "--create", "--witness-folder", `${dirname(storePath)}/witness`];
    const args = ["serve", ...store, "--port", "0", "--log-level", "silent"];
    const child = spawn(process.execPath, [CALLNUMBER, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    const said: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      said.push(line);
      const url = /listening on (http:\/\/\S+?)(?:,|$)/.exec(line)?.[1];
      if (url === undefined) continue;
      child.stderr.resume();
      return new DemoCoordinator(url, storePath, child);
    }
    throw new Error(`the coordinator ended before it listened. It said:\n${said.join("\n")}`);
  }

  /** Ends it in good order. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    await exited;
  }
}
