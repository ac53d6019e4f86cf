/**
 * Reads a tokens file. A user who could write it could grant himself access, so only its owner may. The rights are those of the file that
 * is read, checked each time. Its directory needs no check: a file that another user puts there has an owner that is rejected.
 */
import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import process from "node:process";
import { commandLine, shellWord } from "@callnumber/protocol/operator";
import { faultOfMode } from "../platform/private-file.js";
import { recordsIn, type TokenRecord, TokensFileError } from "./token.js";

const ROOT_UID = 0;
/** Room for the most tokens that there may be, each with many namespaces. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** Without it, opening a pipe would wait for a writer. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

export interface TokensFile {
  readonly records: readonly TokenRecord[];
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns the tokens of a file. With an empty file, no client is authenticated.
 * @throws TokensFileError when it can't be read, others have rights to it, or a line is wrong.
 */
export async function readTokensFile(path: string): Promise<TokensFile> {
  return mustBeThere(await readIfThere(path, { isKept: false }), path);
}

/** As `readTokensFile`, for a command that shows or changes the file and leaves it to its owner: root may, for any owner. */
export async function readKeptTokensFile(path: string): Promise<TokensFile> {
  return mustBeThere(await readIfThere(path, { isKept: true }), path);
}

function mustBeThere(file: TokensFile | undefined, path: string): TokensFile {
  if (file !== undefined) return file;
  throw new TokensFileError(
    `the tokens file ${path} is not there. Make it with a first token: ` +
      `\`${commandLine("token create", undefined, { "tokens-file": path, role: "operator", "all-namespaces": true })}\``,
  );
}

/** As `readTokensFile` or `readKeptTokensFile`; undefined when there is no such file. */
export async function readIfThere(path: string, owner: { readonly isKept: boolean }): Promise<TokensFile | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, OPEN_FLAGS);
    return await readOpen(file, path, owner);
  } catch (error) {
    if (error instanceof TokensFileError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new TokensFileError(`the tokens file ${path} can't be read (${code ?? message})`, { cause: error });
  } finally {
    await file?.close();
  }
}

async function readOpen(file: FileHandle, path: string, owner: { readonly isKept: boolean }): Promise<TokensFile> {
  const stats = await file.stat();
  if (!stats.isFile()) throw new TokensFileError(`${path} is no file that could hold tokens`);
  const fault = faultOfRights(stats, path, trustedUid(stats.uid, process.getuid?.(), owner));
  if (fault !== undefined) throw new TokensFileError(`the tokens file ${path} is not used: ${fault}`);
  if (stats.size > FILE_BYTES_MAX) {
    throw new TokensFileError(`${path} has ${stats.size} bytes; a tokens file has at most ${FILE_BYTES_MAX}`);
  }
  const bytes = await file.readFile();
  if (!isUtf8(bytes)) throw new TokensFileError(`${path} is no text in UTF-8`);
  const { mode, uid, gid } = stats;
  return { records: recordsIn(bytes.toString(), path), mode: mode & 0o777, uid, gid };
}

export interface FileRights {
  readonly mode: number;
  readonly uid: number;
}

/**
 * Returns the user who may own the file, besides root: of a coordinator, its own. A command that root runs keeps the file's owner: with a
 * file of root, the coordinator of another user could not read it any more, and revoked tokens would keep their access.
 */
export function trustedUid(
  fileUid: number,
  processUid: number | undefined,
  { isKept }: { readonly isKept: boolean },
): number | undefined {
  return isKept && processUid === ROOT_UID ? fileUid : processUid;
}

/** Returns what is wrong, and the command that fixes it; undefined when nothing is. `processUid`: undefined where a system has no users. */
export function faultOfRights(
  { mode, uid }: FileRights,
  path: string,
  processUid: number | undefined,
): string | undefined {
  // Windows has no such owners and modes.
  if (processUid === undefined) return undefined;
  if (uid !== processUid && uid !== ROOT_UID) {
    return `it belongs to the user with id ${uid}, who could let anybody in; it must belong to ${processUid} or root: chown ${processUid} ${shellWord(path)}`;
  }
  return faultOfMode(mode, path);
}
