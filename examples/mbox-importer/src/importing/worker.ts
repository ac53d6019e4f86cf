/**
 * A process that imports: one client, one connection to the archive, one range after the other as the parent sends them.
 * Ends when the parent says so, and also when the parent is gone. Started by worker-pool.ts.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { type Client, type ClientOptions, createClient } from "@callnumber/client";
import { Archive } from "../archive/archive.js";
import { type ErrorDetails, errorDetails, ImporterError } from "../errors.js";
import type { Range } from "../sources/source.js";
import { printable } from "../terminal.js";
import { RangeImporter, type RangeResult } from "./range-importer.js";

export interface WorkerSettings {
  /** Absolute. */
  readonly archive: string;
  readonly coordinator: string;
  readonly namespace: string;
  readonly token: string | undefined;
  /** Has precedence over `token`. Read before each request, so that a token can be rotated during an import. */
  readonly tokenFile: string | undefined;
  /** How long to wait for an unreachable coordinator. */
  readonly waitTimeoutMs: number;
}

/** Messages between parent and worker: positions, counts and texts, never the bytes of a message. */
export type ToWorker =
  | { readonly type: "start"; readonly workerNumber: number; readonly settings: WorkerSettings }
  | { readonly type: "import"; readonly range: Range }
  | { readonly type: "stop" };

export type FromWorker =
  | { readonly type: "imported"; readonly result: RangeResult }
  | { readonly type: "failed"; readonly error: ErrorDetails }
  | { readonly type: "leased"; readonly runCount: number }
  | { readonly type: "waiting"; readonly reason: string };

class Worker {
  readonly #archive: Archive;
  readonly #client: Client;
  readonly #importer: RangeImporter;
  #currentRange: Promise<void> = Promise.resolve();
  #isStopping = false;
  #isWaiting = false;

  constructor(workerNumber: number, settings: WorkerSettings) {
    const { archive, coordinator, namespace, token, tokenFile, waitTimeoutMs } = settings;
    this.#archive = new Archive(archive);
    this.#archive.assertOrigin({ namespace });
    this.#client = newClient({
      coordinator,
      namespace,
      holder: {
        name: "mbox-importer",
        labels: { archive: printable(basename(archive), 64), process: String(workerNumber) },
      },
      waitTimeoutMs,
      token: tokenFile === undefined ? token : () => readFileSync(tokenFile, "utf8"),
      // Numbers of any other store are rejected before the first one.
      expectedStoreId: this.#archive.origin?.storeId,
      hooks: {
        onLease: ({ runCount }) => {
          this.#isWaiting = false;
          send({ type: "leased", runCount });
        },
        onRetry: ({ error }) => this.#reportWaiting(`${error.code}: ${error.message}`),
      },
    });
    this.#importer = new RangeImporter(this.#archive, this.#client, namespace);
  }

  import(range: Range): void {
    this.#currentRange = this.#import(range);
  }

  /** Lets the current transaction end, and gives up a range that still waits for numbers. */
  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    await this.#client.close();
    await this.#currentRange;
    this.#archive.close();
  }

  async #import(range: Range): Promise<void> {
    try {
      await send({ type: "imported", result: await this.#importer.import(range) });
    } catch (error) {
      await send({ type: "failed", error: errorDetails(error) });
    }
  }

  /** Once for each outage, however often the client retries. */
  #reportWaiting(reason: string): void {
    if (!this.#isWaiting) send({ type: "waiting", reason });
    this.#isWaiting = true;
  }
}

/** @throws ImporterError `bad_usage` for a setting that only the client checks, as a URL with a password. */
function newClient(options: ClientOptions): Client {
  try {
    return createClient(options);
  } catch (error) {
    throw new ImporterError("bad_usage", (error as Error).message, { cause: error });
  }
}

/** Resolves when the message is sent, or can't be: the parent may be gone. What is stored stays either way. */
function send(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

let worker: Worker | undefined;

function receive(message: ToWorker): void {
  if (message.type === "import") worker?.import(message.range);
  else if (message.type === "stop") void stop();
  else {
    try {
      worker = new Worker(message.workerNumber, message.settings);
    } catch (error) {
      send({ type: "failed", error: errorDetails(error) });
    }
  }
}

async function stop(): Promise<void> {
  await worker?.stop();
  if (process.connected) process.disconnect();
}

// Ctrl-C reaches every process of the terminal. The parent decides what it means.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
process.on("message", receive);
process.on("disconnect", stop);
