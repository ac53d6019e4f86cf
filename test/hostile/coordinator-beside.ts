/** The coordinator that the rows are sent to: a real `serve`, on an embedded store of its own, watched from outside. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../processes/command.js";
import type { Target } from "./row.js";

export interface Setting {
  readonly share: number;
  readonly parameters?: readonly string[];
}

export class CoordinatorBeside {
  readonly #running: RunningCoordinator;
  #logLength = 0;

  private constructor(
    running: RunningCoordinator,
    readonly target: Target,
  ) {
    this.#running = running;
  }

  static async start({ share, parameters = [] }: Setting): Promise<CoordinatorBeside> {
    const folder = await folderForTest();
    const tokensFile = join(folder, "tokens");
    const leaseToken = await tokenIn(tokensFile, "lease", "--all-namespaces");
    const operatorToken = await tokenIn(tokensFile, "operator", "--all-namespaces");
    const foreignToken = await tokenIn(tokensFile, "lease", "--namespace", "elsewhere");
    const running = await serve(
      `sqlite:${join(folder, "store.db")}`,
      "--create",
      "--tokens-file",
      tokensFile,
      // The neighbour leases as fast as it can: what others do to it is to be seen, and not a limit.
      ...["--token-burst-runs", "none", "--holder-burst-runs", "none"],
      // Everything that it could say.
      ...["--log-level", "debug"],
      ...parameters,
    );
    const { hostname: host, port } = new URL(running.url);
    return new CoordinatorBeside(running, {
      host,
      port: Number(port),
      share,
      leaseToken,
      operatorToken,
      foreignToken,
    });
  }

  get isAlive(): boolean {
    return this.#running.child.exitCode === null && this.#running.child.signalCode === null;
  }

  /** The store's high-water mark. */
  async mark(): Promise<number> {
    const headers = { connection: "close", authorization: `Bearer ${this.target.operatorToken}` };
    const answer = await fetch(`${this.#running.url}/v1/namespaces/main/status`, { headers });
    return ((await answer.json()) as { highWaterMark: number }).highWaterMark;
  }

  get memoryKib(): number {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#pid}/status`, "utf8")) ?? [];
    return Number(kib);
  }

  get descriptorCount(): number {
    return readdirSync(`/proc/${this.#pid}/fd`).length;
  }

  /** The log since this was asked last, and the words for people. */
  newOutput(): string {
    const { stdout, stderr } = this.#running.output();
    const text = stdout.slice(this.#logLength) + stderr;
    this.#logLength = stdout.length;
    return text;
  }

  get #pid(): number {
    return this.#running.child.pid as number;
  }
}

async function tokenIn(file: string, role: string, ...namespaces: readonly string[]): Promise<string> {
  const words = ["token", "create", "--tokens-file", file, "--role", role, ...namespaces];
  const { code, stdout, stderr } = await callnumber(words);
  if (code !== 0) throw new Error(`callnumber token create ended with ${code}: ${stderr}`);
  return stdout.trim();
}
