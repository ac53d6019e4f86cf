/**
 * The programs of a MariaDB that can be started here, whichever way they came to this machine.
 * In order: on PATH and where Debian puts servers, Debian's packages unpacked without root.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type Unpacked, unpackDebianPackages } from "../debian/unpacked-packages.js";

export interface MariadbPrograms {
  readonly server: string;
  readonly client: string;
  /** With the SQL files that a fresh data folder is made by, and the server's messages. */
  readonly shareFolder: string;
  /** Folders for LD_LIBRARY_PATH, where the programs were unpacked and not installed. */
  readonly libraryPath: string | undefined;
  readonly version: string;
  readonly origin: string;
}

/** Servers are not for everybody's PATH. */
const SERVER_FOLDERS = ["/usr/sbin", "/usr/libexec"];
const PACKAGES = ["mariadb-server-core", "mariadb-client-core"];

/** The programs, or each way tried and why it failed. */
export async function findMariadb(path: string, cacheFolder: string): Promise<MariadbPrograms | string[]> {
  const installed = mariadbIn(path.split(delimiter).filter(Boolean));
  if (installed) return installed;
  const unpacked = await unpackDebianPackages(PACKAGES, cacheFolder, (found) => mariadbUnpacked(found, path));
  if (typeof unpacked !== "string") return unpacked;
  return ["no mariadbd with its client on PATH that runs", unpacked];
}

function mariadbIn(folders: readonly string[]): MariadbPrograms | undefined {
  const server = firstThere("mariadbd", [...folders, ...SERVER_FOLDERS]);
  const client = firstThere("mariadb", folders);
  if (server === undefined || client === undefined) return undefined;
  const shareFolder = shareFolderOf(server);
  const version = versionOf(server, undefined);
  if (shareFolder === undefined || version === undefined) return undefined;
  return { server, client, shareFolder, libraryPath: undefined, version, origin: `${server}, found on this machine` };
}

/** The client may be installed already: then it was not fetched again. */
function mariadbUnpacked({ home, libraryPath, origin }: Unpacked, path: string): MariadbPrograms | undefined {
  const server = join(home, "usr", "sbin", "mariadbd");
  const client = firstThere("mariadb", [join(home, "usr", "bin"), ...path.split(delimiter)]);
  const shareFolder = shareFolderOf(server);
  const version = versionOf(server, libraryPath);
  if (client === undefined || shareFolder === undefined || version === undefined) return undefined;
  return { server, client, shareFolder, libraryPath, version, origin };
}

function firstThere(name: string, folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

function shareFolderOf(server: string): string | undefined {
  const share = join(dirname(server), "..", "share");
  const folders = ["mysql", "mariadb"].map((name) => join(share, name));
  return folders.find((folder) => existsSync(join(folder, "mysql_system_tables.sql")));
}

/** What the program says of itself, or undefined when it does not run here. */
function versionOf(server: string, libraryPath: string | undefined): string | undefined {
  try {
    const answer = execFileSync(server, ["--no-defaults", "--version"], {
      encoding: "utf8",
      env: { ...process.env, ...libraryVariable(libraryPath) },
      stdio: ["ignore", "pipe", "ignore"],
    });
    return /\bVer (\S+)/.exec(answer)?.[1];
  } catch {
    return undefined;
  }
}

export function libraryVariable(libraryPath: string | undefined): NodeJS.ProcessEnv {
  return libraryPath === undefined ? {} : { LD_LIBRARY_PATH: libraryPath };
}
