/**
 * The thread that parses messages for the server: hostile mail may take time and memory here, and is ended then, while pages are served. It
 * reads the archive itself, so that no message waits in the memory of the server.
 */
import { parentPort, workerData } from "node:worker_threads";
import { ArchiveReader } from "./archive-reader.js";
import { type Mail, MESSAGE_BYTES_MAX, readAttachment, readMail } from "./mail.js";

/** Beginnings suffice to find a message. */
const INDEXED_BYTES_MAX = 1024 * 1024;
const INDEXED_LENGTH_MAX = 32 * 1024;

const archive = new ArchiveReader(workerData as string);

const TASKS = {
  /** Resolves to null for a message that is too large. */
  async show(callNumber: string): Promise<Mail | null> {
    return archive.byteCount(callNumber) > MESSAGE_BYTES_MAX ? null : await readMail(archive.raw(callNumber));
  },

  async attachment({ callNumber, index }: { readonly callNumber: string; readonly index: number }) {
    if (archive.byteCount(callNumber) > MESSAGE_BYTES_MAX) return undefined;
    return await readAttachment(archive.raw(callNumber), index);
  },

  async indexedText(callNumber: string): Promise<string> {
    return (await readMail(archive.raw(callNumber, 0, INDEXED_BYTES_MAX))).text.slice(0, INDEXED_LENGTH_MAX);
  },
};
export type MailTasks = typeof TASKS;

parentPort?.on("message", async ({ name, given }: { readonly name: keyof MailTasks; readonly given: never }) => {
  try {
    parentPort?.postMessage({ value: await TASKS[name](given) });
  } catch (error) {
    parentPort?.postMessage({ error });
  }
});
