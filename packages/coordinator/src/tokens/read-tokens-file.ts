/** Reads a tokens file, whose rights are checked each time: those of the very file that is read, not of a name. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import process from "node:process";
import { commandLine } from "@callnumber/protocol/operator";
import { recordsIn, type TokenRecord } from "./token-record.js";
import { TokensFileError } from "./tokens-file-error.js";
import { faultOfRights, trustedUid } from "./tokens-file-mode.js";

/** Room for the most tokens that there may be, each with many namespaces. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** A pipe at that name would else be waited for. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

export interface TokensFile {
  readonly records: readonly TokenRecord[];
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/**
 * The tokens that stand in a file. An empty file is none at all: then nobody is let in.
 * @throws TokensFileError when it can't be read, others have rights to it, or a line is wrong.
 */
export async function readTokensFile(path: string): Promise<TokensFile> {
  return mustBeThere(await readIfThere(path, { isKept: false }), path);
}

/** The same for a command that shows or changes the file and leaves it to its owner: root may, whoever that is. */
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

/** The same as one or the other; undefined when there is no such file. */
export async function readIfThere(path: string, owner: { readonly isKept: boolean }): Promise<TokensFile | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, OPEN_FLAGS);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unreadable(path, error);
  }
  try {
    return await readOpen(file, path, owner);
  } catch (error) {
    throw error instanceof TokensFileError ? error : unreadable(path, error);
  } finally {
    await file.close();
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
  const { mode, uid, gid } = stats;
  return { records: recordsIn(textIn(await file.readFile(), path), path), mode: mode & 0o777, uid, gid };
}

function textIn(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new TokensFileError(`${path} is no text in UTF-8`);
  }
}

function unreadable(path: string, error: unknown): TokensFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new TokensFileError(`the tokens file ${path} can't be read (${code ?? message})`, { cause: error });
}
