/**
 * One import, from the check of the sources to the summary. Checks everything that can be checked before the first call
 * number is taken. Knows nothing of terminals.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Archive } from "../archive/archive.js";
import { type ErrorDetails, errorDetails, ImporterError } from "../errors.js";
import { planRanges, type ScannedSource } from "../sources/plan.js";
import { type MailSource, openMailSource, type Problem } from "../sources/source.js";
import type { RangeResult } from "./range-importer.js";
import { PROBLEM_COUNT_MAX, type Summary } from "./summary.js";
import type { WorkerSettings } from "./worker.js";
import { WorkerPool } from "./worker-pool.js";

export interface ImportSettings extends WorkerSettings {
  readonly sources: readonly string[];
  readonly processes: number;
}

export interface ImportListener {
  /** `share`: 0 to 1, of the bytes of all sources. */
  onProgress(share: number, messageCount: number): void;
  /** A line for people. */
  onNote(note: string): void;
}

/**
 * Imports the sources into the archive. When `signal` is aborted, the import ends after the current transactions.
 * Never rejects: an error is part of the summary, next to what was done before it.
 */
export async function importMail(
  settings: ImportSettings,
  listener: ImportListener,
  signal: AbortSignal,
): Promise<Summary> {
  const startedAtMs = performance.now();
  const { sources: paths, processes, ...forWorkers } = { ...settings, archive: resolve(settings.archive) };
  const tally = new Tally();
  const scanned: ScannedSource[] = [];
  let bytesTotal = 0;
  const pool = new WorkerPool(processes, forWorkers, {
    onStarted: (number, pid) => listener.onNote(`process ${number} started, pid ${pid}`),
    onWaiting: (number, reason) => listener.onNote(`process ${number} waits for the coordinator: ${reason}`),
    onImported: ({ bytes }, result) => {
      tally.add(bytes, result);
      // A source may grow while it is imported.
      const share = tally.bytes < bytesTotal ? tally.bytes / bytesTotal : 1;
      listener.onProgress(share, tally.messageCount);
    },
  });
  signal.addEventListener("abort", () => pool.stop());
  let error: ErrorDetails | null = null;
  let content: ArchiveContent = { archiveHolds: null, storeId: null };
  try {
    const sources = await prepare(paths, forWorkers);
    for (const { bytes } of sources) bytesTotal += bytes;
    try {
      const ranges = planRanges(sources, {
        onSourceScanned: (source) => scanned.push(source),
        onProblem: (problem) => tally.addUnread(problem),
      });
      await pool.run(ranges);
    } finally {
      content = archiveContent(forWorkers.archive);
    }
  } catch (thrown) {
    error = errorDetails(thrown);
  }
  const { archive, coordinator, namespace } = forWorkers;
  return {
    outcome: error !== null ? "failed" : signal.aborted ? "stopped" : "complete",
    error,
    archive,
    coordinator,
    namespace,
    messages: tally.messages,
    runsLeased: pool.runsLeased,
    processes: pool.startedCount,
    seconds: (performance.now() - startedAtMs) / 1000,
    ...content,
    sources: scanned,
    problemCount: tally.problemCount,
    problems: tally.problems,
  };
}

/** Adds up the results of the workers, in constant memory. */
class Tally {
  readonly messages = { stored: 0, alreadyThere: 0, notStored: 0 };
  readonly problems: Problem[] = [];
  problemCount = 0;
  bytes = 0;

  get messageCount(): number {
    return this.messages.stored + this.messages.alreadyThere + this.messages.notStored;
  }

  add(bytes: number, { stored, alreadyThere, notStored, problems }: RangeResult): void {
    this.bytes += bytes;
    this.messages.stored += stored;
    this.messages.alreadyThere += alreadyThere;
    this.messages.notStored += notStored;
    for (const problem of problems) this.#addProblem(problem);
  }

  /** A part of a source that never came into a range. */
  addUnread(problem: Problem): void {
    this.messages.notStored++;
    this.#addProblem(problem);
  }

  #addProblem(problem: Problem): void {
    this.problemCount++;
    if (this.problems.length < PROBLEM_COUNT_MAX) this.problems.push(problem);
  }
}

/** Rejects what can be rejected before a worker is started or a call number taken. */
async function prepare(paths: readonly string[], settings: WorkerSettings): Promise<MailSource[]> {
  const sources: MailSource[] = [];
  for (const path of paths) sources.push(await openMailSource(path));
  assertUsableToken(settings);
  using archive = new Archive(settings.archive);
  archive.assertOrigin({ namespace: settings.namespace });
  return sources;
}

type ArchiveContent = Pick<Summary, "archiveHolds" | "storeId">;

function archiveContent(path: string): ArchiveContent {
  using archive = new Archive(path);
  return { archiveHolds: archive.count(), storeId: archive.origin?.storeId ?? null };
}

/** What RFC 6750 allows in a token, and white space around it. */
const TOKEN_PATTERN = /^\s*[\w.~+/-]+=*\s*$/;

function assertUsableToken({ token, tokenFile }: WorkerSettings): void {
  let text = token;
  try {
    if (tokenFile !== undefined) text = readFileSync(tokenFile, "utf8");
  } catch (error) {
    const message = `The token file can't be read: ${(error as Error).message}. Check the path and its permissions.`;
    throw new ImporterError("token_invalid", message, { cause: error });
  }
  if (text === undefined || TOKEN_PATTERN.test(text)) return;
  const place = tokenFile ?? "CALLNUMBER_TOKEN";
  throw new ImporterError("token_invalid", `${place} is not a token. Use what callnumber token create printed, alone.`);
}
