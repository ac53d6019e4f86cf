/**
 * The paths of an embedded store, and who may read and write its files. A store has one path by which it is locked and marked: the
 * lock and SQLite's own files lie next to the file itself, by whatever name it was opened.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { shellWord } from "@callnumber/protocol/api";
import { CoordinatorError } from "../../errors.js";
import { octalOf } from "../../platform/private-file.js";
import { isLink, LinkLeadsNowhere, realPathOf } from "../../platform/real-path.js";

/** The store's file, SQLite's files and the lock. */
const SUFFIXES = ["", "-wal", "-shm", "-journal", ".lock"];
const ROOT_UID = 0;
const OTHERS_MAY_WRITE = 0o002;

/** @throws CoordinatorError for a link that leads nowhere: `store_not_found`, or `store_unavailable` where a store could have been made. */
export function storePathOf(givenPath: string, { create }: { readonly create: boolean }): string {
  try {
    return realPathOf(givenPath);
  } catch (error) {
    if (!(error instanceof LinkLeadsNowhere)) throw error;
    const message = create
      ? `no store is made at ${givenPath}: ${error.message}`
      : `there is no store at ${givenPath}: ${error.message}`;
    throw new CoordinatorError(create ? "store_unavailable" : "store_not_found", message, { cause: error });
  }
}

/**
 * A file that is mounted alone has another name, in another directory, with another lock and log. Checked where the system reports
 * mounts (Linux).
 * @throws CoordinatorError `store_unavailable`.
 */
export function mustNotBeMounted(storePath: string): void {
  const mountPoints = mountPointsIn(mountInfo());
  const mounted = SUFFIXES.map((suffix) => storePath + suffix).find((path) => mountPoints.has(path));
  if (mounted === undefined) return;
  throw new CoordinatorError(
    "store_unavailable",
    `the store ${storePath} is not used: ${mounted} is mounted as a single file, so it has a second name with another lock. ` +
      "Mount the directory that holds the store",
  );
}

/** Of the text of proc_pid_mountinfo(5): the fifth field, where blanks and backslashes are written as octal numbers. */
export function mountPointsIn(text: string): ReadonlySet<string> {
  const fields = text.split("\n").map((line) => line.split(" ")[4] ?? "");
  const decoded = (_: string, octal: string) => String.fromCharCode(Number.parseInt(octal, 8));
  return new Set(fields.map((field) => field.replaceAll(/\\([0-7]{3})/g, decoded)));
}

function mountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}

export function nearestThatExists(path: string): string {
  return existsSync(path) ? path : nearestThatExists(dirname(path));
}

/**
 * Checks a file that exists; a file that is made here has one name, and is readable for this user alone.
 * @throws CoordinatorError `store_unavailable`.
 */
export function mustBeStoreFile(path: string, stats: Stats): void {
  const fault = faultOfKind(stats) ?? faultOfOwner(stats, path, process.geteuid?.());
  if (fault !== undefined) throw new CoordinatorError("store_unavailable", `the store ${path} is not used: ${fault}`);
}

/** Two hard links are two paths, with a lock and a log for each: two processes would lease the same runs and not notice. */
function faultOfKind(stats: Stats): string | undefined {
  if (stats.isDirectory()) return "it is a directory. Give the path of a file in it";
  if (!stats.isFile()) return "it is not a regular file. Give the path of one";
  if (stats.nlink === 1) return undefined;
  return "the file has more than one name (hard links); opened by two names it would lease runs twice. Leave one of them";
}

/**
 * Why a file can't be trusted by its owner and mode, and what to do; undefined when nothing is wrong. A group may write it: some
 * container systems give every file of a volume such a mode. Root may open the file of another user, but makes no store of an empty
 * file that belongs to one. Pure.
 * @param processUid undefined on a system without such owners and modes (Windows).
 */
export function faultOfOwner(
  { mode, uid, size }: Pick<Stats, "mode" | "uid" | "size">,
  path: string,
  processUid: number | undefined,
): string | undefined {
  if (processUid === undefined) return undefined;
  if ((mode & OTHERS_MAY_WRITE) !== 0) {
    return `its mode is ${octalOf(mode)}, so every user of this machine may change it. See who has, then: chmod 600 ${shellWord(path)}`;
  }
  const isOthers = uid !== processUid && uid !== ROOT_UID;
  if (!isOthers || (processUid === ROOT_UID && size > 0)) return undefined;
  return (
    `it belongs to the user with id ${uid}, who may change it, and this process runs as ${processUid}. Run it as that user, or, where the file ` +
    `should be this one's: chown ${processUid} ${shellWord(path)}`
  );
}

/** Undefined on a system without such modes (Windows), and when the file is gone. */
export function fileModeOf(path: string): number | undefined {
  return process.geteuid === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.mode;
}

/**
 * Makes an empty file that only its owner may read, where there is none. A file that exists is never opened, because closing it would
 * drop SQLite's locks on it. An empty file is a new database to SQLite, and the files that it makes next to it get the same mode.
 * @throws LinkLeadsNowhere for a link to a missing file: SQLite would make a file that every user may read.
 */
export function makePrivateFile(path: string): void {
  if (existsSync(path)) return;
  if (isLink(path)) throw new LinkLeadsNowhere(path);
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** SQLite syncs a file, not its name: without this a power loss could leave a file that is in no directory. */
export function syncFolderOf(path: string): void {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
