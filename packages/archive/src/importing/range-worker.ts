/** What imports ranges, in whatever process: one client, one connection to the archive, one range after the other. */
import { type ClientError, createClient } from "@callnumber/client";
import { Archive, type StoredNow } from "../archive/archive.js";
import { appendLines, entryLine, hasOnlyGrown, numbersStateOf, removeTornHeader } from "../numbers/numbers-file.js";
import { appendMissing } from "../numbers/sync-numbers.js";
import type { Range } from "../sources/source.js";
import { clientOptions, type WorkerSettings } from "./client-options.js";
import { type NumberSource, RangeImporter, type RangeResult } from "./range-importer.js";
import { RequestedNumbers } from "./requested-numbers.js";

export interface RangeWorkerListener {
  onLeased(runCount: number): void;
  /** A line for people: once for each outage, when a message waits for its number, and when it has one. */
  onNote(text: string): void;
}

interface ClosableSource extends NumberSource {
  close(): Promise<void>;
}

export class RangeWorker {
  readonly #settings: WorkerSettings;
  readonly #number: number;
  readonly #listener: RangeWorkerListener;
  /** Opened with the first range, so that a failure is that of a range. */
  #opened: { readonly archive: Archive; readonly client: ClosableSource; readonly importer: RangeImporter } | undefined;
  #current: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;
  #isTaking = false;
  #numbersState;
  /** Why no run came since the last one. */
  #failure: ClientError | undefined;
  /** Since when the listener knows that it waits. */
  #waitingSince: Date | undefined;

  constructor(settings: WorkerSettings, number: number, listener: RangeWorkerListener) {
    this.#settings = settings;
    this.#numbersState = settings.numbersState;
    this.#number = number;
    this.#listener = listener;
  }

  /** @throws what `RangeImporter.import` throws. Nothing of the range is stored then. */
  async import(range: Range): Promise<RangeResult> {
    this.#opened ??= this.#open();
    const result = this.#opened.importer.import(range);
    this.#current = result.catch(() => {});
    return await result;
  }

  /** Lets the current transaction end, and gives up a range that still waits for numbers. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#opened?.client.close();
    await this.#current;
    this.#opened?.archive.close();
  }

  #open() {
    const { namespace, list, archive: path, archiveFile } = this.#settings;
    const archive = Archive.reopen(path, archiveFile, this.#settings);
    archive.assertOrigin({ namespace });
    const client = this.#newSource(archive.origin?.storeId);
    const numbers: NumberSource = {
      take: (count) => this.#take(client, count),
      get storeId() {
        return client.storeId;
      },
    };
    const beforeCommit = (stored: readonly StoredNow[]) => this.#appendNumbers(archive, stored);
    return { archive, client, importer: new RangeImporter(archive, numbers, { namespace, list, beforeCommit }) };
  }

  #newSource(storeId: string | undefined): ClosableSource {
    const onRetry = (error: ClientError) => {
      this.#failure = error;
      this.#reportWaiting();
    };
    if (this.#settings.isDelivered) return new RequestedNumbers(this.#settings, storeId, onRetry);
    return createClient({
      ...clientOptions(this.#settings, storeId, this.#number),
      hooks: {
        onLease: ({ runCount }) => {
          this.#failure = undefined;
          this.#reportEnd();
          this.#listener.onLeased(runCount);
        },
        onRetry: ({ error }) => onRetry(error),
      },
    });
  }

  #appendNumbers(archive: Archive, stored: readonly StoredNow[]): void {
    const { origin } = archive;
    const { numbersFile } = this.#settings;
    const fresh = stored.filter(({ isRestored }) => !isRestored);
    if (numbersFile === undefined || fresh.length === 0 || origin === undefined) return;
    if (hasOnlyGrown(numbersFile, this.#numbersState)) {
      const lines = fresh.map(({ callNumber, message }) => entryLine(callNumber, message));
      appendLines(numbersFile, origin, lines);
    } else {
      removeTornHeader(numbersFile);
      // All numbers of the archive, which has those of this transaction already.
      appendMissing(archive, numbersFile, origin);
      if (this.#numbersState !== undefined)
        this.#listener.onNote("wrote all numbers into the file of numbers, because another program had changed it");
    }
    this.#numbersState = numbersStateOf(numbersFile);
  }

  async #take(client: NumberSource, count: number): Promise<readonly string[]> {
    this.#isTaking = true;
    setImmediate(() => this.#reportWaiting());
    try {
      for (;;) {
        try {
          return await client.take(count);
        } catch (error) {
          // The client's time was over: with the code of its last failure, or with its own if no request came to an end.
          const { code } = error as ClientError;
          const isOver = code === "wait_timeout" || code === this.#failure?.code;
          if (!isOver || !this.#settings.waitsForever || this.#closed !== undefined) throw error;
        }
      }
    } finally {
      this.#isTaking = false;
    }
  }

  /** A client that only prefetches waits for nothing: it may have thousands of numbers left. */
  #reportWaiting(): void {
    if (!this.#isTaking || this.#waitingSince !== undefined || this.#failure === undefined) return;
    const { waitsForever, waitTimeoutMs } = this.#settings;
    this.#waitingSince = new Date();
    const end = new Date(this.#waitingSince.getTime() + waitTimeoutMs);
    const until = waitsForever ? "until it is back" : `until ${utc(end)}`;
    const reason = `${this.#failure.code}: ${this.#failure.message}`;
    this.#listener.onNote(`waits for the coordinator: ${reason} (since ${utc(this.#waitingSince)}, ${until})`);
  }

  #reportEnd(): void {
    if (this.#waitingSince === undefined) return;
    const seconds = Math.round((Date.now() - this.#waitingSince.getTime()) / 1000);
    this.#listener.onNote(`has numbers again: it waited ${seconds} s`);
    this.#waitingSince = undefined;
  }
}

function utc(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
