/**
 * The workers: each gets the next range when it has finished the last one. So at most one range per worker is in flight, however large the
 * sources are. A worker is started only when there is a range for it. A single one is this process; more are processes of their own.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ArchiveError, type ErrorDetails, errorDetails } from "../errors.js";
import type { Range } from "../sources/source.js";
import type { WorkerSettings } from "./client-options.js";
import type { RangeResult } from "./range-importer.js";
import { RangeWorker } from "./range-worker.js";

/** Has a `WorkerStart` as JSON: in the environment, because it may have a token, which the arguments would show to every user. */
export const START_VARIABLE = "CALLNUMBER_ARCHIVE_WORKER";

export interface WorkerStart {
  readonly workerNumber: number;
  readonly settings: WorkerSettings;
}

/** Messages between parent and worker: positions, counts and texts, never the bytes of a message. */
export type ToWorker = { readonly type: "import"; readonly range: Range } | { readonly type: "stop" };

export type FromWorker =
  | { readonly type: "imported"; readonly result: RangeResult }
  | { readonly type: "failed"; readonly error: ErrorDetails }
  | { readonly type: "leased"; readonly runCount: number }
  | { readonly type: "note"; readonly text: string };

export interface WorkerListener {
  onStarted(workerNumber: number, pid: number | undefined): void;
  onLeased(runCount: number): void;
  onImported(range: Range, result: RangeResult): void;
  onNote(workerNumber: number, text: string): void;
}

/**
 * Imports all ranges with up to `processCount` workers. `rangesUntil` yields them until its signal is aborted. Resolves when every worker has ended. When `signal` is aborted or a
 * worker fails or dies, the others finish their current transaction and end.
 * @throws the first failure of a worker.
 */
export async function importWithWorkers(
  rangesUntil: (signal: AbortSignal) => AsyncGenerator<Range, void>,
  processCount: number,
  settings: WorkerSettings,
  listener: WorkerListener,
  signal: AbortSignal,
): Promise<void> {
  const workers: Worker[] = [];
  const failing = new AbortController();
  const stopping = AbortSignal.any([signal, failing.signal]);
  const ranges = rangesUntil(stopping);
  stopping.addEventListener("abort", () => {
    for (const worker of workers) worker.stop();
  });
  const importWith = async (workerNumber: number) => {
    let worker: Worker | undefined;
    try {
      while (!stopping.aborted) {
        const next = await ranges.next();
        if (next.done === true || stopping.aborted) break;
        if (worker === undefined) {
          const start = { workerNumber, settings };
          worker = processCount === 1 ? localWorker(start, listener) : new WorkerProcess(start, listener);
          workers.push(worker);
        }
        listener.onImported(next.value, await worker.import(next.value));
      }
    } catch (error) {
      // A stopped worker gives up a range that waits for numbers: no failure, the next import stores it.
      const isGivenUp = stopping.aborted && errorDetails(error).code === STOPPED.code;
      if (!isGivenUp) failing.abort(error);
    }
    worker?.stop();
    await worker?.ended;
  };
  await Promise.all(Array.from({ length: processCount }, (_, index) => importWith(index + 1)));
  await ranges.return();
  failing.signal.throwIfAborted();
}

const WORKER_PROGRAM = fileURLToPath(new URL("./worker.js", import.meta.url));
const RETRY = "Run the same command again: it continues where it stopped.";
const STOPPED: ErrorDetails = { code: "client_closed", message: `The process was stopped. ${RETRY}` };

/** A signal for every process, as Ctrl-C, may reach this one after it has ended a worker. */
const SIGNAL_GRACE_MS = 100;

interface Worker {
  import(range: Range): Promise<RangeResult>;
  stop(): void;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<void>;
}

/** A worker in this process. */
function localWorker({ workerNumber, settings }: WorkerStart, listener: WorkerListener): Worker {
  listener.onStarted(workerNumber, process.pid);
  const worker = new RangeWorker(settings, workerNumber, {
    onLeased: listener.onLeased,
    onNote: (text) => listener.onNote(workerNumber, text),
  });
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { import: (range) => worker.import(range), stop: () => void worker.close().then(end, end), ended };
}

/** A worker in a process of its own, as its parent sees it. */
class WorkerProcess implements Worker {
  readonly ended: Promise<void>;

  readonly #number: number;
  readonly #child: ChildProcess;
  /** The range in flight. */
  #pending: { resolve(result: RangeResult): void; reject(error: ArchiveError): void } | undefined;
  #failure: ArchiveError | undefined;
  #isStopping = false;

  constructor(start: WorkerStart, listener: WorkerListener) {
    this.#number = start.workerNumber;
    const env = { ...process.env, [START_VARIABLE]: JSON.stringify(start) };
    this.#child = fork(WORKER_PROGRAM, [], { stdio: ["inherit", "ignore", "inherit", "ipc"], env });
    listener.onStarted(this.#number, this.#child.pid);
    this.#child.on("message", (message: FromWorker) => {
      if (message.type === "imported") this.#pending?.resolve(message.result);
      else if (message.type === "failed") this.#fail(message.error);
      else if (message.type === "leased") listener.onLeased(message.runCount);
      else listener.onNote(this.#number, message.text);
    });
    this.ended = new Promise((resolve) => {
      this.#child.on("error", (error) => {
        this.#fail(this.#death(error.message));
        // A process that could not be started has no exit.
        if (this.#child.pid === undefined) resolve();
      });
      this.#child.once("exit", (code, signal) => {
        const end = () => {
          // Also after a stop: a range that was sent gets no result any more. A worker that is not loaded yet has stored
          // nothing, and ends by the signal itself.
          const hasStopped = this.#isStopping && (code === 0 || signal === "SIGINT" || signal === "SIGTERM");
          const how = signal === null ? `with status ${code}` : `by ${signal}`;
          this.#fail(hasStopped ? STOPPED : this.#death(how));
          resolve();
        };
        setTimeout(end, signal === null ? 0 : SIGNAL_GRACE_MS);
      });
    });
  }

  /** @throws ArchiveError the failure of the worker, or `worker_died`. */
  import(range: Range): Promise<RangeResult> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#send({ type: "import", range });
    });
  }

  stop(): void {
    this.#isStopping = true;
    this.#send({ type: "stop" });
  }

  #death(how: string): ErrorDetails {
    const message = `Process ${this.#number} (pid ${this.#child.pid}) ended ${how} before it had finished. ${RETRY}`;
    return { code: "worker_died", message };
  }

  #fail({ code, message }: ErrorDetails): void {
    this.#failure ??= new ArchiveError(code, message);
    this.#pending?.reject(this.#failure);
  }

  #send(message: ToWorker): void {
    // The exit of a process that has just died is reported by its event.
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
