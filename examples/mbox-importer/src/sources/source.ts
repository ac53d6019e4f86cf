/**
 * A source of messages: an mbox or a maildir. To import something else, replace the files of this directory: yield
 * ranges of positions, and give each message a key that stays the same when it is imported again.
 */
import { realpath, stat } from "node:fs/promises";
import { ImporterError } from "../errors.js";
import { isMaildir, listMaildir, listSubfolders, type MaildirMessage } from "./maildir.js";
import type { MboxPart } from "./mbox.js";

/** `path` is absolute and without links: the same file has one name, from wherever it is imported. */
export type MailSource =
  | { readonly kind: "mbox"; readonly path: string; readonly bytes: number }
  | {
      readonly kind: "maildir";
      readonly path: string;
      readonly bytes: number;
      readonly messages: readonly MaildirMessage[];
      /** Directories inside that are maildirs of their own. They are not imported with it. */
      readonly subfolders: readonly string[];
    };

interface Numbered {
  /** Position in its source, from 1; 0 for text before the first separator. */
  readonly number: number;
  readonly bytes: number;
}

export type MboxItem = MboxPart & Numbered;
export type MaildirItem = MaildirMessage & Numbered;

/** Whole messages of one source, as positions: small enough for a message between processes and for one transaction. */
export type Range = { readonly path: string; readonly bytes: number } & (
  | { readonly kind: "mbox"; readonly items: readonly MboxItem[] }
  | { readonly kind: "maildir"; readonly items: readonly MaildirItem[] }
);

/** A part of a source that has no row in the archive, or a row with a remark. The summary lists it. */
export interface Problem {
  readonly source: string;
  readonly number: number;
  readonly byteOffset: number;
  readonly reason: string;
  readonly stored: boolean;
}

/** Resolves a path of the command line. @throws ImporterError `source_unusable` with what it is instead of a source. */
export async function openMailSource(given: string): Promise<MailSource> {
  let path: string;
  try {
    path = await realpath(given);
  } catch (error) {
    const message = `${given} can't be opened: ${(error as Error).message}. Check the path and its permissions.`;
    throw new ImporterError("source_unusable", message, { cause: error });
  }
  const stats = await stat(path);
  if (stats.isFile()) return { kind: "mbox", path, bytes: stats.size };
  if (!stats.isDirectory()) {
    const message = `${given} is neither a file nor a directory. Write a stream into a file first.`;
    throw new ImporterError("source_unusable", message);
  }
  if (!(await isMaildir(path))) {
    const message = `${given} is a directory but not a maildir: cur/ or new/ is missing. Pass the maildir or mbox files inside.`;
    throw new ImporterError("source_unusable", message);
  }
  const [messages, subfolders] = await Promise.all([listMaildir(path), listSubfolders(path)]);
  const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
  return { kind: "maildir", path, bytes, messages, subfolders };
}
