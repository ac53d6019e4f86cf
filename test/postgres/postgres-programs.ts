/**
 * The programs of a PostgreSQL that can be started here, whichever way they came to this machine.
 * In order: on PATH and where Debian puts them, Debian's packages unpacked without root.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Unpacked, unpackDebianPackages } from "../debian/unpacked-packages.js";

export interface PostgresPrograms {
  /** With initdb, postgres and psql. */
  readonly folder: string;
  /** Folders for LD_LIBRARY_PATH, where the programs were unpacked and not installed. */
  readonly libraryPath: string | undefined;
  readonly version: string;
  readonly origin: string;
}

const PROGRAMS = ["initdb", "postgres", "psql"];
/** A folder for each release, none of them on PATH. */
const DEBIAN_FOLDER = "usr/lib/postgresql";

/** The programs, or each way tried and why it failed. */
export async function findPostgres(path: string, cacheFolder: string): Promise<PostgresPrograms | string[]> {
  const installed = postgresIn([...path.split(delimiter).filter(Boolean), ...releasesBelow("/")]);
  if (installed) return installed;
  const unpacked = await unpackDebianPackages(["postgresql"], cacheFolder, postgresUnpacked);
  if (typeof unpacked !== "string") return unpacked;
  return ["no PostgreSQL on PATH that runs", unpacked];
}

function postgresIn(folders: readonly string[]): PostgresPrograms | undefined {
  const folder = folders.find((one) => PROGRAMS.every((program) => existsSync(join(one, program))));
  const version = folder === undefined ? undefined : versionOf(folder, undefined);
  if (folder === undefined || version === undefined) return undefined;
  return { folder, libraryPath: undefined, version, origin: `${folder}, found on this machine` };
}

function postgresUnpacked({ home, libraryPath, origin }: Unpacked): PostgresPrograms | undefined {
  const [folder] = releasesBelow(home);
  const version = folder === undefined ? undefined : versionOf(folder, libraryPath);
  return folder === undefined || version === undefined ? undefined : { folder, libraryPath, version, origin };
}

function releasesBelow(home: string): string[] {
  const parent = join(home, DEBIAN_FOLDER);
  return existsSync(parent) ? readdirSync(parent).map((release) => join(parent, release, "bin")) : [];
}

/** What the program says of itself, or undefined when it does not run here. */
function versionOf(folder: string, libraryPath: string | undefined): string | undefined {
  try {
    const answer = execFileSync(join(folder, "postgres"), ["--version"], {
      encoding: "utf8",
      env: { ...process.env, ...libraryVariable(libraryPath) },
      stdio: ["ignore", "pipe", "ignore"],
    });
    return /(\d+\.\d+)/.exec(answer)?.[1];
  } catch {
    return undefined;
  }
}

export function libraryVariable(libraryPath: string | undefined): NodeJS.ProcessEnv {
  return libraryPath === undefined ? {} : { LD_LIBRARY_PATH: libraryPath };
}
