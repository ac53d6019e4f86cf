/**
 * What a path on the command line is: an mbox or a maildir. Decided before anything is numbered.
 */
import { realpath, stat } from "node:fs/promises";
import { ImporterError } from "../errors.js";
import { isMaildir, listMaildir, listSubfolders, type MaildirMessage } from "./maildir.js";

/** `path` is absolute and without links: the same file has one name, from wherever it is imported. */
export type MailSource =
  | { readonly kind: "mbox"; readonly path: string; readonly bytes: number }
  | {
      readonly kind: "maildir";
      readonly path: string;
      readonly bytes: number;
      readonly messages: readonly MaildirMessage[];
      /** Folders inside that are maildirs of their own. They are not imported with it. */
      readonly subfolders: readonly string[];
    };

/** @throws ImporterError `source_unusable` when the path is neither an mbox nor a maildir, with what it is instead. */
export async function openMailSource(given: string): Promise<MailSource> {
  const path = await resolved(given);
  const found = await stat(path);
  if (found.isFile()) return { kind: "mbox", path, bytes: found.size };
  if (!found.isDirectory()) {
    throw unusable(
      `${given} is neither a file nor a folder`,
      "Give an mbox file (write a stream into a file first) or a maildir.",
    );
  }
  if (!(await isMaildir(path))) {
    throw unusable(
      `${given} is a folder, but no maildir: it has not both cur/ and new/ inside`,
      "Give the maildir itself, or the mbox files inside the folder one by one.",
    );
  }
  const [messages, subfolders] = await Promise.all([listMaildir(path), listSubfolders(path)]);
  const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
  return { kind: "maildir", path, bytes, messages, subfolders };
}

async function resolved(given: string): Promise<string> {
  try {
    return await realpath(given);
  } catch (error) {
    throw unusable(
      `${given} can't be opened: ${(error as Error).message}`,
      "Check the path and its permissions.",
      error,
    );
  }
}

function unusable(message: string, remedy: string, cause?: unknown): ImporterError {
  return new ImporterError("source_unusable", message, remedy, { cause });
}
