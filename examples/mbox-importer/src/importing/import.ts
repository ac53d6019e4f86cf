/**
 * One import from the first look at the sources to the summary. Opens and checks everything that can be checked before the
 * first number is made. Knows nothing of terminals.
 */
import { resolve } from "node:path";
import { Archive } from "../archive/archive.js";
import type { ArchiveCounts } from "../archive/counts.js";
import { type ErrorFacts, errorFactsOf } from "../errors.js";
import { planRanges, type ScannedSource } from "../sources/plan.js";
import { bytesOf } from "../sources/range.js";
import { type MailSource, openMailSource } from "../sources/source.js";
import type { Summary } from "./summary.js";
import { Tally } from "./tally.js";
import { Crew } from "./worker-pool.js";

export interface ImportSettings {
  readonly sources: readonly string[];
  readonly archive: string;
  readonly coordinator: string;
  readonly namespace: string;
  readonly token: string | undefined;
  /** Goes before `token`; read for each request. */
  readonly tokenFile: string | undefined;
  readonly processes: number;
  readonly refill: "ahead" | "when_empty";
  readonly waitTimeoutMs: number;
}

export interface Progress {
  readonly bytes: number;
  readonly bytesTotal: number;
  readonly messages: number;
  readonly stored: number;
}

export interface ImportListener {
  onProgress(progress: Progress): void;
  /** Something a person may want to see while it happens. */
  onNote(note: string): void;
}

export class Import {
  readonly #settings: ImportSettings;
  readonly #listener: ImportListener;
  readonly #tally = new Tally();
  readonly #sources: MailSource[] = [];
  readonly #scanned: ScannedSource[] = [];
  readonly #crew: Crew;
  #stopped = false;

  constructor(settings: ImportSettings, listener: ImportListener) {
    this.#settings = { ...settings, archive: resolve(settings.archive) };
    this.#listener = listener;
    const { processes, coordinator, namespace, token, tokenFile, refill, waitTimeoutMs } = settings;
    const { archive } = this.#settings;
    const forProcesses = { archive, coordinator, namespace, token, tokenFile, refill, waitTimeoutMs };
    this.#crew = new Crew(processes, forProcesses, {
      onStarted: (number, pid) => listener.onNote(`process ${number} started, pid ${pid}`),
      onWaiting: (number, reason) => listener.onNote(`process ${number} waits for the coordinator: ${reason}`),
      onImported: (range, result) => {
        this.#tally.add(result, bytesOf(range));
        this.#tellProgress();
      },
    });
  }

  /** Never rejects: what went wrong stands in the summary, beside what was done before. */
  async run(): Promise<Summary> {
    const startedAtMs = performance.now();
    let error: ErrorFacts | null = null;
    let standing: Standing | undefined;
    try {
      await this.#prepare();
      try {
        await this.#import();
      } finally {
        standing = this.#standing();
      }
    } catch (thrown) {
      error = errorFactsOf(thrown);
    }
    return this.#summary(error, standing, (performance.now() - startedAtMs) / 1000);
  }

  /** Ends the import after the transactions in hand. */
  stop(): void {
    this.#stopped = true;
    this.#crew.stop();
  }

  /** Ends the import at once. What is committed stands. */
  kill(): void {
    this.#stopped = true;
    this.#crew.kill();
  }

  /** Everything that can be refused is refused here, before a process is started or a number made. */
  async #prepare(): Promise<void> {
    for (const given of this.#settings.sources) this.#sources.push(await openMailSource(given));
    using archive = new Archive(this.#settings.archive);
    archive.mustComeFrom({ namespace: this.#settings.namespace });
  }

  async #import(): Promise<void> {
    this.#tellProgress();
    const ranges = planRanges(this.#sources, {
      onSourceScanned: (source) => this.#scanned.push(source),
      onProblem: (problem) => {
        this.#tally.notStored++;
        this.#tally.addProblem(problem);
      },
    });
    await this.#crew.run(ranges);
  }

  #tellProgress(): void {
    const { bytes, messages, stored } = this.#tally;
    const bytesTotal = this.#sources.reduce((sum, source) => sum + source.bytes, 0);
    this.#listener.onProgress({ bytes, bytesTotal, messages, stored });
  }

  #summary(error: ErrorFacts | null, standing: Standing | undefined, seconds: number): Summary {
    const { stored, alreadyThere, notStored, problemCount, problems } = this.#tally;
    const { archive, coordinator, namespace } = this.#settings;
    return {
      outcome: error !== null ? "failed" : this.#stopped ? "stopped" : "complete",
      error,
      archive,
      coordinator,
      namespace,
      storeId: standing?.storeId ?? null,
      messages: { stored, alreadyThere, notStored },
      runs: { leased: this.#crew.runsLeased, used: this.#crew.runsUsed },
      processes: this.#crew.started,
      seconds,
      callNumbersPerSecond: stored / seconds,
      archiveHolds: standing?.counts ?? null,
      sources: this.#scanned,
      problemCount,
      problems,
    };
  }

  #standing(): Standing {
    using archive = new Archive(this.#settings.archive);
    return { counts: archive.counts(), storeId: archive.origin?.storeId ?? null };
  }
}

/** What the archive holds in the end. */
interface Standing {
  readonly counts: ArchiveCounts;
  readonly storeId: string | null;
}
