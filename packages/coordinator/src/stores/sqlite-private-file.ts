/** Files that only their owner may read: made before SQLite would make them for everybody, refused where anybody could write them. */

import { closeSync, existsSync, fsyncSync, openSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { shellWord } from "@callnumber/protocol/operator";
import { octalOf } from "../platform/private-file.js";
import { isLink, LinkLeadsNowhere } from "../platform/real-path.js";

const ROOT_UID = 0;
const OTHERS_MAY_WRITE = 0o002;

/**
 * Makes an empty file where there is none; one that is there is never opened, because closing it would drop SQLite's locks on it.
 * Such an empty file is a new database to SQLite, and what it makes beside it gets the same mode.
 * @throws LinkLeadsNowhere: SQLite would make a file for everybody behind it.
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

/**
 * Why a store's file is not to be trusted, and what to do; undefined when nothing is wrong. A group may write it: some systems for containers give
 * every file of a volume such a mode. Root may open what is another user's, but makes no store of what that user has put there. Pure.
 * @param processUid undefined where a system knows no owners and modes of this kind (Windows).
 */
export function faultOfStoreFile(
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

/** Undefined where the system knows no such modes (Windows), and when the file is gone. */
export function fileModeOf(path: string): number | undefined {
  return process.geteuid === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.mode;
}

/** SQLite syncs a file, not its name: without this a power loss could leave a file that no folder holds. */
export function syncFolderOf(path: string): void {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
