/** Parses messages in threads of their own (mail-worker.ts), each within a time and a memory that no message can exceed. */
import { Worker } from "node:worker_threads";
import type { Mail } from "./mail.js";
import type { MailTasks } from "./mail-worker.js";

/** Far more than any message takes, because a machine may be busy with other work. */
const TIMEOUT_MS = 10_000;
/** Messages that have ended a thread, and are not read again. */
const UNREADABLE_MAX = 10_000;
const THREADS_MAX = 2;
const WAITING_MAX = 64;
const HEAP_MB_MAX = 192;

interface Task {
  readonly name: keyof MailTasks;
  readonly callNumber: string;
  readonly given: unknown;
  resolve(value: never): void;
  reject(error: Error): void;
}

interface Thread {
  readonly worker: Worker;
  task: Task | undefined;
  timer: NodeJS.Timeout | undefined;
}

export class MailParser {
  readonly #archivePath: string;
  readonly #threads = new Set<Thread>();
  readonly #waiting: Task[] = [];
  readonly #unreadable = new Set<string>();
  #isClosed = false;

  constructor(archivePath: string) {
    this.#archivePath = archivePath;
  }

  /** Resolves to the message, or to why it can't be shown. */
  async show(callNumber: string): Promise<Mail | string> {
    try {
      const mail = await this.#run("show", callNumber);
      return mail ?? "This message is too large to be shown. Its raw form has all of it.";
    } catch {
      return "The text of this message can't be shown: it takes too long to read, or it can't be read at all.";
    }
  }

  /** Resolves to undefined when there is none. */
  async attachment(callNumber: string, index: number): Promise<{ name: string; content: Uint8Array } | undefined> {
    return await this.#run("attachment", { callNumber, index });
  }

  /** Resolves to the beginning of the text; to nothing where it can't be read. */
  async indexedText(callNumber: string): Promise<string> {
    return await this.#run("indexedText", callNumber).catch(() => "");
  }

  /** Ends the threads; what they were doing is rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const task of this.#waiting.splice(0)) task.reject(new Error("the server was stopped"));
    await Promise.all([...this.#threads].map(({ worker }) => worker.terminate()));
  }

  #run<Name extends keyof MailTasks>(
    name: Name,
    given: Parameters<MailTasks[Name]>[0],
  ): Promise<Awaited<ReturnType<MailTasks[Name]>>> {
    const callNumber = typeof given === "string" ? given : given.callNumber;
    return new Promise((resolve, reject) => {
      if (this.#unreadable.has(callNumber)) reject(new Error("it has ended a thread before"));
      else if (this.#waiting.length >= WAITING_MAX) reject(new Error("too many messages wait to be read"));
      else this.#waiting.push({ name, callNumber, given, resolve, reject });
      this.#next();
    });
  }

  /** Gives the next task to a thread that has none. A message is read by one thread at a time: one that takes long leaves the others free. */
  #next(): void {
    const read = new Set([...this.#threads].map(({ task: current }) => current?.callNumber));
    const at = this.#waiting.findIndex(({ callNumber }) => !read.has(callNumber));
    const task = this.#waiting[at];
    const idle = [...this.#threads].find((thread) => thread.task === undefined);
    const thread = idle ?? (this.#threads.size < THREADS_MAX && task !== undefined ? this.#start() : undefined);
    if (task === undefined || thread === undefined) return;
    this.#waiting.splice(at, 1);
    thread.task = task;
    // Its end rejects the task, and the next one gets another thread.
    thread.timer = setTimeout(() => void thread.worker.terminate(), TIMEOUT_MS);
    thread.worker.ref();
    thread.worker.postMessage({ name: task.name, given: task.given });
  }

  /** It has ended a thread. Tasks that wait for the same message are rejected, too. */
  #refuse(callNumber: string): void {
    if (this.#unreadable.size >= UNREADABLE_MAX) this.#unreadable.clear();
    this.#unreadable.add(callNumber);
    for (const task of this.#waiting.filter((each) => each.callNumber === callNumber)) {
      this.#waiting.splice(this.#waiting.indexOf(task), 1);
      task.reject(new Error("it has ended a thread before"));
    }
  }

  #start(): Thread {
    const worker = new Worker(new URL("./mail-worker.js", import.meta.url), {
      workerData: this.#archivePath,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    });
    const thread: Thread = { worker, task: undefined, timer: undefined };
    const finish = (settle: (task: Task) => void) => {
      const { task } = thread;
      clearTimeout(thread.timer);
      thread.task = undefined;
      if (task !== undefined) settle(task);
      this.#next();
    };
    worker.on("message", ({ value, error }: { value: never; error?: Error }) => {
      worker.unref();
      finish((task) => (error === undefined ? task.resolve(value) : task.reject(error)));
    });
    let failure: Error | undefined;
    worker.on("error", (error) => {
      failure = error;
    });
    worker.on("exit", () => {
      this.#threads.delete(thread);
      if (thread.task !== undefined && !this.#isClosed) this.#refuse(thread.task.callNumber);
      finish((task) => task.reject(failure ?? new Error("the thread was ended")));
    });
    this.#threads.add(thread);
    return thread;
  }
}
