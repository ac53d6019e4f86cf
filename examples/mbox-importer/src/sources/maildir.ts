/**
 * A maildir: which messages it holds, and the bytes of one of them. Knows nothing of what a message holds.
 *
 * Mail programs rename messages at any time: flags are part of the file's name, and the first look moves a message from
 * `new` to `cur`. So a message is known by the unique part of its name, and is looked for again when it has moved.
 */
import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { READ_WITHOUT_WAITING } from "../read-flags.js";

/** One message: in `tmp` messages are not yet delivered, so it is never looked at. */
export interface MaildirMessage {
  /** The file's name without its flags: stays the same for the life of the message. */
  readonly unique: string;
  /** Where it was seen last, relative to the maildir. */
  readonly file: string;
  readonly bytes: number;
}

/** `new` first: a message that is moved in between is then seen twice, which is harmless, and never missed. */
const FOLDERS = ["new", "cur"] as const;
/** Flags follow `:2,`, or another sign where a file system forbids colons. */
const FLAGS = /[:;!][12],.*$/s;
const STAT_COUNT_AT_ONCE = 64;

export async function isMaildir(folder: string): Promise<boolean> {
  const found = await Promise.all(FOLDERS.map((name) => isFolder(join(folder, name))));
  return found.every(Boolean);
}

/** The messages of a maildir in the order of their unique names, which usually is the order of delivery. */
export async function listMaildir(folder: string): Promise<MaildirMessage[]> {
  const files: string[] = [];
  for (const name of FOLDERS) {
    for (const entry of await readdir(join(folder, name), { withFileTypes: true })) {
      if (!entry.isDirectory() && !entry.name.startsWith(".")) files.push(join(name, entry.name));
    }
  }
  const messages: MaildirMessage[] = [];
  for (let start = 0; start < files.length; start += STAT_COUNT_AT_ONCE) {
    const batch = files.slice(start, start + STAT_COUNT_AT_ONCE);
    messages.push(...(await Promise.all(batch.map((file) => seen(folder, file)))));
  }
  return messages.sort((one, other) => (one.unique < other.unique ? -1 : one.unique > other.unique ? 1 : 0));
}

/** Names of folders inside that are maildirs of their own (Maildir++): `.Sent`, `.Archive.2005`. */
export async function listSubfolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory() && entry.name.startsWith(".")).map((entry) => entry.name);
  const found = await Promise.all(names.map((name) => isMaildir(join(folder, name))));
  return names.filter((_, index) => found[index]).sort();
}

/**
 * The bytes of a message, wherever its flags have moved it since it was listed.
 * @throws the error of the file system; ENOENT when the message is gone. Or that it is no file: what else has such a name is not read.
 */
export async function readMaildirMessage(folder: string, message: MaildirMessage): Promise<Buffer> {
  try {
    return await bytesOf(join(folder, message.file));
  } catch (error) {
    if (!isMissing(error)) throw error;
    const file = await findAgain(folder, message.unique);
    if (file === undefined) throw error;
    return await bytesOf(join(folder, file));
  }
}

async function bytesOf(path: string): Promise<Buffer> {
  const file = await open(path, READ_WITHOUT_WAITING);
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${path} is no file`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function seen(folder: string, file: string): Promise<MaildirMessage> {
  return { unique: uniqueOf(file), file, bytes: await sizeOf(join(folder, file)) };
}

function uniqueOf(file: string): string {
  return basename(file).replace(FLAGS, "");
}

/** A message that was renamed since it was listed counts as 0 bytes: it is looked for again when it is read. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

async function findAgain(folder: string, unique: string): Promise<string | undefined> {
  for (const name of FOLDERS) {
    const found = (await readdir(join(folder, name))).find((file) => uniqueOf(file) === unique);
    if (found !== undefined) return join(name, found);
  }
  return undefined;
}

async function isFolder(path: string): Promise<boolean> {
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
