/**
 * A maildir: which messages it has, and the bytes of one of them. Knows nothing of what a message contains.
 *
 * Mail programs rename messages at any time: flags are part of the file's name, and the first reading moves a message from
 * `new` to `cur`. So a message is identified by the unique part of its name, and is searched for again when it has moved.
 */
import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename } from "node:path";
import { readAt } from "./file.js";
import { startsWithFrom } from "./line-reader.js";

/** One message. Those in `tmp` are not delivered yet and are never read. */
export interface MaildirMessage {
  /** The file's name without its flags: stays the same for the life of the message. Text for people, as `textOf` writes it. */
  readonly unique: string;
  /** Where it was seen last, relative to the maildir. A character for each byte (latin1): a name need not be UTF-8. */
  readonly file: string;
  readonly bytes: number;
}

/** `new` first: a message that is moved during the listing is then seen twice, which is harmless, and never missed. */
const DIRECTORIES = ["new", "cur"] as const;
/** Flags follow `:2,`, or another character where a file system forbids colons. */
const FLAGS = /[:;!][12],.*$/s;
const CONCURRENT_STATS_MAX = 64;
/** A pipe among the messages must not block the import until another program writes to it. Windows has no such flag. */
const READ_NONBLOCKING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

export async function isMaildir(path: string): Promise<boolean> {
  return await hasDirectories(path, "");
}

/** Lists the messages of a maildir in the order of their unique names, which usually is the order of delivery; without the known ones. */
export async function listMaildir(
  path: string,
  known: { has(unique: string): boolean } = new Set(),
): Promise<MaildirMessage[]> {
  const files: string[] = [];
  for (const name of DIRECTORIES) {
    for (const entry of await readdir(`${path}/${name}`, { withFileTypes: true, encoding: "buffer" })) {
      const file = `${name}/${entry.name.toString("latin1")}`;
      const isHidden = file[name.length + 1] === ".";
      if (!entry.isDirectory() && !isHidden && !known.has(uniqueName(file))) files.push(file);
    }
  }
  const messages: MaildirMessage[] = [];
  for (let start = 0; start < files.length; start += CONCURRENT_STATS_MAX) {
    const batch = files.slice(start, start + CONCURRENT_STATS_MAX);
    messages.push(...(await Promise.all(batch.map((file) => describeMessage(path, file)))));
  }
  return messages.sort((one, other) => (one.unique < other.unique ? -1 : one.unique > other.unique ? 1 : 0));
}

/** The name of a file that is one message: in MH, and as many programs save them. */
const LETTER = /^\d+$|\.eml$/i;

export function isLetter(path: string): boolean {
  return LETTER.test(basename(path));
}

/** Returns those files of a directory that are one message each. One of such a name may be an mbox: then it begins with a separator. */
export async function listLetters(path: string, names: readonly string[]): Promise<MaildirMessage[]> {
  const found: MaildirMessage[] = [];
  for (const unique of names.filter(isLetter).sort(byNumber)) {
    const file = Buffer.from(unique).toString("latin1");
    // What can't be read is reported when it is to be read.
    const stats = await stat(bytesOf(path, file)).catch(() => undefined);
    if (stats?.isFile() !== true) continue;
    if (!(await isSeparated(`${path}/${unique}`))) found.push({ unique, file, bytes: stats.size });
  }
  return found;
}

/** Whether a file begins with a separator, as an mbox does. */
export async function isSeparated(path: string): Promise<boolean> {
  const file = await open(path).catch(() => undefined);
  try {
    return file !== undefined && startsWithFrom(await readAt(file, 0, SEPARATOR_BYTES_MIN));
  } catch {
    return false;
  } finally {
    await file?.close();
  }
}

const byNumber = new Intl.Collator("en", { numeric: true }).compare;
const SEPARATOR_BYTES_MIN = 5;

/** Lists the directories inside that are maildirs of their own (Maildir++): `.Sent`, `.Archive.2005`. */
export async function listSubfolders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true, encoding: "buffer" });
  const directories = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name.toString("latin1"));
  const names = directories.filter((name) => name.startsWith("."));
  const found = await Promise.all(names.map((name) => hasDirectories(path, `${name}/`)));
  return names
    .filter((_, index) => found[index])
    .map(textOf)
    .sort();
}

/**
 * Reads a message, wherever its flags have moved it since it was listed.
 * @throws the error of the file system, ENOENT when the message is gone, or an error when it is not a file.
 */
export async function readMaildirMessage(path: string, message: MaildirMessage): Promise<Buffer> {
  try {
    return await readBytes(path, message.file);
  } catch (error) {
    if (!isMissing(error) || isInFolder(message)) throw error;
    const file = await findAgain(path, message.unique);
    if (file === undefined) throw error;
    return await readBytes(path, file);
  }
}

/** Whether it is from a directory that is no maildir. */
export function isInFolder({ file }: MaildirMessage): boolean {
  return !file.includes("/");
}

async function readBytes(path: string, file: string): Promise<Buffer> {
  const handle = await open(bytesOf(path, file), READ_NONBLOCKING);
  try {
    if (!(await handle.stat()).isFile()) throw new Error(`${path}/${textOf(file)} is not a file`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** The bytes of a path inside of the maildir, for the file system. */
function bytesOf(path: string, file: string): Buffer {
  return Buffer.concat([Buffer.from(`${path}/`), Buffer.from(file, "latin1")]);
}

/**
 * The text of a name that has a character for each byte. If it is not UTF-8, each byte that is not ASCII is written as
 * `\xff`, and a backslash as two: two such names never have one text.
 */
function textOf(name: string): string {
  const bytes = Buffer.from(name, "latin1");
  if (isUtf8(bytes)) return bytes.toString();
  return name.replace(/\\/g, "\\\\").replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}

async function describeMessage(path: string, file: string): Promise<MaildirMessage> {
  try {
    return { unique: uniqueName(file), file, bytes: (await stat(bytesOf(path, file))).size };
  } catch (error) {
    if (!isMissing(error)) throw error;
    // It was renamed since it was listed, and is searched for again when it is read.
    return { unique: uniqueName(file), file, bytes: 0 };
  }
}

function uniqueName(file: string): string {
  return textOf(file.slice(file.indexOf("/") + 1).replace(FLAGS, ""));
}

async function findAgain(path: string, unique: string): Promise<string | undefined> {
  for (const name of DIRECTORIES) {
    const files = (await readdir(`${path}/${name}`, { encoding: "buffer" })).map(
      (file) => `${name}/${file.toString("latin1")}`,
    );
    const found = files.find((file) => uniqueName(file) === unique);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function hasDirectories(path: string, inside: string): Promise<boolean> {
  const found = await Promise.all(DIRECTORIES.map((name) => isDirectory(bytesOf(path, `${inside}${name}`))));
  return found.every(Boolean);
}

async function isDirectory(path: Buffer): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ENOTDIR";
}
