/** Parses messages in threads of their own (mail-worker.ts), each within a time and a memory that no message can exceed. */
import { Piscina } from "piscina";
import type { Mail } from "./mail.js";

/** Far more than any message takes, because a machine may be busy with other work. */
const TIMEOUT_MS = 30_000;
const THREADS_MAX = 2;
const WAITING_MAX = 64;
const HEAP_MB_MAX = 192;

export class MailParser {
  readonly #pool: Piscina;

  constructor(archivePath: string) {
    this.#pool = new Piscina({
      filename: new URL("./mail-worker.js", import.meta.url).href,
      workerData: archivePath,
      minThreads: 1,
      maxThreads: THREADS_MAX,
      maxQueue: WAITING_MAX,
      idleTimeout: 10_000,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    });
  }

  /** Resolves to the message, or to why it can't be shown. */
  async show(callNumber: string): Promise<Mail | string> {
    try {
      const mail = (await this.#run("show", callNumber)) as Mail | null;
      return mail ?? "This message is too large to be shown. Its raw form has all of it.";
    } catch {
      return "The text of this message can't be shown: it takes too long to read, or it can't be read at all.";
    }
  }

  /** Resolves to undefined when there is none. */
  async attachment(callNumber: string, index: number): Promise<{ name: string; content: Uint8Array } | undefined> {
    return (await this.#run("attachment", { callNumber, index })) as { name: string; content: Uint8Array } | undefined;
  }

  /** Resolves to the beginning of the text; to nothing where it can't be read. */
  async indexedText(callNumber: string): Promise<string> {
    return await (this.#run("indexedText", callNumber) as Promise<string>).catch(() => "");
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  /** What takes longer is ended with its thread; the next call gets another one. */
  #run(name: string, task: unknown): Promise<unknown> {
    return this.#pool.run(task, { name, signal: AbortSignal.timeout(TIMEOUT_MS) });
  }
}
