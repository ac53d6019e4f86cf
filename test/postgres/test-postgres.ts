/**
 * A PostgreSQL of a test file's own: a private directory, and a Unix socket in it as the only way in. Its programs come from this machine,
 * else from Debian's packages, unpacked without root.
 */
import { existsSync, readdirSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { diesWithParent } from "../processes/dies-with-run.js";
import { type Command, launch, outputOf, rowsIn, type SqlServer } from "../processes/sql-server.js";

interface Programs {
  /** With initdb, postgres and psql. */
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
}

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/postgres", import.meta.url));
const PROGRAMS = ["initdb", "postgres", "psql"];
/** A directory for each release, none of them on PATH. */
const DEBIAN_FOLDER = "usr/lib/postgresql";
const SUPERUSER = "postgres";
/** PostgreSQL refuses to be run by root: then the user nobody runs it. */
const NOBODY = { uid: 65_534, gid: 65_534 };
const AS_USER = process.getuid?.() === 0 ? { asUser: NOBODY } : {};
/** Rows alone, columns between tabs, NULL as a word, and nothing after the first error. */
const CLIENT_WORDS = [
  "--no-psqlrc",
  "--quiet",
  "--tuples-only",
  "--no-align",
  "--field-separator=\t",
  "--pset=null=NULL",
  "--set=ON_ERROR_STOP=1",
  "--set=VERBOSITY=verbose",
  `--username=${SUPERUSER}`,
];

export interface PostgresOptions {
  /** Settings in addition to those that make it small and private, as `name=value`. Default: none. */
  readonly settings?: readonly string[];
}

/** Starts a server that ends with the test file. Returns, for `ctx.skip`, why there can be none here. */
export async function startPostgres({ settings = [] }: PostgresOptions = {}): Promise<SqlServer | string> {
  const programs = await findPrograms();
  if (typeof programs === "string") return `no PostgreSQL can be started: ${programs}`;
  try {
    // In some containers root may be no other user, or that one may not read the programs.
    await outputOf(commandOf(programs, "postgres", ["--version"]));
  } catch (error) {
    return `no PostgreSQL can be started: ${(error as Error).message}`;
  }
  const server = await launchPostgres(programs, settings);
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
  const folder = [...path, ...releasesBelow("/")].find((one) => hasPrograms(one));
  if (folder !== undefined) return { folder, environment: { LC_ALL: "C" } };
  return unpackDebianPackages(["postgresql"], CACHE_FOLDER, ({ home, libraryPath }) => {
    const unpacked = releasesBelow(home).find(hasPrograms);
    return unpacked && { folder: unpacked, environment: { LC_ALL: "C", LD_LIBRARY_PATH: libraryPath } };
  });
}

function hasPrograms(folder: string): boolean {
  return PROGRAMS.every((program) => existsSync(join(folder, program)));
}

function releasesBelow(home: string): string[] {
  const parent = join(home, DEBIAN_FOLDER);
  return existsSync(parent) ? readdirSync(parent).map((release) => join(parent, release, "bin")) : [];
}

function commandOf({ folder, environment }: Programs, name: string, words: readonly string[]): Command {
  const [program, ...rest] = [...diesWithParent(), join(folder, name), ...words] as [string, ...string[]];
  return { program, words: rest, environment, ...AS_USER };
}

/** Resolves when the server answers. @throws Error with the end of its log when it ends before that. */
async function launchPostgres(programs: Programs, given: readonly string[]): Promise<SqlServer> {
  const directory = await mkdtemp(join(tmpdir(), "callnumber-postgres-"));
  const data = join(directory, "data");
  const run = async (sql: string, database = "postgres") => {
    const words = [...CLIENT_WORDS, `--host=${directory}`, `--dbname=${database}`];
    return rowsIn(await outputOf(commandOf(programs, "psql", words), sql));
  };
  const dispose = () => rm(directory, { recursive: true, force: true });
  try {
    if (AS_USER.asUser) await chown(directory, NOBODY.uid, NOBODY.gid);
    // Whoever may enter the directory with the socket is the tester.
    const access = [`--username=${SUPERUSER}`, "--auth=trust"];
    const words = [`--pgdata=${data}`, ...access, "--encoding=UTF8", "--no-locale", "--no-sync"];
    await outputOf(commandOf(programs, "initdb", words));
    const settings = [
      "listen_addresses=",
      `unix_socket_directories=${directory}`,
      "fsync=off",
      "jit=off",
      // Shared memory as files of its own directory: what a kill leaves behind goes with the directory.
      "dynamic_shared_memory_type=mmap",
      ...given,
    ].flatMap((setting) => ["-c", setting]);
    const running = await launch(commandOf(programs, "postgres", ["-D", data, ...settings]), () => run("SELECT 1"));
    const [[version = ""] = []] = await run("SELECT split_part(current_setting('server_version'), ' ', 1)");
    // Killed outright it would leave shared memory behind.
    return { version, run, dispose: () => running.kill("SIGQUIT").then(dispose) };
  } catch (error) {
    await dispose();
    throw error;
  }
}
