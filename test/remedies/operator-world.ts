/**
 * A store with two namespaces, a coordinator that leases from both, and an operator with a shell: what they read and run is real. The
 * namespaces are made here, everything else is done by the built command.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Coordinator, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { type ErrorResponse, pathOf, ROUTES, shellWord } from "@callnumber/protocol/api";
import type { NamespacesResponse } from "@callnumber/protocol/schemas";
import { stepOn } from "../../packages/coordinator/test/steps-for-test.js";
import { removeWithMarkers } from "../markers-of-stores.js";
import type { PostgresPrograms } from "../postgres/postgres-programs.js";
import { launchPostgres, type PostgresServer } from "../postgres/postgres-server.js";
import { asCoordinator, shippedRights, storeUrlAt } from "../postgres/test-postgres.js";
import { PATH_WITH_COMMAND } from "../processes/command.js";
import type { RedisBinary } from "../redis/redis-binary.js";
import { type DisposableRedisServer, launchRedisServer } from "../redis/redis-server.js";
import { asOperator } from "../redis/shipped-users.js";
import type { Situation } from "./situations.js";

export const NAMESPACES = ["lists", "main"] as const;
/** Behind a question mark, so that every printed command has a word to quote. */
const KEY_PREFIX = "callnumber:archive:";
const SCHEMA = "archive";

export interface Outcome {
  /** An operator can act on it when it has a command. */
  readonly text: string;
  readonly isDone: boolean;
}

export class OperatorWorld {
  readonly folder: string;
  /** As the coordinator is started with it. */
  readonly storeUrl: string;
  readonly server: DisposableRedisServer | undefined;
  readonly postgres: PostgresServer | undefined;
  readonly binary: RedisBinary;
  readonly #env: Record<string, string>;
  readonly #replicas: DisposableRedisServer[] = [];
  #coordinator: { child: ChildProcess; url: string; output: () => string } | undefined;

