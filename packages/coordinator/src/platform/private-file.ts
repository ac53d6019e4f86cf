/** Files with secrets: read only if other users of the system have no rights to them. And directories for this user alone. */
import { closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { shellWord } from "@callnumber/protocol/operator";

/** Larger than a key or an address, smaller than what a wrong path could lead to. */
const SIZE_MAX_BYTES = 1_048_576;

/** Opening a pipe would block the process until something writes to it. Windows does not have this flag. */
const NOT_WAITING = constants.O_NONBLOCK ?? 0;

/**
 * The text of a file with a secret; `what` names it in messages, which never hold any of it.
 * @throws TypeError when it can't be read, is no file, is larger than 1 MiB, or others have rights to it; where the system knows no
 * such modes (Windows), these are not checked.
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
    // Of the open file: between a check of the name and its reading it could become another one.
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new TypeError(`${what} ${path} is no file`);
    if (stats.size > SIZE_MAX_BYTES)
      throw new TypeError(`${what} ${path} is larger than any such file: ${stats.size} bytes`);
    const fault = isPrivate && process.platform !== "win32" ? faultOfMode(stats.mode, path) : undefined;
    if (fault !== undefined) throw new TypeError(`${what} ${path} is not used: ${fault}`);
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

/** The most rights that a file with a secret may grant: a service often gets its secrets by its group. */
const MODE_MAX = 0o640;
const MODE_BITS = 0o7777;

/** Returns what is wrong with a mode, and the command that fixes it; undefined for a private file. Not for Windows, which has no such modes. */
export function faultOfMode(mode: number, path: string): string | undefined {
  const bits = mode & MODE_BITS;
  if ((bits & ~MODE_MAX) === 0) return undefined;
  return (
    `its mode is ${octalOf(mode)}; it must be 0600, or 0640 for a group that may read it, so that no other user can read or change it: ` +
    `chmod 600 ${shellWord(path)}`
  );
}

/** Formats a mode as `chmod` takes it: 0640. */
export function octalOf(mode: number): string {
  return (mode & MODE_BITS).toString(8).padStart(4, "0");
}
