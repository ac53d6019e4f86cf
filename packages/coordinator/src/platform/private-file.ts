/** Files that hold a secret: read only when the system's other users can't read them too. And directories for this user alone. */
import { closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { faultOfMode } from "../private-mode.js";

/** Larger than a key or an address, smaller than what a wrong path could lead to. */
const SIZE_MAX_BYTES = 1_048_576;

/** A pipe under that name would hold up the whole process until somebody writes to it. Windows has no such word. */
const NOT_WAITING = constants.O_NONBLOCK ?? 0;

/**
 * The text of a file with a secret; `what` names it in messages, which never hold any of it.
 * @throws TypeError when it can't be read, is no file, is larger than 1 MiB, or others have rights to it; where the system knows no
 * such modes (Windows), these are not looked at.
 */
export function readPrivateFile(path: string, what: string): string {
  return readWhole(path, what, { isPrivate: true });
}

/** As `readPrivateFile`, of a file that everybody may read. */
export function readPublicFile(path: string, what: string): string {
  return readWhole(path, what, { isPrivate: false });
}

/**
 * Makes a directory, and those above it that are missing, for this user alone. Node's own `recursive` never returns where the system
 * reports that a directory that exists does not, as in /proc.
 */
export function makePrivateFolder(path: string): void {
  if (existsSync(path)) return;
  makePrivateFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function readWhole(path: string, what: string, { isPrivate }: { readonly isPrivate: boolean }): string {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | NOT_WAITING);
    // Of the open file: between a look at the name and its reading it could become another one.
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new TypeError(`${what} ${path} is no file`);
    if (stats.size > SIZE_MAX_BYTES)
      throw new TypeError(`${what} ${path} is larger than any such file: ${stats.size} bytes`);
    if (isPrivate && process.platform !== "win32") mustBePrivate(stats.mode, path, what);
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof TypeError) throw error;
    throw new TypeError(`${what} ${path} can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, {
      cause: error,
    });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function mustBePrivate(mode: number, path: string, what: string): void {
  const fault = faultOfMode(mode, path);
  if (fault !== undefined) throw new TypeError(`${what} ${path} is not used: ${fault}`);
}
