/**
 * The worker processes: each gets the next range when it has finished the last one. So at most one range per worker is in
 * flight, however large the sources are. A worker is started only when there is a range for it.
 *
 * When one fails or dies, the others finish their current transaction and end.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type ErrorDetails, ImporterError } from "../errors.js";
import type { Range } from "../sources/source.js";
import type { RangeResult } from "./range-importer.js";
import type { FromWorker, ToWorker, WorkerSettings } from "./worker.js";

export interface WorkerPoolListener {
  onStarted(workerNumber: number, pid: number | undefined): void;
  onImported(range: Range, result: RangeResult): void;
  onWaiting(workerNumber: number, reason: string): void;
}

export class WorkerPool {
  readonly #size: number;
  readonly #settings: WorkerSettings;
  readonly #listener: WorkerPoolListener;
  readonly #workers: WorkerProcess[] = [];
  #isStopping = false;
  #failure: unknown;

  constructor(size: number, settings: WorkerSettings, listener: WorkerPoolListener) {
    this.#size = size;
    this.#settings = settings;
    this.#listener = listener;
  }

  /** How many workers there was work for. */
  get startedCount(): number {
    return this.#workers.length;
  }

  get runsLeased(): number {
    return this.#workers.reduce((sum, { runsLeased }) => sum + runsLeased, 0);
  }

  /**
   * Imports all ranges. Resolves when every worker has ended, also after `stop`.
   * @throws the first failure of a worker.
   */
  async run(ranges: AsyncGenerator<Range, void>): Promise<void> {
    await Promise.all(Array.from({ length: this.#size }, (_, index) => this.#importWith(index + 1, ranges)));
    await ranges.return();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Ends every worker after its current transaction. */
  stop(): void {
    this.#isStopping = true;
    for (const worker of this.#workers) worker.stop();
  }

  async #importWith(workerNumber: number, ranges: AsyncGenerator<Range, void>): Promise<void> {
    let worker: WorkerProcess | undefined;
    try {
      while (!this.#isStopping) {
        const next = await ranges.next();
        if (next.done === true || this.#isStopping) break;
        worker ??= this.#start(workerNumber);
        this.#listener.onImported(next.value, await worker.import(next.value));
      }
    } catch (error) {
      this.#handleFailure(error);
    }
    worker?.stop();
    await worker?.ended;
  }

  #start(workerNumber: number): WorkerProcess {
    const worker = new WorkerProcess(workerNumber, this.#settings, (reason) =>
      this.#listener.onWaiting(workerNumber, reason),
    );
    this.#workers.push(worker);
    this.#listener.onStarted(workerNumber, worker.pid);
    return worker;
  }

  /** A worker that was told to stop gives up a range that waits for numbers: no failure, the next import stores it. */
  #handleFailure(error: unknown): void {
    if (this.#isStopping && error instanceof ImporterError && error.code === STOPPED.code) return;
    this.#failure ??= error;
    this.stop();
  }
}

const WORKER_PROGRAM = fileURLToPath(new URL("./worker.js", import.meta.url));
const RETRY = "Run the same command again: it continues where it stopped.";
const STOPPED: ErrorDetails = { code: "client_closed", message: `The process was stopped. ${RETRY}` };

/** A worker as its parent sees it. */
class WorkerProcess {
  runsLeased = 0;
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<void>;

  readonly #number: number;
  readonly #child: ChildProcess;
  /** The range in flight. */
  #pending: { resolve(result: RangeResult): void; reject(error: ImporterError): void } | undefined;
  #failure: ImporterError | undefined;
  #isStopping = false;

  constructor(number: number, settings: WorkerSettings, onWaiting: (reason: string) => void) {
    this.#number = number;
    // A date without a zone is UTC, on every machine.
    const env = { ...process.env, TZ: "UTC" };
    this.#child = fork(WORKER_PROGRAM, [], { stdio: ["ignore", "ignore", "inherit", "ipc"], env });
    this.#child.on("message", (message: FromWorker) => {
      if (message.type === "imported") this.#pending?.resolve(message.result);
      else if (message.type === "leased") this.runsLeased += message.runCount;
      else if (message.type === "failed") this.#fail(message.error);
      else if (message.type === "waiting") onWaiting(message.reason);
    });
    this.ended = new Promise((resolve) => {
      this.#child.on("error", (error) => {
        this.#fail(this.#death(error.message));
        // A process that could not be started has no exit.
        if (this.pid === undefined) resolve();
      });
      this.#child.once("exit", (code, signal) => {
        // Also after a stop: a range that was sent gets no result any more.
        const hasStopped = this.#isStopping && code === 0;
        const how = signal === null ? `with status ${code}` : `by ${signal}`;
        this.#fail(hasStopped ? STOPPED : this.#death(how));
        resolve();
      });
    });
    this.#send({ type: "start", workerNumber: number, settings });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws ImporterError the failure of the worker, or `worker_died`. */
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
    const message = `Process ${this.#number} (pid ${this.pid}) ended ${how} before it had finished. ${RETRY}`;
    return { code: "worker_died", message };
  }

  #fail({ code, message }: ErrorDetails): void {
    this.#failure ??= new ImporterError(code, message);
    this.#pending?.reject(this.#failure);
  }

  #send(message: ToWorker): void {
    // The exit of a process that has just died is reported by its event.
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
