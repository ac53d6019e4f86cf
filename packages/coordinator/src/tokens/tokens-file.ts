/**
 * Reads a tokens file. A user who could write it could grant himself access, so only its owner may. The rights are those of the file that
 * is read, checked each time. Its directory needs no check: a file that another user puts there has an owner that is rejected.
 */
import { isUtf8 } from "node:buffer";
import process from "node:process";
import { commandLine, shellWord } from "@callnumber/protocol/api";
import { faultOfMode, readWholeFile, type WholeFile } from "../platform/private-file.js";
import { recordsIn, type TokenRecord, TokensFileError } from "./token.js";

const ROOT_UID = 0;
/** Room for the most tokens that there may be, each with many namespaces. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

interface TokensFile {
  readonly records: readonly TokenRecord[];
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface Reader {
  /** A command that shows or changes the file and leaves it to its owner: root may, for any owner. Default false: a coordinator. */
  readonly keepsOwner?: boolean;
}

/**
 * Returns the tokens of a file. With an empty file, no client is authenticated.
 * @throws TokensFileError when it can't be read, others have rights to it, or a line is wrong.
 */
export function readTokensFile(path: string, reader: Reader = {}): TokensFile {
  const file = readTokensFileIfThere(path, reader);
  if (file !== undefined) return file;
  throw new TokensFileError(
    `the tokens file ${path} is not there. Make it with a first token: ` +
      `\`${commandLine("token create", undefined, { "tokens-file": path, role: "operator", "all-namespaces": true })}\``,
  );
}

/** As `readTokensFile`; undefined when there is no such file. */
export function readTokensFileIfThere(path: string, reader: Reader = {}): TokensFile | undefined {
  const file = wholeFile(path, reader);
  if (file === undefined) return undefined;
  const { bytes, stats } = file;
  if (!isUtf8(bytes)) throw new TokensFileError(`the tokens file ${path} is no text in UTF-8`);
  const { mode, uid, gid } = stats;
  return { records: recordsIn(bytes.toString(), path), mode: mode & 0o777, uid, gid };
}

function wholeFile(path: string, reader: Reader): WholeFile | undefined {
  const faultOf = (stats: FileRights) => faultOfRights(stats, path, trustedUid(stats.uid, process.getuid?.(), reader));
  try {
    return readWholeFile(path, "the tokens file", { sizeMaxBytes: FILE_BYTES_MAX, faultOf });
  } catch (error) {
    const { message, cause } = error as Error & { readonly cause?: NodeJS.ErrnoException };
    if (cause?.code === "ENOENT") return undefined;
    throw new TokensFileError(message, { cause: error });
  }
}

export interface FileRights {
  readonly mode: number;
  readonly uid: number;
}

/**
 * Returns the user who may own the file, besides root: of a coordinator, its own. A command that root runs keeps the file's owner: with a
 * file of root, the coordinator of another user could not read it any more, and revoked tokens would keep their access.
 */
export function trustedUid(fileUid: number, processUid: number | undefined, reader: Reader): number | undefined {
  return reader.keepsOwner && processUid === ROOT_UID ? fileUid : processUid;
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
    return `it belongs to the user with id ${uid}, who could grant access to any client; it must belong to ${processUid} or root: chown ${processUid} ${shellWord(path)}`;
  }
  return faultOfMode(mode, path);
}
