/**
 * Tokens, and the file that an operator keeps of them: a line for each, as JSON, with its SHA-256 alone. A user who could write the file could
 * grant himself access, so only its owner may. The rights are those of the file that is read, checked each time. Its directory needs no check:
 * a file that another user puts there has an owner that is rejected. No message contains anything of the file or of a token.
 */

import { isUtf8 } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import process from "node:process";
import { commandLine, PRINTABLE_PATTERN, shellWord } from "@callnumber/protocol/api";
import { faultOf, namespaceSchema, SECRET_SCHEMA_WORDS } from "@callnumber/protocol/schemas";
import * as z from "zod";
import { ROLES } from "../http/auth.js";
import { faultOfMode, readWholeFile, type WholeFile } from "../platform/private-file.js";

/** 32 bytes in base64url. */
export const TOKEN_PATTERN = /^cn_[A-Za-z0-9_-]{43}$/;
const ID_LENGTH = 8;
/** Each request is compared with every one. */
export const TOKEN_COUNT_MAX = 1_000;
const NOTE_LENGTH_MAX = 128;

/** A tokens file that can't be used. The message contains nothing of the file. */
export class TokensFileError extends Error {
  override readonly name = "TokensFileError";
  readonly code = "tokens_file_invalid";
}

/** 256 random bits can't be guessed from their SHA-256, which needs no slow hash; people and secret scanners know the prefix. */
export function newToken(): string {
  return `cn_${randomBytes(32).toString("base64url")}`;
}

/** Returns the 32 bytes of its SHA-256. */
export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Returns what people and logs call a token: the first eight hex digits of its SHA-256. */
export function tokenIdOf(sha256Hex: string): string {
  return sha256Hex.slice(0, ID_LENGTH);
}

/** What an operator notes about a token: for whom it is. */
export const noteSchema = z
  .string()
  .min(1, "a note has 1 character or more")
  .max(NOTE_LENGTH_MAX, `a note has at most ${NOTE_LENGTH_MAX} characters`)
  .regex(PRINTABLE_PATTERN, "a note holds an unprintable character");

const recordSchema = z
  .strictObject({
    id: z.string().regex(/^[0-9a-f]{8}$/, "is not eight hex digits"),
    sha256: z.string().regex(/^[0-9a-f]{64}$/, "is not 64 hex digits in lower case"),
    role: z.enum(ROLES, `is not one of ${ROLES.join(", ")}`),
    namespaces: z.union(
      [z.literal("all"), z.array(namespaceSchema).min(1)],
      'is neither "all" nor a list of namespaces with one or more',
    ),
    createdAtMs: z.int().min(0),
    note: noteSchema.optional(),
  })
  .refine(({ id, sha256 }) => id === tokenIdOf(sha256), { path: ["id"], message: "is not the beginning of sha256" });

/** One line of a tokens file: what a token may do, and its digest. */
export type TokenRecord = z.infer<typeof recordSchema>;

export interface TokenSettings {
  readonly role: TokenRecord["role"];
  readonly namespaces: TokenRecord["namespaces"];
  readonly note?: string | undefined;
}

export interface MadeToken {
  /** Printed once, and kept nowhere. */
  readonly token: string;
  readonly record: TokenRecord;
}

/** Makes a token whose id no other has: operators revoke by it. */
export function makeToken(
  { role, namespaces, note }: TokenSettings,
  takenIds: ReadonlySet<string>,
  nowMs: number,
): MadeToken {
  for (;;) {
    const token = newToken();
    const sha256 = digestOf(token).toString("hex");
    const id = tokenIdOf(sha256);
    if (takenIds.has(id)) continue;
    const record = { id, sha256, role, namespaces, createdAtMs: nowMs };
    return { token, record: note === undefined ? record : { ...record, note } };
  }
}

/** Returns the line of a tokens file, with its end. */
export function lineOf(record: TokenRecord): string {
  return `${JSON.stringify(record)}\n`;
}

/** Parses the text of a tokens file; a line may be a token that was pasted. @throws TokensFileError with the file, the line and the reason. */
export function recordsIn(text: string, file: string): readonly TokenRecord[] {
  if (text === "") return [];
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length > TOKEN_COUNT_MAX) {
    throw new TokensFileError(`${file} holds ${lines.length} lines; at most ${TOKEN_COUNT_MAX} tokens are possible`);
  }
  const lineOfId = new Map<string, number>();
  return lines.map((line, index) => {
    const number = index + 1;
    const record = parseRecord(line, (reason) => new TokensFileError(`${file}, line ${number}: ${reason}`));
    const earlier = lineOfId.get(record.id);
    if (earlier !== undefined)
      throw new TokensFileError(`${file}, line ${number}: line ${earlier} has the same id already`);
    lineOfId.set(record.id, number);
    return record;
  });
}

function parseRecord(line: string, errorFor: (reason: string) => TokensFileError): TokenRecord {
  if (line.trim() === "") throw errorFor("it is empty");
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    // The parser's message quotes the line.
    throw errorFor("it is not JSON");
  }
  const { data, error } = recordSchema.safeParse(json, SECRET_SCHEMA_WORDS);
  if (data !== undefined) return data;
  throw errorFor(error.issues.map(reasonOf).join("; "));
}

function reasonOf({ code, path, message }: z.core.$ZodIssue): string {
  // The name of an unknown field is part of the line.
  if (code === "unrecognized_keys") return "it has a field that no token has";
  return path.length === 0 ? "it is not a JSON object" : faultOf(String(path[0]), message);
}

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
  if (!isUtf8(bytes)) throw new TokensFileError(`the tokens file ${path} is not text in UTF-8`);
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
