/**
 * A redis-server of a test's own: a folder and a port on 127.0.0.1, to be killed, frozen and started again.
 * Knows nothing of where the program came from, nor of the test framework.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { freePort, launch, type RunningServer } from "../processes/server-process.js";
import { environmentFor, type RedisBinary } from "./redis-binary.js";
import { converse } from "./redis-command.js";
import { RespRefusal } from "./resp.js";
import { asStoreUser, FOLLOWING, shippedUsers, testerUrlAt } from "./shipped-users.js";

const HOST = "127.0.0.1";
const PORT_TRIES = 20;

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
  /** A library that changes what the system reports to it. Default: none. */
  preload?: Preload | undefined;
  /**
   * Lines of redis.conf with its certificate: it speaks TLS alone, also with those that it follows or watches. A test reaches it through
   * a Unix socket in its folder. Default: no TLS.
   */
  tls?: Readonly<Record<string, string>> | undefined;
  /**
   * Why every client is Redis's default user, without a password. Default: the users of deploy/redis/make-acl.sh and the tests'
   * users only; a Sentinel, which keeps nothing, accepts every client.
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
  /** For a store under test: it logs in as the user that we ship for it, unless every client is the default user. */
  readonly storeUrl: string;
  readonly host: string;
  readonly port: number;
  /** Of the process started last, whether or not it still runs. */
  readonly pid: number;
  /** Of data, redis.conf and users.acl. */
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
    ...options.preload?.config,
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
  #process: RunningServer | undefined;

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
    return this.#process?.pid ?? 0;
  }

  async start(): Promise<void> {
    const { runIn, sentinel = false, preload } = this.options;
    const words = [join(this.directory, "redis.conf"), ...(sentinel ? ["--sentinel"] : [])];
    const environment = environmentWith(preload, environmentFor(this.binary.libraryPath));
    await launch({ program: this.binary.executable, words, runIn, environment }, (started) => {
      this.#process = started;
      return this.#answers(started);
    });
  }

  async stop(): Promise<void> {
    // A frozen process does not see SIGTERM.
    await this.kill("SIGCONT");
    await this.kill("SIGTERM");
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await this.#process?.kill(signal);
  }

  async dispose(): Promise<void> {
    await this.kill("SIGKILL");
    await rm(this.directory, { recursive: true, force: true });
  }

  async #answers({ pid, log }: RunningServer): Promise<void> {
    const [pong, about] = await converse(this, [["PING"], ["INFO", "server"]]);
    // Another server may have been faster to take the port: only our own process counts.
    if (pong === "PONG" && String(about).includes(`process_id:${pid}\r`)) return;
    // With a password the refusal comes even while the data is still loaded; then only our own log shows the end of that.
    const isRefused = pong instanceof RespRefusal && pong.message.startsWith("NOAUTH");
    if (!isRefused || !log().includes("Ready to accept connections")) throw new Error(`not ready: ${pong}`);
  }
}

function isOpen({ sentinel = false, openBecause }: RedisServerOptions): boolean {
  return sentinel || openBecause !== undefined;
}

function environmentWith(preload: Preload | undefined, usual: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!preload) return usual;
  const { library, environment } = preload;
  // By name: a blank would end a path.
  const path = [dirname(library), usual["LD_LIBRARY_PATH"] ?? []].flat().join(":");
  return { ...usual, ...environment, LD_PRELOAD: basename(library), LD_LIBRARY_PATH: path };
}
