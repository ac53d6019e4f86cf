/** Files with secrets: read only if other users of the system have no rights to them. And directories for this user alone. */
import { closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, readFileSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { shellWord } from "@callnumber/protocol/api";

/** Larger than a key or an address, smaller than what a wrong path could lead to. */
const SIZE_MAX_BYTES = 1_048_576;

/** Opening a pipe would block the process until something writes to it. Windows does not have this flag. */
const NOT_WAITING = constants.O_NONBLOCK ?? 0;

export interface ReadOptions {
  /** Default: 1 MiB. */
  readonly sizeMaxBytes?: number;
  /** Returns what is wrong with the rights to the file, and the command that fixes it. Default: every file may be read. */
  readonly faultOf?: (stats: Stats) => string | undefined;
}

export interface WholeFile {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/**
 * Returns the text of a file with a secret; `what` names it in messages, which never hold any of it.
 * @throws TypeError as `readWholeFile`, and when others have rights to it.
 */
export function readPrivateFile(path: string, what: string): string {
  return readWholeFile(path, what, { faultOf: ({ mode }) => faultOfMode(mode, path) }).bytes.toString();
}

/** As `readPrivateFile`, of a file that every user may read. */
export function readPublicFile(path: string, what: string): string {
  return readWholeFile(path, what).bytes.toString();
}

/**
 * Reads a file. Its rights and its size are those of the open file: between a check of the name and its reading it could become another one.
 * @throws TypeError when it can't be read, is not a file, is larger, or its rights are wrong. Its cause is the system's error, if there is one.
 */
export function readWholeFile(
  path: string,
  what: string,
  { sizeMaxBytes = SIZE_MAX_BYTES, faultOf = () => undefined }: ReadOptions = {},
): WholeFile {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | NOT_WAITING);
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new TypeError(`${what} ${path} is not a file`);
    const fault = faultOf(stats);
    if (fault !== undefined) throw new TypeError(`${what} ${path} is not used: ${fault}`);
    if (stats.size > sizeMaxBytes) {
      throw new TypeError(`${what} ${path} has ${stats.size} bytes; at most ${sizeMaxBytes} are possible`);
    }
    return { bytes: readFileSync(file), stats };
  } catch (error) {
    if (error instanceof TypeError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new TypeError(`${what} ${path} can't be read: ${reason}`, { cause: error });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/**
 * Makes a directory, and those above it that are missing, for this user alone. Node's own `recursive` never returns where the system
 * reports that a directory that exists does not, as in /proc.
 */
export function makePrivateDirectory(path: string): void {
  if (existsSync(path)) return;
  makePrivateDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The most rights that a file with a secret may grant: a service often gets its secrets by its group. */
const MODE_MAX = 0o640;
const MODE_BITS = 0o7777;

/**
 * Returns what is wrong with a mode, and the command that fixes it; undefined for a private file, and on Windows, which has no such modes.
 */
export function faultOfMode(mode: number, path: string): string | undefined {
  const bits = mode & MODE_BITS;
  if ((bits & ~MODE_MAX) === 0 || process.platform === "win32") return undefined;
  return (
    `its mode is ${octalOf(mode)}; it must be 0600, or 0640 for a group that may read it, so that no other user can read or change it: ` +
    `chmod 600 ${shellWord(path)}`
  );
}

/** Formats a mode as `chmod` takes it: 0640. */
export function octalOf(mode: number): string {
  return (mode & MODE_BITS).toString(8).padStart(4, "0");
}
