/**
 * A redis-server of a test's own: a folder and a port on 127.0.0.1, to be killed, frozen and started again.
 * Knows nothing of where the program came from, nor of the test framework.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { diesWithParent, killAtExit } from "../processes/dies-with-run.js";
import { environmentFor, type RedisBinary } from "./redis-binary.js";
import { converse } from "./redis-command.js";
import { RespRefusal } from "./resp.js";
import { asStoreUser, FOLLOWING, shippedUsers, testerUrlAt } from "./shipped-users.js";

const HOST = "127.0.0.1";
/** Below the ports that Linux and macOS give to outgoing connections, or one of those could take a killed server's port before it is started again. */
const PORT_FIRST = 10_000;
const PORT_LAST = 32_000;
const PORT_TRIES = 20;
const ASK_EVERY_MS = 10;
/** A safety net for a server that runs and never answers: its log then says more than the time limit of a test. */
const START_LIMIT_MS = 300_000;
const LOG_TAIL_CHARS = 2_000;
/** Every other signal that a test would send ends the server. */
const SIGNALS_IT_OUTLIVES: ReadonlySet<NodeJS.Signals> = new Set(["SIGSTOP", "SIGCONT"]);

export interface RedisServerOptions {
  /** Lines of redis.conf by name, values as in that file; a list gives the line several times. Default: nothing is kept on disk. */
  config?: Record<string, string | string[]>;
  /** Default: a free one. */
  port?: number;
  /** Names of lines of redis.conf that are given a free port of their own. Default: none. */
  morePorts?: readonly string[];
  /** The address it listens on. Default: 127.0.0.1. */
  host?: string;
  /** It runs as a Sentinel, which is the same program, and `config` is a Sentinel's. Default: false. */
  sentinel?: boolean;
  /** Words before the program that run it in another network. There it is reached through a Unix socket in its folder. Default: none. */
  runIn?: readonly string[];
  /** Libraries that change what the system tells it. Default: none. */
  preloads?: readonly Preload[];
  /**
   * Lines of redis.conf with its certificate: it speaks TLS alone, also with those that it follows or watches. A test reaches it through
   * a Unix socket in its folder. Default: no TLS.
   */
  tls?: Readonly<Record<string, string>> | undefined;
  /**
   * Why it lets everybody in, as Redis's default user. Default: it lets in the users of deploy/redis/make-acl.sh and the tests', and nobody
   * else; a Sentinel, which keeps nothing, lets in everybody.
   */
  openBecause?: string;
}

export interface Preload {
  /** The path of a shared library, for LD_PRELOAD. */
  readonly library: string;
  /** What the library reads. */
  readonly environment: Readonly<Record<string, string>>;
  /** Lines of redis.conf without which the server does not bear the library. */
  readonly config: Readonly<Record<string, string>>;
}

export interface RedisServer {
  /** For a user that may do everything. */
  readonly url: string;
  /** For a store under test: it logs in as the user that we ship for it, unless everybody is let in. */
  readonly storeUrl: string;
  readonly host: string;
  readonly port: number;
  /** Of the process started last, whether or not it still runs. */
  readonly pid: number;
  /** Of data, redis.conf, users.acl and redis.log. */
  readonly directory: string;
  /** Of a server in another network (`runIn`) or behind TLS: the way to it from here. */
  readonly socketPath: string | undefined;
  /** An orderly shutdown. Waits for the process to be gone, so a server that refuses to go (its disk is full) wants `kill`. */
  stop(): Promise<void>;
  /** Resolves when the process is gone, or, for SIGSTOP and SIGCONT, once the signal is sent. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts the server again with the same port, folder and redis.conf. Resolves when it answers. */
  start(): Promise<void>;
}

export interface DisposableRedisServer extends RedisServer {
  /** Kills the process, and removes its directory. */
  dispose(): Promise<void>;
}

/**
 * Resolves when the server answers PING.
 * @throws Error with the tail of its log when it ends before that.
 */
export async function launchRedisServer(
  binary: RedisBinary,
  options: RedisServerOptions = {},
): Promise<DisposableRedisServer> {
  const directory = await mkdtemp(join(tmpdir(), "callnumber-redis-"));
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const server = new RedisProcess(binary, options, port, directory);
    if (!isOpen(options)) await writeFile(join(directory, "users.acl"), shippedUsers());
    await writeFile(join(directory, "redis.conf"), await configText(server, options));
    try {
      await server.start();
      return server;
    } catch (error) {
      // Between finding a free port and listening on it, another program can take it.
      const portTaken = /address already in use/i.test((error as Error).message);
      if (options.port === undefined && portTaken && attempt < PORT_TRIES) continue;
      await server.dispose();
      throw error;
    }
  }
}

