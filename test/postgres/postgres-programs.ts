/** The programs of a PostgreSQL server: from this machine, else from Debian's packages, unpacked without root. */
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { type Command, outputOf } from "../processes/server-process.js";

/** PostgreSQL does not run as root: then the user `nobody` runs it. */
const NOBODY = { uid: 65_534, gid: 65_534 };
export const OTHER_USER = process.getuid?.() === 0 ? NOBODY : undefined;

export interface PostgresPrograms {
  /** With initdb, postgres, psql and what comes with them. */
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Where they came from, for people. */
  readonly origin: string;
}

/** Returns why there are none, or why they do not run here. */
export async function findPostgres(): Promise<PostgresPrograms | string> {
  const found = await findPrograms();
  if (typeof found === "string") return found;
  try {
    // In some containers root may be no other user, or that one may not read the programs.
    await outputOf(postgresCommand(found, "postgres", ["--version"]));
    return found;
  } catch (error) {
    return (error as Error).message;
  }
}

async function findPrograms(): Promise<PostgresPrograms | string> {
  const hasPrograms = (folder: string) =>
    ["initdb", "postgres", "psql"].every((program) => existsSync(join(folder, program)));
  // Debian has a directory for each release, none of them on PATH.
  const releasesBelow = (home: string) => {
    const parent = join(home, "usr/lib/postgresql");
    return existsSync(parent) ? readdirSync(parent).map((release) => join(parent, release, "bin")) : [];
  };
  const path = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const folder = [...path, ...releasesBelow("/")].find(hasPrograms);
  if (folder !== undefined) return { folder, environment: { LC_ALL: "C" }, origin: folder };
  return unpackDebianPackages("postgres", ["postgresql"], ({ home, libraryPath, origin }) => {
    const unpacked = releasesBelow(home).find(hasPrograms);
    return unpacked && { folder: unpacked, environment: { LC_ALL: "C", LD_LIBRARY_PATH: libraryPath }, origin };
  });
}

/** A command of theirs, as a user that is not root. */
export function postgresCommand(
  { folder, environment }: PostgresPrograms,
  name: string,
  words: readonly string[],
): Command {
  return { program: join(folder, name), words, environment, ...(OTHER_USER && { asUser: OTHER_USER }) };
}

/** Rows alone, columns between tabs, NULL as a word, and nothing after the first error. */
const PSQL_OPTIONS = [
  ..."--no-psqlrc --quiet --tuples-only --no-align --pset=null=NULL --username=postgres".split(" "),
  "--field-separator=\t",
  "--set=ON_ERROR_STOP=1",
  "--set=VERBOSITY=verbose",
];

/** Runs statements as the superuser `postgres`. Resolves to what psql prints. `host`: a folder or a name. */
export function psql(
  programs: PostgresPrograms,
  sql: string,
  { host, port, database = "postgres" }: { readonly host: string; readonly port?: number; readonly database?: string },
): Promise<string> {
  const words = [
    ...PSQL_OPTIONS,
    `--host=${host}`,
    `--dbname=${database}`,
    ...(port === undefined ? [] : [`--port=${port}`]),
  ];
  return outputOf(postgresCommand(programs, "psql", words), sql);
}
