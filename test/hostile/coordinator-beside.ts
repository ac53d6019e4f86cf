/** The coordinator that the rows are sent to: a real `serve`, on an embedded store of its own, watched from outside. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { folderForTest, type RunningCoordinator, serve } from "../processes/command.js";
import type { Target } from "./row.js";

/** How callers are known; without it nobody is asked. */
interface Tokens {
  readonly lease: string;
  readonly read: string;
  /** For `serve`, so that it knows them. */
  readonly parameters: readonly string[];
}

export interface Setting {
  readonly share: number;
  readonly tokens?: Tokens;
  readonly parameters?: readonly string[];
}

export class CoordinatorBeside {
  readonly #running: RunningCoordinator;
  readonly #readToken: string | undefined;
  #logLength = 0;

  private constructor(
    running: RunningCoordinator,
    readonly target: Target,
    readToken: string | undefined,
  ) {
    this.#running = running;
    this.#readToken = readToken;
  }

  static async start({ share, tokens, parameters = [] }: Setting): Promise<CoordinatorBeside> {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    // Everything that it could say.
    const running = await serve(
      store,
      "--create",
      "--log-level",
      "debug",
      ...(tokens?.parameters ?? []),
      ...parameters,
    );
    const { hostname: host, port } = new URL(running.url);
    return new CoordinatorBeside(running, { host, port: Number(port), share, token: tokens?.lease }, tokens?.read);
  }

  get isAlive(): boolean {
    return this.#running.child.exitCode === null && this.#running.child.signalCode === null;
  }

  /** The store's high-water mark. */
  async mark(): Promise<number> {
    const headers: Record<string, string> = { connection: "close" };
    if (this.#readToken !== undefined) headers["authorization"] = `Bearer ${this.#readToken}`;
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
