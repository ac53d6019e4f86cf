/**
 * A MariaDB of a test file's own: a private directory, and a Unix socket in it as the only way in. Its programs come from this machine,
 * else from Debian's packages, unpacked without root.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { diesWithParent } from "../processes/dies-with-run.js";
import { launch, outputOf, rowsIn, type SqlServer } from "../processes/sql-server.js";

interface Programs {
  readonly server: string;
  readonly client: string;
  /** With the SQL files that a fresh data directory is made by, and the server's messages. */
  readonly shareFolder: string;
  /** LD_LIBRARY_PATH, where the programs were unpacked and not installed. */
  readonly environment: NodeJS.ProcessEnv;
}

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/mariadb", import.meta.url));
/** Servers are not on every user's PATH. */
const SERVER_FOLDERS = ["/usr/sbin", "/usr/libexec"];
const PACKAGES = ["mariadb-server-core", "mariadb-client-core"];
/** In the order in which mariadb-install-db runs them, without what tests never ask: help, time zones, the sys schema. */
const SYSTEM_TABLES = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];
/** Text as it is, without headings, in one character set whatever the terminal has. */
const CLIENT_WORDS = [
  "--no-defaults",
  "--user=root",
  "--batch",
  "--raw",
  "--skip-column-names",
  "--default-character-set=utf8mb4",
];

export interface MariadbOptions {
  /** Words for the server's command line in addition to those that make it small and private. Default: none. */
  readonly serverOptions?: readonly string[];
}

/** Starts a server that ends with the test file. Returns, for `ctx.skip`, why there can be none here. */
export async function startMariadb({ serverOptions = [] }: MariadbOptions = {}): Promise<SqlServer | string> {
  const programs = await findPrograms();
  if (typeof programs === "string") return `no MariaDB can be started: ${programs}`;
  const server = await launchMariadb(programs, serverOptions);
  started.push(server);
  return server;
}

const started: SqlServer[] = [];
// Each test file loads this module anew, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});

async function findPrograms(): Promise<Programs | string> {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const installed = programsIn([...path, ...SERVER_FOLDERS], path, {});
  if (installed) return installed;
  return unpackDebianPackages(PACKAGES, CACHE_FOLDER, ({ home, libraryPath }) =>
    // The client may be installed already: then it was not fetched again.
    programsIn([join(home, "usr", "sbin")], [join(home, "usr", "bin"), ...path], { LD_LIBRARY_PATH: libraryPath }),
  );
}

function programsIn(
  serverFolders: readonly string[],
  clientFolders: readonly string[],
  environment: NodeJS.ProcessEnv,
): Programs | undefined {
  const existing = (folders: readonly string[], name: string) =>
    folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
  const server = existing(serverFolders, "mariadbd");
  const client = existing(clientFolders, "mariadb");
  if (server === undefined || client === undefined) return undefined;
  const share = join(dirname(server), "..", "share");
  const shareFolder = ["mysql", "mariadb"]
    .map((name) => join(share, name))
    .find((folder) => existsSync(join(folder, "mysql_system_tables.sql")));
  return shareFolder !== undefined && runs(server, environment)
    ? { server, client, shareFolder, environment }
    : undefined;
}

function runs(server: string, environment: NodeJS.ProcessEnv): boolean {
  try {
    execFileSync(server, ["--no-defaults", "--version"], { env: { ...process.env, ...environment }, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Resolves when the server answers. @throws Error with the end of its log when it ends before that. */
async function launchMariadb(programs: Programs, serverOptions: readonly string[]): Promise<SqlServer> {
  const { environment, client, shareFolder } = programs;
  const directory = await mkdtemp(join(tmpdir(), "callnumber-mariadb-"));
  const socket = `--socket=${join(directory, "mariadb.sock")}`;
  const commandOf = (words: readonly string[]) => {
    const all = [...diesWithParent(), programs.server, ...serverWords(shareFolder, directory), ...words];
    const [program, ...rest] = all as [string, ...string[]];
    return { program, words: rest, environment };
  };
  const run = async (sql: string, database = "") => {
    const words = [...CLIENT_WORDS, socket, ...(database === "" ? [] : [database])];
    return rowsIn(await outputOf({ program: client, words, environment }, sql));
  };
  const dispose = () => rm(directory, { recursive: true, force: true });
  try {
    await mkdir(join(directory, "data"));
    await outputOf(commandOf(["--bootstrap", "--log-warnings=0"]), await systemTables(shareFolder));
    const running = await launch(commandOf([socket, "--skip-networking", ...serverOptions]), () => run("SELECT 1"));
    const [[version = ""] = []] = await run("SELECT VERSION()");
    return { version, run, dispose: () => running.kill().then(dispose) };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function serverWords(shareFolder: string, directory: string): string[] {
  return [
    "--no-defaults",
    // Root must name itself; another user can be no one else.
    ...(process.getuid?.() === 0 ? ["--user=root"] : []),
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
}

async function systemTables(shareFolder: string): Promise<string> {
  const files = await Promise.all(SYSTEM_TABLES.map((name) => readFile(join(shareFolder, name), "utf8")));
  // The first user is root, who needs no password: the directory with the socket is private.
  return ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket=NULL;", ...files].join("\n");
}
