/** The coordinator that the rows are sent to: a real `serve`, on an embedded store of its own, watched from outside. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";
import type { Target } from "./row.js";

export interface Setting {
  readonly share: number;
  readonly parameters?: readonly string[];
  /** Speaks HTTPS, with a certificate that nobody knows. Default false. */
  readonly isEncrypted?: boolean;
}

/** The neighbour leases as fast as it can: what others do to it is to be seen, and no limit. */
const WITHOUT_LIMITS = ["--token-burst-runs", "none", "--holder-burst-runs", "none"];
const SAYING_ALL = ["--log-level", "debug"];

export class CoordinatorBeside {
  readonly #running: RunningCoordinator;
  #logLength = 0;

  private constructor(
    running: RunningCoordinator,
    readonly target: Target,
  ) {
    this.#running = running;
  }

  static async start({ share, parameters = [], isEncrypted = false }: Setting): Promise<CoordinatorBeside> {
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
      ...WITHOUT_LIMITS,
      ...SAYING_ALL,
      ...(isEncrypted ? tlsParametersIn(folder) : []),
      ...parameters,
    );
    const { hostname: host, port } = new URL(running.url);
    return new CoordinatorBeside(running, {
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

function tlsParametersIn(folder: string): readonly string[] {
  const { certificate, key } = writeTlsFiles(folder, newAuthority().issue());
  return ["--tls-certificate", certificate, "--tls-key", key];
}