async function configText(
  { host, port, directory, socketPath }: RedisServer,
  options: RedisServerOptions,
): Promise<string> {
  const ports = options.tls ? { port: 0, "tls-port": port, "tls-replication": "yes", ...options.tls } : { port };
  const lines: Record<string, string | number | readonly string[]> = {
    save: '""',
    appendonly: "no",
    bind: host,
    ...ports,
    dir: directory,
    ...(socketPath === undefined ? {} : { unixsocket: socketPath }),
    ...(isOpen(options) ? {} : { ...FOLLOWING, aclfile: join(directory, "users.acl") }),
    ...Object.assign({}, ...(options.preloads ?? []).map(({ config }) => config)),
    ...options.config,
  };
  for (const name of options.morePorts ?? []) lines[name] = await freePort();
  return Object.entries(lines)
    .flatMap(([name, value]) => [value].flat().map((one) => `${name} ${one}\n`))
    .join("");
}

class RedisProcess implements DisposableRedisServer {
  readonly host: string;
  readonly url: string;
  readonly storeUrl: string;
  readonly socketPath: string | undefined;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #pid = 0;

  constructor(
    private readonly binary: RedisBinary,
    private readonly options: RedisServerOptions,
    readonly port: number,
    readonly directory: string,
  ) {
    this.host = options.host ?? HOST;
    this.url = isOpen(options) ? `redis://${this.host}:${port}` : testerUrlAt(this.host, port);
    this.storeUrl = asStoreUser(this.url);
    this.socketPath = options.runIn || options.tls ? join(directory, "redis.sock") : undefined;
  }

  get pid(): number {
    return this.#pid;
  }

  async start(): Promise<void> {
    if (this.#child) throw new Error(`the redis-server on port ${this.port} already runs, as process ${this.#pid}`);
    // Each start has a log of its own: the line that says ready must not be an earlier one.
    const log = openSync(join(this.directory, "redis.log"), "w");
    const { runIn = [], sentinel = false, preloads = [] } = this.options;
    const command = [this.binary.executable, join(this.directory, "redis.conf"), ...(sentinel ? ["--sentinel"] : [])];
    // Entering another network changes credentials, and with them the kernel forgets whose death to die: so that word comes after.
    const [program = "", ...words] = [...runIn, ...diesWithParent(), ...command];
    const child = spawn(program, words, {
      env: environmentWith(preloads, environmentFor(this.binary.libraryPath)),
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    await once(child, "spawn");
    this.#child = child;
    this.#pid = child.pid as number;
    killAtExit(child);
    this.#exited = once(child, "exit").then(() => {
      this.#child = undefined;
    });
    await this.#answers();
  }

  async stop(): Promise<void> {
    // A frozen process does not see SIGTERM.
    await this.kill("SIGCONT");
    await this.kill("SIGTERM");
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.#child?.kill(signal);
    if (!SIGNALS_IT_OUTLIVES.has(signal)) await this.#exited;
  }

  async dispose(): Promise<void> {
    await this.kill("SIGKILL");
    await rm(this.directory, { recursive: true, force: true });
  }

  async #answers(): Promise<void> {
    const givenUpAt = Date.now() + START_LIMIT_MS;
    while (this.#child && Date.now() < givenUpAt) {
      // A refused or broken connection is no answer.
      const [pong, about] = await converse(this, [["PING"], ["INFO", "server"]]).catch(() => []);
      // Another server may have been faster to take the port: only our own process counts.
      if (pong === "PONG" && String(about).includes(`process_id:${this.#pid}\r`)) return;
      // With a password the refusal comes even while the data is still loaded; then only our own log can tell.
      const refused = pong instanceof RespRefusal && pong.message.startsWith("NOAUTH");
      if (refused && (await this.#log()).includes("Ready to accept connections")) return;
      await Promise.race([delay(ASK_EVERY_MS), this.#exited]);
    }
    const fate = this.#child ? `gave no answer in ${START_LIMIT_MS} ms` : "ended before it answered";
    await this.kill("SIGKILL");
    const tail = (await this.#log()).slice(-LOG_TAIL_CHARS);
    throw new Error(`the redis-server on port ${this.port} ${fate}. The end of its log:\n${tail}`);
  }

  async #log(): Promise<string> {
    return await readFile(join(this.directory, "redis.log"), "utf8");
  }
}

function isOpen({ sentinel = false, openBecause }: RedisServerOptions): boolean {
  return sentinel || openBecause !== undefined;
}

function environmentWith(preloads: readonly Preload[], usual: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (preloads.length === 0) return usual;
  // By name: a blank would end a path.
  const names = preloads.map(({ library }) => basename(library)).join(":");
  const folders = [...preloads.map(({ library }) => dirname(library)), usual["LD_LIBRARY_PATH"] ?? []].flat().join(":");
  const environments = preloads.map(({ environment }) => environment);
  return Object.assign({ ...usual, LD_PRELOAD: names, LD_LIBRARY_PATH: folders }, ...environments);
}

/** A port on 127.0.0.1 that no program listens on now, and that no outgoing connection is given. */
async function freePort(): Promise<number> {
  for (let attempt = 1; attempt <= PORT_TRIES; attempt++) {
    const port = PORT_FIRST + Math.floor(Math.random() * (PORT_LAST - PORT_FIRST));
    const probe = createServer().listen(port, HOST);
    const isFree = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    probe.close();
    if (isFree) return port;
  }
  throw new Error(`no free port on ${HOST} between ${PORT_FIRST} and ${PORT_LAST} after ${PORT_TRIES} tries`);
}
