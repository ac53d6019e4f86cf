/**
 * A MariaDB or PostgreSQL of a test file's own: a private directory, and a Unix socket in it as the only way in. The programs come from this
 * machine, else from Debian's packages, unpacked without root.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chown, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import {
  findPostgres,
  OTHER_USER,
  type PostgresPrograms,
  postgresCommand,
  psql,
} from "../postgres/postgres-programs.js";
import { type Command, launch, outputOf } from "../processes/server-process.js";

const PATH = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
const IS_ROOT = process.getuid?.() === 0;

/** A database server, spoken to through the client program that comes with it, as a person would: every value comes back as text. */
export interface SqlServer {
  readonly version: string;
  /**
   * Runs statements in a database, one after the other, until one fails. Resolves to the rows of all of them, each a list of its
   * columns as text; NULL is the word `NULL`.
   * @throws Error with what the server wrote of the statement that failed. Those before it have run.
   */
  run(sql: string, database?: string): Promise<string[][]>;
  /** Kills the server, and removes its directory. */
  dispose(): Promise<void>;
}

export interface MariadbServer extends SqlServer {
  /** Kills the server, and starts it again with the same data and options. */
  restart(): Promise<void>;
  /** Writes a database as SQL, with its events and routines. Resolves to why this machine has no program for it, in an object. */
  dump(database: string): Promise<string | { readonly missing: string }>;
}

/** One server for all tests of a file. Call the result in a test. Where there can be none, the tests of the file are skipped with the reason. */
export function serverForFile<Server extends SqlServer>(start: () => Promise<Server | string>): () => Server {
  let started: Server | string;
  beforeAll(async () => {
    started = await start();
  });
  beforeEach((context) => {
    if (typeof started === "string") context.skip(started);
  });
  return () => started as Server;
}

export interface PostgresSqlServer extends SqlServer {
  /** Runs a program that comes with PostgreSQL, connected as the superuser. Resolves to its output. */
  program(name: string, words: readonly string[]): Promise<string>;
}

export interface ServerOptions {
  /** For the server's command line, in addition to those that make it small and private. */
  readonly options?: readonly string[];
}

/** Starts a MariaDB that ends with the test file. Returns, for `ctx.skip`, why there can be none here. */
export async function startMariadb({ options = [] }: ServerOptions = {}): Promise<MariadbServer | string> {
  const programs = await findMariadb();
  if (typeof programs === "string") return `no MariaDB can be started: ${programs}`;
  return await inDirectory("mariadb", (directory) => launchMariadb(programs, directory, options));
}

/** As `startMariadb`. */
export async function startPostgres({ options = [] }: ServerOptions = {}): Promise<PostgresSqlServer | string> {
  const programs = await findPostgres();
  if (typeof programs === "string") return `no PostgreSQL can be started: ${programs}`;
  return await inDirectory("postgres", (directory) => launchPostgres(programs, directory, options));
}

/** SQLite as if it were a server, with one database, in memory. A statement ends with `;` at the end of a line. */
export async function startSqlite(): Promise<SqlServer> {
  let database = new DatabaseSync(":memory:");
  const server: SqlServer = {
    version: String(database.prepare("SELECT sqlite_version() AS version").get()?.["version"]),
    async run(statements) {
      if (/^(CREATE|DROP) DATABASE/.test(statements)) {
        database.close();
        database = new DatabaseSync(":memory:");
        return [];
      }
      return statements
        .split(/;\s*$/m)
        .filter((statement) => statement.trim() !== "")
        .flatMap((statement) => database.prepare(statement).all() as Record<string, unknown>[])
        .map((row) => Object.values(row).map((value) => (value === null ? "NULL" : String(value))));
    },
    async dispose() {
      database.close();
    },
  };
  started.push(server);
  return server;
}

const started: SqlServer[] = [];
// Each test file loads this module again, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});

type Launched = Omit<SqlServer, "dispose"> & { readonly kill: () => Promise<void> };

