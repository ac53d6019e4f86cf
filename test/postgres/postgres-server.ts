/**
 * A PostgreSQL of a test's own: a folder, and a port on 127.0.0.1, to be killed, copied, promoted and started again.
 * Knows nothing of where the programs came from, nor of the test framework.
 */
import { chown, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, freePort, launch, outputOf, type RunningServer } from "../processes/server-process.js";
import type { SmallDisk } from "../small-disk.js";
import { OTHER_USER, type PostgresPrograms, postgresCommand, psql } from "./postgres-programs.js";

const HOST = "127.0.0.1";
const PORT_TRIES = 20;

export interface PostgresServerOptions {
  /** Lines of postgresql.conf by name. Default: small, and nothing is synced to the disk, which a kill of its processes does not need. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Makes the data directory. Default: a new cluster. */
  readonly fill?: (data: string) => Promise<unknown>;
  /** Where its directory is. Default: a new folder of the machine's. */
  readonly disk?: Pick<SmallDisk, "runIn" | "folder" | "seenFolder">;
  /** Variables of its processes, such as those of a library that is loaded before its own. */
  readonly environment?: NodeJS.ProcessEnv;
}

export interface PostgresServer {
  /** For the superuser. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Of the data, and of the settings. */
  readonly directory: string;
  readonly data: string;
  /** Of the process started last, whether or not it still runs. */
  readonly pid: number;
  /** Changes lines of postgresql.conf, for this process and the next ones. */
  configure(settings: Readonly<Record<string, string>>): Promise<void>;
  /** Runs statements as the superuser. Resolves to the rows, columns as text. */
  run(sql: string, database?: string): Promise<string[][]>;
  /** The end of its log. */
  log(): string;
  /** Ends it: SIGINT in order, SIGQUIT at once, SIGKILL its first process, whose others notice and end. Resolves when that one is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again with the same port and data. Resolves when it answers. */
  start(): Promise<void>;
  /** A program that comes with PostgreSQL, which may connect to this server. Resolves to its output. */
  program(name: string, words: readonly string[], input?: string): Promise<string>;
  /** Ends it, and removes its directory. */
  dispose(): Promise<void>;
}

/** Every user who reaches it has access, without a password. */
const ACCESS = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"];

/** Resolves when it answers. @throws Error with the end of its log when it ends before that. */
export async function launchPostgres(
  programs: PostgresPrograms,
  options: PostgresServerOptions = {},
): Promise<PostgresServer> {
  const { disk } = options;
  const directory = disk?.seenFolder ?? (await mkdtemp(join(tmpdir(), "callnumber-postgres-")));
  if (OTHER_USER !== undefined) await chown(directory, OTHER_USER.uid, OTHER_USER.gid);
  const data = join(directory, "data");
  const newCluster = () => {
    const words = [`--pgdata=${join(disk?.folder ?? directory, "data")}`, ...ACCESS, "--wal-segsize=1"];
    return outputOf(on(disk, postgresCommand(programs, "initdb", words)));
  };
  await (options.fill?.(data) ?? newCluster());
  for (let attempt = 1; ; attempt++) {
    const server = new PostgresProcess(programs, options, await freePort(), directory);
    try {
      await server.start();
      return server;
    } catch (error) {
      // Between finding a free port and listening on it, another program can take it.
      if (/Address already in use/i.test((error as Error).message) && attempt < PORT_TRIES) continue;
      await server.dispose();
      throw error;
    }
  }
}

/** The same command where the disk is. Only root may go there, and becomes the other user after that. */
function on(disk: PostgresServerOptions["disk"], { asUser, ...command }: Command): Command {
  if (disk === undefined) return { ...command, ...(asUser && { asUser }) };
  const as = asUser ? ["setpriv", `--reuid=${asUser.uid}`, `--regid=${asUser.gid}`, "--clear-groups"] : [];
  return { ...command, runIn: [...disk.runIn, ...as] };
}

/** Copies a data directory as it lies there, for the user that runs the servers. */
export async function copyData(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, preserveTimestamps: true });
  await rm(join(to, "postmaster.pid"), { force: true });
  if (OTHER_USER !== undefined)
    await outputOf({ program: "chown", words: ["-R", `${OTHER_USER.uid}:${OTHER_USER.gid}`, to] });
  await outputOf({ program: "chmod", words: ["0700", to] });
}

class PostgresProcess implements PostgresServer {
  readonly host = HOST;
  readonly url: string;
  readonly data: string;
  #process: RunningServer | undefined;
  #settings: Readonly<Record<string, string>>;
  readonly #disk: PostgresServerOptions["disk"];
  readonly #environment: NodeJS.ProcessEnv;

  constructor(
    private readonly programs: PostgresPrograms,
    { settings = {}, disk, environment = {} }: PostgresServerOptions,
    readonly port: number,
    readonly directory: string,
  ) {
    this.#settings = settings;
    this.#disk = disk;
    this.#environment = environment;
    this.data = join(directory, "data");
    this.url = `postgres://postgres@${HOST}:${port}/postgres`;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  async configure(settings: Readonly<Record<string, string>>): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    await this.#writeSettings();
    if (this.#process !== undefined) await this.run("SELECT pg_reload_conf()");
  }

  async #writeSettings(): Promise<void> {
    const settings = {
      listen_addresses: HOST,
      port: String(this.port),
      unix_socket_directories: this.#disk?.folder ?? this.directory,
      fsync: "off",
      jit: "off",
      // Shared memory as files of its own directory: what a kill leaves behind is removed with the directory.
      dynamic_shared_memory_type: "mmap",
      shared_buffers: "8MB",
      max_wal_senders: "8",
      log_min_messages: "warning",
      ...this.#settings,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    await writeFile(join(this.data, "postgresql.auto.conf"), lines.join(""));
  }

  async start(): Promise<void> {
    await this.#writeSettings();
    // A process of the one that was killed may still hold the memory: then it ends with that reason, and is started again.
    for (;;) {
      try {
        const words = ["-D", join(this.#disk?.folder ?? this.directory, "data")];
        const command = postgresCommand(this.programs, "postgres", words);
        const environment = { ...command.environment, ...this.#environment };
        this.#process = await launch(on(this.#disk, { ...command, environment }), (started) => {
          this.#process = started;
          return this.run("SELECT 1");
        });
        return;
      } catch (error) {
        if (!/pre-existing shared memory block|lock file "postmaster.pid"/.test((error as Error).message)) throw error;
      }
    }
  }

  async run(sql: string, database = "postgres"): Promise<string[][]> {
    const output = await psql(this.programs, sql, { host: HOST, port: this.port, database });
    const lines = output.replace(/\n$/, "").split("\n");
    return output === "" ? [] : lines.map((line) => line.split("\t"));
  }

  log(): string {
    return this.#process?.log() ?? "";
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await this.#process?.kill(signal);
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") this.#process = undefined;
  }

  program(name: string, words: readonly string[], input?: string): Promise<string> {
    const command = postgresCommand(this.programs, name, words);
    const environment = { ...command.environment, PGHOST: HOST, PGPORT: String(this.port), PGUSER: "postgres" };
    return outputOf({ ...command, environment }, input);
  }

  async dispose(): Promise<void> {
    await this.kill("SIGCONT");
    await this.kill("SIGQUIT");
    // The root of a disk stays.
    await rm(this.#disk === undefined ? this.directory : this.data, { recursive: true, force: true });
  }
}
