/**
 * One importing process as its parent sees it: hands it a range, waits for the answer, notices its death.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { errorFromFacts, ImporterError } from "../errors.js";
import type { Range } from "../sources/range.js";
import type { FromProcess, ProcessSettings, RunCounts, ToProcess } from "./process-messages.js";
import type { RangeResult } from "./range-importer.js";

const ENTRY = fileURLToPath(new URL("../../bin/importing-process.js", import.meta.url));

export interface ChildListener {
  /** The process waits for the coordinator. */
  onWaiting(reason: string): void;
}

export class ImportingChild {
  /** Since the process began, as it said last. */
  runs: RunCounts = { leased: 0, used: 0 };
  /** Settled when the process has ended, however it did. */
  readonly ended: Promise<void>;

  readonly #child: ChildProcess;
  readonly #number: number;
  #answer:
    | { readonly resolve: (result: RangeResult) => void; readonly reject: (error: ImporterError) => void }
    | undefined;
  #failure: ImporterError | undefined;
  #asked = false;

  constructor(settings: ProcessSettings, listener: ChildListener) {
    this.#number = settings.processNumber;
    // A date without a zone means UTC, on whatever machine it is read.
    this.#child = fork(ENTRY, [], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, TZ: "UTC" },
    });
    const handlers: { [T in FromProcess["type"]]: (message: FromProcess & { type: T }) => void } = {
      imported: ({ result, runs }) => {
        this.runs = runs;
        this.#answer?.resolve(result);
      },
      failed: ({ error }) => this.#fail(errorFromFacts(error)),
      waiting: ({ reason }) => listener.onWaiting(reason),
      closed: ({ runs }) => {
        this.runs = runs;
      },
    };
    this.#child.on("message", (message: FromProcess) => handlers[message.type](message as never));
    this.#child.on("error", (error) => this.#fail(died(this.#number, this.#child.pid, error.message)));
    this.ended = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        const how = signal === null ? `with status ${code}` : `by ${signal}`;
        // Also after a stop: a range that is in hand gets no answer any more.
        this.#fail(this.#asked && code === 0 ? stopped() : died(this.#number, this.#child.pid, how));
        resolve();
      });
    });
    this.#send({ type: "start", settings });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws ImporterError what the process met, or `process_died`. */
  import(range: Range): Promise<RangeResult> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#answer = { resolve, reject };
      this.#send({ type: "import", range });
    });
  }

  /** Asks the process to end after the transaction in hand. */
  stop(): void {
    this.#asked = true;
    this.#send({ type: "stop" });
  }

  /** Ends the process at once. What it has committed stands. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #fail(error: ImporterError): void {
    this.#failure ??= error;
    this.#answer?.reject(this.#failure);
  }

  #send(message: ToProcess): void {
    // A process that has just died is noticed by its exit.
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}

function died(number: number, pid: number | undefined, how: string): ImporterError {
  return new ImporterError(
    "process_died",
    `process ${number} (pid ${pid}) ended ${how} in the middle of its work. What it had committed stands`,
    "Give the same command again: it goes on where it stopped, and no number is used twice.",
  );
}

function stopped(): ImporterError {
  return new ImporterError(
    "client_closed",
    "the process was stopped",
    "Give the same command again: it goes on where it stopped.",
  );
}
