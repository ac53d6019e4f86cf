/**
 * The file of numbers: which message has which number, one JSON object a line, so that numbers survive the archive's file. The first line
 * says where the numbers come from. Only ever appended to; a line that a crash cut short is left out when the file is read.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { isCallNumber } from "@callnumber/protocol/codec";
import * as z from "zod";
import { fileAt } from "../archive/archive-file.js";
import { ArchiveError } from "../errors.js";
import type { Identity } from "../message/sameness.js";

/** Where the call numbers of an archive come from. It never changes. */
export interface Origin {
  readonly storeId: string;
  readonly namespace: string;
}

/** A digest in the file: the first bytes of a SHA-256. A chance collision would take more messages than there are numbers. */
const SHORT_DIGEST_BYTES = 16;

export function shortDigest(digest: Buffer): Buffer {
  return digest.subarray(0, SHORT_DIGEST_BYTES);
}

const digest = z.string().regex(/^[\w-]{22}$/);
const headerSchema = z.object({
  format: z.literal("callnumber-numbers"),
  version: z.literal(1),
  storeId: z.string(),
  namespace: z.string(),
});
const entrySchema = z.object({
  number: z.string().refine((text): boolean => isCallNumber(text)),
  /** Of the bytes, in base64url. */
  bytes: digest,
  /** Without what stores and readers add; left out where it is the same. */
  message: digest.optional(),
  body: digest,
  id: z.string().optional(),
  list: z.string().optional(),
  isListGiven: z.literal(true).optional(),
  /** Links that the message had in other archives. */
  old: z.array(z.string()).optional(),
});
export type NumbersEntry = z.infer<typeof entrySchema>;

export function headerLine({ storeId, namespace }: Origin): string {
  return `${HEADER_BEGIN},"storeId":${JSON.stringify(storeId)},"namespace":${JSON.stringify(namespace)}}\n`;
}

const HEADER_BEGIN = '{"format":"callnumber-numbers","version":1';
const HEADER_BYTES_MAX = 1024;

/** What a file of numbers was when it was read or written last. */
export interface NumbersState {
  readonly file: string | undefined;
  readonly size: number;
}

export function numbersStateOf(path: string): NumbersState | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && { file: fileAt(path), size: found.size };
}

/** Whether what was in the file is still there, as far as its size shows: no program has moved, exchanged, emptied or cut it. */
export function hasOnlyGrown(path: string, before: NumbersState | undefined): boolean {
  const now = numbersStateOf(path);
  return now !== undefined && (before === undefined || (now.file === before.file && now.size >= before.size));
}

/** Empties a file that has nothing but a part of its first line: a crash, or a full disk, has cut it short. */
export function removeTornHeader(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 || size > HEADER_BYTES_MAX) return;
  const text = readFileSync(path, "utf8");
  const isHeader = text.startsWith(HEADER_BEGIN) || HEADER_BEGIN.startsWith(text);
  if (isHeader && !text.includes("\n")) truncateSync(path);
}

export function entryLine(
  callNumber: string,
  message: Omit<Identity, "fromLine">,
  links: readonly string[] = [],
): string {
  const [bytes, whole, body] = [message.contentHash, message.messageHash, message.bodyHash].map((hash) =>
    shortDigest(hash).toString("base64url"),
  ) as [string, string, string];
  const entry: NumbersEntry = {
    number: callNumber,
    bytes,
    message: whole === bytes ? undefined : whole,
    body,
    id: message.messageId ?? undefined,
    list: message.list ?? undefined,
    isListGiven: message.isListGiven && message.list !== null ? true : undefined,
    old: links.length === 0 ? undefined : [...links],
  };
  return `${JSON.stringify(entry)}\n`;
}

/**
 * Appends lines, on the disk when it returns. Behind a line that was cut short it begins a new one; a new file begins with its header.
 * @throws ArchiveError `numbers_unusable`; a part of the lines may be in the file then, which is harmless.
 */
export function appendLines(path: string, origin: Origin, lines: readonly string[]): void {
  orUnwritable(path, () => append(path, origin, lines));
}

/** @throws ArchiveError `numbers_unusable` when the file, or the directory of a new one, can't be written. */
export function assertWritable(path: string): void {
  orUnwritable(path, () => accessSync(existsSync(path) ? path : dirname(path), constants.W_OK));
}

function orUnwritable(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    const action = "Free disk space, or check path and permissions, then run the same command again.";
    const message = `The file of numbers ${path} can't be written: ${(error as Error).message}. ${action}`;
    throw new ArchiveError("numbers_unusable", message, { cause: error });
  }
}

function append(path: string, origin: Origin, lines: readonly string[]): void {
  const isNew = !existsSync(path);
  const file = openSync(path, "a+", 0o600);
  try {
    const { size } = fstatSync(file);
    const last = Buffer.alloc(1);
    if (size > 0) readSync(file, last, 0, 1, size - 1);
    const begin = size === 0 ? headerLine(origin) : last[0] === NEWLINE ? "" : "\n";
    const bytes = Buffer.from(begin + lines.join(""));
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
  if (isNew) syncDirectory(dirname(path));
}

/** So that a new file keeps its name when the machine fails. Windows has no such call. */
function syncDirectory(path: string): void {
  if (process.platform === "win32") return;
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

const NEWLINE = 0x0a;
/** A longer line is none of ours: a Message-ID is a header line of 512 KiB at the most. */
const LINE_LENGTH_MAX = 4 * 1024 * 1024;

/** A line of the file: what it says, or why it can't be used. */
export type NumbersLine = { readonly lineNumber: number } & (
  | { readonly header: Origin }
  | { readonly entry: NumbersEntry }
  | { readonly problem: string }
);

/** Yields the lines of the file that are not blank. @throws the error of the file system. */
export async function* readNumbersFile(path: string): AsyncGenerator<NumbersLine, void> {
  const file = await open(path);
  try {
    let lineNumber = 0;
    for await (const line of file.readLines()) {
      lineNumber++;
      if (line !== "") yield { lineNumber, ...parsedLine(line) };
    }
  } finally {
    await file.close();
  }
}

function parsedLine(line: string): { header: Origin } | { entry: NumbersEntry } | { problem: string } {
  let value: unknown;
  try {
    if (line.length <= LINE_LENGTH_MAX) value = JSON.parse(line);
  } catch {
    return { problem: "it is cut or damaged" };
  }
  const header = headerSchema.safeParse(value);
  if (header.success) return { header: header.data };
  const entry = entrySchema.safeParse(value);
  if (entry.success) return { entry: entry.data };
  return { problem: "it is not an entry of a file of numbers" };
}
