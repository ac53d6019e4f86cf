/**
 * A token is 256 random bits with a prefix that people and secret scanners know. Only its SHA-256 is kept: so many random bits can't
 * be guessed from it, and need no slow hash. A tokens file has a record for each, one line of JSON. An error gives the line's number and
 * the reason, never its text, which may be a token that was pasted.
 */
import { createHash, randomBytes } from "node:crypto";
import { PRINTABLE_PATTERN } from "@callnumber/protocol/api";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import * as z from "zod";
import { ROLES } from "../http/auth.js";

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

/** Parses the text of a tokens file. @throws TokensFileError with the file, the line and the reason. */
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
    throw errorFor("it is no JSON");
  }
  const { data, error } = recordSchema.safeParse(json);
  if (data !== undefined) return data;
  throw errorFor(error.issues.map(reasonOf).join("; "));
}

function reasonOf({ code, path, message }: z.core.$ZodIssue): string {
  // The name of an unknown field is part of the line.
  if (code === "unrecognized_keys") return "it has a field that no token has";
  return path.length === 0 ? "it is no JSON object" : `${path[0] as string}: ${message}`;
}
