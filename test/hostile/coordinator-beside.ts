/** The coordinator that the rows are sent to: a real `serve`, on an embedded store of its own, watched from outside. */
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { expect } from "vitest";
import { initBackdatedAt } from "../backdated.js";
import { callnumber, folderForTest, type ServingProcess, serveProcessWith } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";
import { OTHER_FIRST_RUN, OTHER_NAMESPACE } from "./genuine-evidence.js";
import type { Target } from "./row.js";

export interface Setting {
  readonly share: number;
  readonly parameters?: readonly string[];
  /** Speaks HTTPS, with a certificate that nobody knows. Default false. */
  readonly isEncrypted?: boolean;
}

/** What is still in use when all garbage is collected; resident is what the process has from the machine, used or not. */
export interface MemoryInUse {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly residentBytes: number;
}

/** A safety net for a busy machine. */
const TOLD_WITHIN_MS = 60_000;
const MEMORY_TELLER = pathToFileURL(join(import.meta.dirname, "memory-teller.mjs")).href;
/** The neighbour leases as fast as it can: what others do to it is to be seen, and no limit. */
const WITHOUT_LIMITS = ["--token-burst-runs", "none", "--holder-burst-runs", "none"];
const SAYING_ALL = ["--log-level", "debug"];

export class CoordinatorBeside {
  readonly #running: ServingProcess;
  #logLength = 0;

  readonly #memoryFile: string;

  private constructor(
    running: ServingProcess,
    memoryFile: string,
    readonly target: Target,
  ) {
    this.#running = running;
    this.#memoryFile = memoryFile;
  }

  static async start({ share, parameters = [], isEncrypted = false }: Setting): Promise<CoordinatorBeside> {
    const folder = await folderForTest();
    const tokensFile = join(folder, "tokens");
    const leaseToken = await tokenIn(tokensFile, "lease", "--all-namespaces");
    const operatorToken = await tokenIn(tokensFile, "operator", "--all-namespaces");
    const foreignToken = await tokenIn(tokensFile, "lease", "--namespace", OTHER_NAMESPACE);
    const path = join(folder, "store.db");
    const store = `sqlite:${path}`;
    // The neighbour takes more runs in some minutes than a new namespace has room for.
    await initBackdatedAt(path, "main");
    await done("init", "--store", store, "--namespace", OTHER_NAMESPACE, "--first-run", String(OTHER_FIRST_RUN));
    const memoryFile = join(folder, "memory.json");
    const running = await serveProcessWith(
      { NODE_OPTIONS: `--import=${MEMORY_TELLER}`, MEMORY_TOLD_IN: memoryFile },
      store,
      "--tokens-file",
      tokensFile,
      ...WITHOUT_LIMITS,
      ...SAYING_ALL,
      ...(isEncrypted ? tlsParametersIn(folder) : []),
      ...parameters,
    );
    const { hostname: host, port } = new URL(running.url);
    return new CoordinatorBeside(running, memoryFile, {
      host,
      port: Number(port),
      share,
      isEncrypted,
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
    const { host, port, isEncrypted, operatorToken } = this.target;
    const headers = { authorization: `Bearer ${operatorToken}` };
    const ask = isEncrypted ? https.get : http.get;
    const asked = ask({
      host,
      port,
      path: "/v1/namespaces/main/status",
      headers,
      agent: false,
      rejectUnauthorized: false,
    });
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    return ((await json(answer)) as { highWaterMark: number }).highWaterMark;
  }

  get memoryKib(): number {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#pid}/status`, "utf8")) ?? [];
    return Number(kib);
  }

  /** Collects its garbage first. */
  async memoryInUse(): Promise<MemoryInUse> {
    rmSync(this.#memoryFile, { force: true });
    this.#running.child.kill("SIGUSR2");
    await expect.poll(() => existsSync(this.#memoryFile), { timeout: TOLD_WITHIN_MS }).toBe(true);
    return JSON.parse(readFileSync(this.#memoryFile, "utf8")) as MemoryInUse;
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
  return (await done("token", "create", "--tokens-file", file, "--role", role, ...namespaces)).trim();
}

/** What a command of ours says. @throws Error when it fails. */
async function done(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await callnumber(words);
  if (code !== 0) throw new Error(`callnumber ${words[0]} ended with ${code}: ${stderr}`);
  return stdout;
}

function tlsParametersIn(folder: string): readonly string[] {
  const { certificate, key } = writeTlsFiles(folder, newAuthority().issue());
  return ["--tls-certificate", certificate, "--tls-key", key];
}
