/**
 * A PostgreSQL of a test's own: a private folder, and a Unix socket in it as the only way in. Knows nothing of where the programs
 * came from, nor of the test framework.
 */
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { diesWithParent } from "../processes/dies-with-run.js";
import { type Command, launch, outputOf, rowsIn, type SqlServer } from "../processes/sql-server.js";
import { libraryVariable, type PostgresPrograms } from "./postgres-programs.js";

export interface PostgresOptions {
  /** Settings beside those that make it small and private, as `name=value`. Default: none. */
  readonly settings?: readonly string[];
}

const SUPERUSER = "postgres";
/** PostgreSQL refuses to be run by root: then it is run by nobody, who has no other business. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/** Why root can't have it run by somebody else, or undefined: in some containers root may be nobody else, or nobody may not read the programs. */
export async function whyNotAsRoot({ folder, libraryPath }: PostgresPrograms): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const command = { program: join(folder, "postgres"), words: ["--version"], asUser: NOBODY };
  try {
    await outputOf({ ...command, environment: libraryVariable(libraryPath) });
    return undefined;
  } catch (error) {
    return `PostgreSQL is not to be run by root, and nobody can't run it: ${(error as Error).message}`;
  }
}

/** Resolves when the server answers. @throws Error with the end of its log when it ends before that. */
export async function launchPostgres(programs: PostgresPrograms, options: PostgresOptions = {}): Promise<SqlServer> {
  const { version, origin, folder } = programs;
  const directory = await mkdtemp(join(tmpdir(), "callnumber-postgres-"));
  const asUser = process.getuid?.() === 0 ? { asUser: NOBODY } : {};
  const environment = { ...libraryVariable(programs.libraryPath), LC_ALL: "C" };
  const data = join(directory, "data");
  const commandOf = (name: string, words: readonly string[]): Command => {
    const [program, ...rest] = [...diesWithParent(), join(folder, name), ...words] as [string, ...string[]];
    return { program, words: rest, environment, ...asUser };
  };
  const run = async (sql: string, database = "postgres") =>
    rowsIn(await outputOf(commandOf("psql", [...CLIENT_WORDS, `--host=${directory}`, `--dbname=${database}`]), sql));
  try {
    if (asUser.asUser) await chown(directory, NOBODY.uid, NOBODY.gid);
    await outputOf(
      commandOf("initdb", [
        `--pgdata=${data}`,
        `--username=${SUPERUSER}`,
        // Whoever may enter the folder with the socket is the tester.
        "--auth=trust",
        "--encoding=UTF8",
        "--no-locale",
        "--no-sync",
      ]),
    );
    // Shared memory as files of its own folder: what a kill leaves behind goes with the folder.
    const memory = ["dynamic_shared_memory_type=mmap"];
    const settings = ["listen_addresses=", `unix_socket_directories=${directory}`, "fsync=off", "jit=off"];
    const words = [...settings, ...memory, ...(options.settings ?? [])].flatMap((setting) => ["-c", setting]);
    const running = await launch(commandOf("postgres", ["-D", data, ...words]), () => run("SELECT 1"));
    const dispose = async () => {
      // Killed outright it would leave shared memory behind.
      await running.kill("SIGQUIT");
      await rm(directory, { recursive: true, force: true });
    };
    return { version, origin, run, dispose };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

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