async function inDirectory<Server extends Launched>(
  name: string,
  launchIn: (directory: string) => Promise<Server>,
): Promise<Omit<Server, "kill"> & SqlServer> {
  const directory = await mkdtemp(join(tmpdir(), `callnumber-${name}-`));
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    const launched = await launchIn(directory);
    const server = { ...launched, dispose: () => launched.kill().then(remove) };
    started.push(server);
    return server;
  } catch (error) {
    await remove();
    throw error;
  }
}

interface MariadbPrograms {
  readonly server: string;
  readonly client: string;
  /** With the SQL files that make a new data directory, and the server's messages. */
  readonly shareFolder: string;
  /** LD_LIBRARY_PATH, where the programs were unpacked and not installed. */
  readonly environment: NodeJS.ProcessEnv;
}

async function findMariadb(): Promise<MariadbPrograms | string> {
  // Servers are not on every user's PATH.
  const installed = await mariadbIn([...PATH, "/usr/sbin", "/usr/libexec"], PATH, {});
  if (installed) return installed;
  const packages = ["mariadb-server-core", "mariadb-client-core"];
  return unpackDebianPackages("mariadb", packages, ({ home, libraryPath }) =>
    // The client may be installed already: then it was not fetched again.
    mariadbIn([join(home, "usr", "sbin")], [join(home, "usr", "bin"), ...PATH], { LD_LIBRARY_PATH: libraryPath }),
  );
}

function mariadbIn(
  serverFolders: readonly string[],
  clientFolders: readonly string[],
  environment: NodeJS.ProcessEnv,
): MariadbPrograms | undefined {
  const existing = (folders: readonly string[], name: string) =>
    folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
  const server = existing(serverFolders, "mariadbd");
  const client = existing(clientFolders, "mariadb");
  if (server === undefined || client === undefined) return undefined;
  const share = join(dirname(server), "..", "share");
  const shareFolder = ["mysql", "mariadb"]
    .map((name) => join(share, name))
    .find((folder) => existsSync(join(folder, "mysql_system_tables.sql")));
  if (shareFolder === undefined) return undefined;
  const { status } = spawnSync(server, ["--no-defaults", "--version"], { env: { ...process.env, ...environment } });
  return status === 0 ? { server, client, shareFolder, environment } : undefined;
}

/** Text as it is, without headings, in one character set whatever the terminal has. */
const MARIADB_CLIENT_OPTIONS =
  "--no-defaults --user=root --batch --raw --skip-column-names --default-character-set=utf8mb4".split(" ");

/** Resolves when the server answers. @throws Error with the end of its log when it ends before that. */
async function launchMariadb(
  { server, client, shareFolder, environment }: MariadbPrograms,
  directory: string,
  options: readonly string[],
): Promise<Launched & Omit<MariadbServer, "dispose">> {
  const socket = `--socket=${join(directory, "mariadb.sock")}`;
  const serverOptions = [
    "--no-defaults",
    // Root must name itself; another user can be no one else.
    ...(IS_ROOT ? ["--user=root"] : []),
    `--basedir=${dirname(dirname(shareFolder))}`,
    `--lc-messages-dir=${shareFolder}`,
    `--character-sets-dir=${join(shareFolder, "charsets")}`,
    `--datadir=${join(directory, "data")}`,
    `--tmpdir=${directory}`,
    `--pid-file=${join(directory, "mariadb.pid")}`,
    // No test needs these data after a crash, and a container may forbid io_uring.
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-flush-method=nosync",
    "--sync-frm=0",
    "--innodb-use-native-aio=0",
    "--innodb-log-file-size=32M",
  ];
  const commandOf = (...words: readonly string[]): Command => {
    return { program: server, words: [...serverOptions, ...words], environment };
  };
  const run = async (sql: string, database = "") => {
    const words = [...MARIADB_CLIENT_OPTIONS, socket, ...(database === "" ? [] : [database])];
    return rowsIn(await outputOf({ program: client, words, environment }, sql));
  };
  await mkdir(join(directory, "data"));
  // In the order of mariadb-install-db, without what no test needs: help, time zones, the sys schema.
  const tables = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];
  const files = await Promise.all(tables.map((name) => readFile(join(shareFolder, name), "utf8")));
  // The first user is root, who needs no password: the directory with the socket is private.
  const bootstrap = ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket=NULL;", ...files].join("\n");
  await outputOf(commandOf("--bootstrap", "--log-warnings=0"), bootstrap);
  const start = () => launch(commandOf(socket, "--skip-networking", ...options), () => run("SELECT 1"));
  let running = await start();
  const [[version = ""] = []] = await run("SELECT VERSION()");
  return {
    version,
    run,
    kill: () => running.kill(),
    async restart() {
      await running.kill();
      running = await start();
    },
    async dump(database) {
      const dumper = await findMariadbDump(dirname(client));
      if (typeof dumper === "string") return { missing: dumper };
      const words = ["--no-defaults", "--user=root", socket, "--events", "--routines", database];
      return await outputOf({ ...dumper, words });
    },
  };
}

