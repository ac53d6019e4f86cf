/**
 * A child process that imports: one client, one connection to the archive, one range after the other as the parent hands
 * them out. Ends when the parent says so, and also when the parent is gone.
 */

import { basename } from "node:path";
import { createClient } from "@callnumber/client";
import { Archive } from "../archive/archive.js";
import { errorFactsOf } from "../errors.js";
import { printable } from "../report/printable.js";
import type { Range } from "../sources/range.js";
import { bearerOf } from "./bearer.js";
import type { FromProcess, ProcessSettings, RunCounts, ToProcess } from "./process-messages.js";
import { RangeImporter } from "./range-importer.js";
import { withRemedy } from "./remedies.js";

/** Serves the parent until it says stop. Called by bin/importing-process.js in a process made for it. */
export function serveParent(): void {
  // Ctrl-C reaches every process of the terminal. The parent decides what it means.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  let importing: ImportingProcess | undefined;
  const handlers: { [T in ToProcess["type"]]: (message: ToProcess & { type: T }) => unknown } = {
    start: ({ settings }) => (importing = ImportingProcess.start(settings)),
    import: ({ range }) => importing?.import(range),
    stop: () => end(importing),
  };
  process.on("message", (message: ToProcess) => handlers[message.type](message as never));
  process.on("disconnect", () => end(importing));
}

class ImportingProcess {
  readonly #archive: Archive;
  readonly #client;
  readonly #importer: RangeImporter;
  #runsLeased = 0;
  #inHand: Promise<void> = Promise.resolve();
  #stopping = false;
  #waiting = false;

  static start(settings: ProcessSettings): ImportingProcess | undefined {
    try {
      return new ImportingProcess(settings);
    } catch (error) {
      tell({ type: "failed", error: errorFactsOf(error) });
      return undefined;
    }
  }

  constructor(settings: ProcessSettings) {
    const { archive, coordinator, namespace, refill, waitTimeoutMs, processNumber } = settings;
    const bearer = bearerOf(settings);
    this.#archive = new Archive(archive);
    this.#archive.mustComeFrom({ namespace });
    const pinned = this.#archive.origin?.storeId;
    this.#client = createClient({
      coordinator,
      namespace,
      holder: {
        name: "mbox-importer",
        labels: { archive: printable(basename(archive), 64), process: String(processNumber) },
      },
      refill,
      waitTimeoutMs,
      ...bearer,
      ...(pinned === undefined ? {} : { expectedStoreId: pinned }),
      hooks: {
        onLease: ({ runCount }) => {
          this.#runsLeased += runCount;
          this.#waiting = false;
        },
        onCoordinatorAway: ({ error }) => this.#sayOnce(`${error.code}: ${error.message}`),
      },
    });
    this.#importer = new RangeImporter(this.#archive, this.#client, namespace);
  }

  import(range: Range): void {
    this.#inHand = this.#import(range);
  }

  /** Lets the transaction in hand end, and gives up a range that still waits for numbers. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    await this.#client.close();
    await this.#inHand;
    this.#archive.close();
    await tell({ type: "closed", runs: this.#runs });
  }

  async #import(range: Range): Promise<void> {
    try {
      const result = await this.#importer.import(range);
      tell({ type: "imported", result, runs: this.#runs });
    } catch (error) {
      tell({ type: "failed", error: errorFactsOf(withRemedy(error)) });
    }
  }

  /** The client tries again and again; a person wants to hear it once. */
  #sayOnce(reason: string): void {
    if (!this.#waiting) tell({ type: "waiting", reason });
    this.#waiting = true;
  }

  get #runs(): RunCounts {
    return { leased: this.#runsLeased, used: this.#importer.runsUsed };
  }
}

async function end(importing: ImportingProcess | undefined): Promise<void> {
  await importing?.stop();
  if (process.connected) process.disconnect();
}

/** Resolves when the message is on its way. */
function tell(message: FromProcess): Promise<void> {
  return new Promise((resolve) => {
    // The parent may be gone, or go right now; what is stored stands, and the next import finds it.
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
