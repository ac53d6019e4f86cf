/**
 * A MariaDB of a test's own: a private folder, and a Unix socket in it as the only way in. Knows nothing of where the programs came
 * from, nor of the test framework.
 */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { diesWithParent } from "../processes/dies-with-run.js";
import { launch, outputOf, rowsIn, type SqlServer } from "../processes/sql-server.js";
import { libraryVariable, type MariadbPrograms } from "./mariadb-programs.js";

export interface MariadbOptions {
  /** Words for the server's command line beside those that make it small and private. Default: none. */
  readonly serverOptions?: readonly string[];
}

/** In the order in which mariadb-install-db runs them, less what tests never ask: help, time zones, the sys schema. */
const SYSTEM_TABLES = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];

/** Resolves when the server answers. @throws Error with the end of its log when it ends before that. */
export async function launchMariadb(programs: MariadbPrograms, options: MariadbOptions = {}): Promise<SqlServer> {
  const { version, origin } = programs;
  const directory = await mkdtemp(join(tmpdir(), "callnumber-mariadb-"));
  const environment = libraryVariable(programs.libraryPath);
  const socket = join(directory, "mariadb.sock");
  const server = [...diesWithParent(), programs.server, ...serverWords(programs, directory)];
  const commandOf = (words: readonly string[]) => {
    const [program, ...rest] = [...server, ...words] as [string, ...string[]];
    return { program, words: rest, environment };
  };
  const run = async (sql: string, database = "") =>
    rowsIn(
      await outputOf(
        {
          program: programs.client,
          words: [...CLIENT_WORDS, `--socket=${socket}`, ...(database === "" ? [] : [database])],
          environment,
        },
        sql,
      ),
    );
  try {
    await mkdir(join(directory, "data"));
    await outputOf(commandOf(["--bootstrap", "--log-warnings=0"]), await systemTables(programs.shareFolder));
    const running = await launch(
      commandOf([`--socket=${socket}`, "--skip-networking", ...(options.serverOptions ?? [])]),
      () => run("SELECT 1"),
    );
    const dispose = async () => {
      await running.kill();
      await rm(directory, { recursive: true, force: true });
    };
    return { version, origin, run, dispose };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** Text as it is, without headings; the person at the terminal has a character set of his own. */
const CLIENT_WORDS = [
  "--no-defaults",
  "--user=root",
  "--batch",
  "--raw",
  "--skip-column-names",
  "--default-character-set=utf8mb4",
];

function serverWords({ shareFolder }: MariadbPrograms, directory: string): string[] {
  return [
    "--no-defaults",
    // Started by root it wants to be told that this is meant; started by anyone else it can be no one else.
    ...(process.getuid?.() === 0 ? ["--user=root"] : []),
    `--basedir=${dirname(dirname(shareFolder))}`,
    `--lc-messages-dir=${shareFolder}`,
    `--character-sets-dir=${join(shareFolder, "charsets")}`,
    `--datadir=${join(directory, "data")}`,
    `--tmpdir=${directory}`,
    `--pid-file=${join(directory, "mariadb.pid")}`,
    // Nobody needs these data after a crash, and a container may forbid io_uring.
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
  // The first user is root, who needs no password: the folder with the socket is private.
  return ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket=NULL;", ...files].join("\n");
}