  private constructor(
    folder: string,
    { server, postgres }: Pick<OperatorWorld, "server" | "postgres">,
    binary: RedisBinary,
  ) {
    this.folder = folder;
    this.binary = binary;
    this.server = server;
    this.postgres = postgres;
    this.storeUrl =
      postgres !== undefined
        ? asCoordinator(storeUrlAt(postgres.url, SCHEMA))
        : server !== undefined
          ? `${server.storeUrl}?prefix=${KEY_PREFIX}`
          : `sqlite:${join(folder, "store.db")}`;
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_"));
    this.#env = {
      ...(Object.fromEntries(inherited) as Record<string, string>),
      PATH: PATH_WITH_COMMAND,
      XDG_STATE_HOME: join(folder, "state"),
      // What an operator has: the same place as another user.
      ...(server && { CALLNUMBER_STORE: asOperator(this.storeUrl) }),
      ...(postgres && { CALLNUMBER_STORE: storeUrlAt(postgres.url, SCHEMA) }),
    };
  }

  static async begin(
    kind: Situation["store"],
    { binary, programs }: { readonly binary: RedisBinary; readonly programs: PostgresPrograms | undefined },
    storeIdOf?: (namespace: string) => string | undefined,
  ): Promise<OperatorWorld> {
    const folder = mkdtempSync(join(tmpdir(), "operator's callnumber-"));
    const config = { appendonly: "yes", appendfsync: "always" };
    const server = kind === "redis" ? await launchRedisServer(binary, { config }) : undefined;
    const postgres = kind === "postgres" && programs ? await launchPostgres(programs) : undefined;
    const world = new OperatorWorld(folder, { server, postgres }, binary);
    const { store } = await openStore(parseStoreUrl(world.operatorUrl), { create: true });
    for (const namespace of NAMESPACES) {
      const storeId = storeIdOf?.(namespace);
      if (storeId === undefined) {
        await new Coordinator({ store, name: "made" }).initNamespace(namespace, { rate: 16 });
        continue;
      }
      const base = { storeId, nonce: randomBytes(12).toString("base64url"), isSilenceAccepted: false };
      await stepOn(store, namespace, {
        ...base,
        step: "init",
        nodeCount: 1,
        proofKey: randomBytes(32).toString("hex"),
      });
    }
    await store.close();
    for (const statement of postgres ? shippedRights(SCHEMA) : []) await postgres?.run(statement);
    return world;
  }

  get operatorUrl(): string {
    return this.#env["CALLNUMBER_STORE"] ?? this.storeUrl;
  }

  /** Several processes may have the store open. */
  get isOnServer(): boolean {
    return this.server !== undefined || this.postgres !== undefined;
  }

  get isServing(): boolean {
    return this.#coordinator !== undefined;
  }

  /** Starts the coordinator; what it says when it ends at once, undefined when it listens. */
  async serve(): Promise<string | undefined> {
    if (this.#coordinator !== undefined) return undefined;
    const child = this.#spawn("callnumber", ["serve", "--store", this.storeUrl, "--port", "0"]);
    const output = collected(child);
    const ended = once(child, "close");
    for (;;) {
      const url = /listening on (http:\S+?),? /.exec(output())?.[1];
      if (url !== undefined) {
        this.#coordinator = { child, url, output };
        return undefined;
      }
      const printed = once(child.stderr as NodeJS.ReadableStream, "data").then(() => false);
      if (await Promise.race([ended.then(() => true), printed])) return output();
    }
  }

  /** What the coordinator printed: its log, and words for people. */
  log(): string {
    return (this.#coordinator?.output() ?? "")
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .join("\n");
  }

  async stopServing(): Promise<void> {
    const running = this.#coordinator;
    this.#coordinator = undefined;
    if (running === undefined || running.child.exitCode !== null) return;
    const ended = once(running.child, "close");
    running.child.kill("SIGTERM");
    await ended;
  }

  /** Runs a line exactly as it was printed. */
  async shell(line: string): Promise<Outcome> {
    const child = this.#spawn(
      "sh",
      ["-c", line],
      this.#coordinator && { CALLNUMBER_COORDINATOR: this.#coordinator.url },
    );
    child.stdin?.end();
    const output = collected(child);
    const [code] = (await once(child, "close")) as [number | null];
    return { text: output(), isDone: code === 0 };
  }

  /** Leases a run as a new importer. */
  async lease(namespace: string): Promise<Outcome> {
    const holder = { name: `importer-${randomBytes(6).toString("hex")}`, host: "mail-1", pid: 1, labels: {} };
    const nonce = randomBytes(12).toString("base64url");
    const body = { runCount: 1, nonce, holder, lastRun: null, proof: null, sentAtMs: Date.now() };
    const response = await fetch(`${this.#url}${pathOf("leases", { namespace })}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as ErrorResponse;
    return { isDone: response.ok, text: response.ok ? "" : `${answer.message} (${answer.code})` };
  }

  /** Leases until it is done, or until an operator is needed: there is a command, or a text that is known to be the end. */
  async leased(namespace: string, endsIn?: RegExp): Promise<Outcome> {
    const patientUntilMs = performance.now() + 60_000;
    for (;;) {
      const outcome = await this.lease(namespace);
      if (outcome.isDone || performance.now() > patientUntilMs) return outcome;
      if (commandsIn(outcome.text).length > 0 || endsIn?.test(outcome.text)) return outcome;
      await delay(300);
    }
  }

  /** High-water marks by namespace; null for a record that can't be read. */
  async marks(): Promise<ReadonlyMap<string, number | null>> {
    const response = await fetch(`${this.#url}${ROUTES.namespaces}`);
    const { namespaces } = (await response.json()) as NamespacesResponse;
    return new Map(namespaces.map(({ namespace, record }) => [namespace, record?.highWaterMark ?? null]));
  }

  /** What each place says of a namespace that does not lease: by the name of the place. */
  async surfaces(namespace: string, endsIn?: RegExp): Promise<ReadonlyMap<string, string>> {
    const refused = await this.serve();
    const printed = new Map<string, string>();
    if (refused !== undefined) printed.set("start", refused);
    else {
      printed.set("lease", (await this.leased(namespace, endsIn)).text);
      printed.set(
        "status",
        (await this.shell(`callnumber status --coordinator ${this.#url} --namespace ${namespace}`)).text,
      );
      printed.set("log", logged(this.log(), namespace));
      printed.set("readyz", ((await (await fetch(`${this.#url}/readyz`)).json()) as ErrorResponse).message ?? "");
    }
    const mayLook = this.isOnServer || refused !== undefined;
    if (mayLook)
      printed.set("doctor", (await this.shell(`callnumber doctor --store ${shellWord(this.operatorUrl)}`)).text);
    return printed;
  }

  /** Ends with the world. */
  async addReplica(): Promise<void> {
    const replicaof = `127.0.0.1 ${(this.server as DisposableRedisServer).port}`;
    this.#replicas.push(await launchRedisServer(this.binary, { config: { replicaof } }));
  }

  key(namespace: string, name: string): string {
    return `${KEY_PREFIX}{${namespace}}:${name}`;
  }

  async dispose(): Promise<void> {
    const running = this.#coordinator?.child;
    if (running !== undefined && running.exitCode === null) {
      running.kill("SIGKILL");
      await once(running, "close");
    }
    for (const replica of this.#replicas) await replica.dispose();
    await this.server?.dispose();
    await this.postgres?.dispose();
    await removeWithMarkers(this.folder);
  }

  get #url(): string {
    if (this.#coordinator === undefined) throw new Error("no coordinator runs");
    return this.#coordinator.url;
  }

  #spawn(program: string, parameters: readonly string[], more: Record<string, string> = {}): ChildProcess {
    return spawn(program, parameters, { env: { ...this.#env, ...more }, cwd: this.folder });
  }
}

/** The commands of `callnumber` in a text: in backticks, or alone on an indented line. */
export function commandsIn(text: string): readonly string[] {
  const found = [...text.matchAll(/`(callnumber [^`]+)`|^ +(callnumber .+)$/gm)];
  return [...new Set(found.map(([, quoted, alone]) => quoted ?? (alone as string)))];
}

/** The last line that says why it does not lease. */
function logged(log: string, namespace: string): string {
  const records = log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const last = records.findLast((one) => one["namespace"] === namespace && typeof one["explanation"] === "string");
  return String(last?.["explanation"] ?? "");
}

function collected(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  return () => text;
}
