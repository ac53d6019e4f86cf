/**
 * A maildir: which messages it has, and the bytes of one of them. Knows nothing of what a message contains.
 *
 * Mail programs rename messages at any time: flags are part of the file's name, and the first reading moves a message from
 * `new` to `cur`. So a message is identified by the unique part of its name, and is searched for again when it has moved.
 */
import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";

/** One message. Those in `tmp` are not delivered yet and are never read. */
export interface MaildirMessage {
  /** The file's name without its flags: stays the same for the life of the message. */
  readonly unique: string;
  /** Where it was seen last, relative to the maildir. */
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
  const found = await Promise.all(DIRECTORIES.map((name) => isDirectory(join(path, name))));
  return found.every(Boolean);
}

/** Lists the messages of a maildir in the order of their unique names, which usually is the order of delivery. */
export async function listMaildir(path: string): Promise<MaildirMessage[]> {
  const files: string[] = [];
  for (const name of DIRECTORIES) {
    for (const entry of await readdir(join(path, name), { withFileTypes: true })) {
      if (!entry.isDirectory() && !entry.name.startsWith(".")) files.push(join(name, entry.name));
    }
  }
  const messages: MaildirMessage[] = [];
  for (let start = 0; start < files.length; start += CONCURRENT_STATS_MAX) {
    const batch = files.slice(start, start + CONCURRENT_STATS_MAX);
    messages.push(...(await Promise.all(batch.map((file) => describeMessage(path, file)))));
  }
  return messages.sort((one, other) => (one.unique < other.unique ? -1 : one.unique > other.unique ? 1 : 0));
}

/** Lists the directories inside that are maildirs of their own (Maildir++): `.Sent`, `.Archive.2005`. */
export async function listSubfolders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory() && entry.name.startsWith(".")).map((entry) => entry.name);
  const found = await Promise.all(names.map((name) => isMaildir(join(path, name))));
  return names.filter((_, index) => found[index]).sort();
}

/**
 * Reads a message, wherever its flags have moved it since it was listed.
 * @throws the error of the file system, ENOENT when the message is gone, or an error when it is no file.
 */
export async function readMaildirMessage(path: string, message: MaildirMessage): Promise<Buffer> {
  try {
    return await readBytes(join(path, message.file));
  } catch (error) {
    if (!isMissing(error)) throw error;
    const file = await findAgain(path, message.unique);
    if (file === undefined) throw error;
    return await readBytes(join(path, file));
  }
}

async function readBytes(path: string): Promise<Buffer> {
  const file = await open(path, READ_NONBLOCKING);
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${path} is not a file`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function describeMessage(path: string, file: string): Promise<MaildirMessage> {
  try {
    return { unique: uniqueName(file), file, bytes: (await stat(join(path, file))).size };
  } catch (error) {
    if (!isMissing(error)) throw error;
    // It was renamed since it was listed, and is searched for again when it is read.
    return { unique: uniqueName(file), file, bytes: 0 };
  }
}

function uniqueName(file: string): string {
  return basename(file).replace(FLAGS, "");
}

async function findAgain(path: string, unique: string): Promise<string | undefined> {
  for (const name of DIRECTORIES) {
    const found = (await readdir(join(path, name))).find((file) => uniqueName(file) === unique);
    if (found !== undefined) return join(name, found);
  }
  return undefined;
}

async function isDirectory(path: string): Promise<boolean> {
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
