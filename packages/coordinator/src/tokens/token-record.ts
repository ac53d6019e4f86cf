/**
 * What is kept of a token, and how it stands in a tokens file: one line of JSON each. A line that is wrong is told by its number and
 * what is wrong, never by what it holds: somebody may have pasted a token there. Pure.
 */
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { PRINTABLE_PATTERN } from "@callnumber/protocol/wire";
import { z } from "zod";
import { ROLES } from "../http/auth.js";
import { tokenIdOf } from "./token.js";
import { TokensFileError } from "./tokens-file-error.js";

/** Each request is compared with every one. */
export const TOKEN_COUNT_MAX = 1_000;
const NOTE_LENGTH_MAX = 128;

/** What an operator wrote beside a token: for whom it is. */
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

export type TokenRecord = z.infer<typeof recordSchema>;

/** A line of a tokens file, with its end. */
export function lineOf(record: TokenRecord): string {
  return `${JSON.stringify(record)}\n`;
}

/** The records of a tokens file's text. @throws TokensFileError that names the file, the line and what is wrong there. */
export function recordsIn(text: string, file: string): readonly TokenRecord[] {
  if (text === "") return [];
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length > TOKEN_COUNT_MAX) {
    throw new TokensFileError(`${file} holds ${lines.length} lines; at most ${TOKEN_COUNT_MAX} tokens are possible`);
  }
  const lineOfId = new Map<string, number>();
  return lines.map((line, index) => {
    const number = index + 1;
    const record = recordIn(line, (reason) => new TokensFileError(`${file}, line ${number}: ${reason}`));
    const earlier = lineOfId.get(record.id);
    if (earlier !== undefined)
      throw new TokensFileError(`${file}, line ${number}: line ${earlier} has the same id already`);
    lineOfId.set(record.id, number);
    return record;
  });
}

function recordIn(line: string, faultOf: (reason: string) => TokensFileError): TokenRecord {
  if (line.trim() === "") throw faultOf("it is empty");
  const result = recordSchema.safeParse(parsed(line, faultOf));
  if (result.success) return result.data;
  throw faultOf(result.error.issues.map(reasonOf).join("; "));
}

function parsed(line: string, faultOf: (reason: string) => TokensFileError): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The parser's own words quote the line.
    throw faultOf("it is no JSON");
  }
}

function reasonOf({ code, path, message }: z.core.$ZodIssue): string {
  // The name of an unknown field is part of the line.
  if (code === "unrecognized_keys") return "it has a field that no token has";
  return path.length === 0 ? "it is no JSON object" : `${path[0] as string}: ${message}`;
}