/** It is in a package of its own: only the test of a dump needs it. */
async function findMariadbDump(clientFolder: string): Promise<Omit<Command, "words"> | string> {
  const dumpIn = (folders: readonly string[], environment: NodeJS.ProcessEnv) => {
    const program = folders.map((folder) => join(folder, "mariadb-dump")).find((file) => existsSync(file));
    return program && { program, environment };
  };
  const installed = dumpIn([clientFolder, ...PATH], {});
  if (installed) return installed;
  return unpackDebianPackages("mariadb-dump", ["mariadb-client"], ({ home, libraryPath }) =>
    dumpIn([join(home, "usr", "bin")], { LD_LIBRARY_PATH: libraryPath }),
  );
}

/** Resolves when the server answers. @throws Error with the end of its log when it ends before that. */
async function launchPostgres(
  programs: PostgresPrograms,
  directory: string,
  options: readonly string[],
): Promise<Launched & Pick<PostgresSqlServer, "program">> {
  const data = join(directory, "data");
  const run = async (sql: string, database = "postgres") =>
    rowsIn(await psql(programs, sql, { host: directory, database }));
  if (OTHER_USER !== undefined) await chown(directory, OTHER_USER.uid, OTHER_USER.gid);
  // Every user who may enter the directory with the socket has access.
  const access = ["--username=postgres", "--auth=trust"];
  const words = [`--pgdata=${data}`, ...access, "--encoding=UTF8", "--no-locale", "--no-sync"];
  await outputOf(postgresCommand(programs, "initdb", words));
  const settings = [
    "listen_addresses=",
    `unix_socket_directories=${directory}`,
    "fsync=off",
    "jit=off",
    // Shared memory as files of its own directory: what a kill leaves behind is removed with the directory.
    "dynamic_shared_memory_type=mmap",
    ...options,
  ].flatMap((setting) => ["-c", setting]);
  const server = await launch(postgresCommand(programs, "postgres", ["-D", data, ...settings]), () => run("SELECT 1"));
  const [[version = ""] = []] = await run("SELECT split_part(current_setting('server_version'), ' ', 1)");
  // Killed outright it would leave shared memory behind.
  const asSuperuser = [`--host=${directory}`, "--username=postgres"];
  const program = (name: string, words: readonly string[]) =>
    outputOf(postgresCommand(programs, name, [...asSuperuser, ...words]));
  return { version, run, program, kill: () => server.kill("SIGQUIT") };
}

/** Rows as the client programs print them here: a line each, columns between tabs. */
function rowsIn(output: string): string[][] {
  const lines = output.replace(/\n$/, "").split("\n");
  return output === "" ? [] : lines.map((line) => line.split("\t"));
}
