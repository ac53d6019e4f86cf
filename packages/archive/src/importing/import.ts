/**
 * One import, from the check of the sources to the summary. Checks everything that can be checked before the first call
 * number is taken. Knows nothing of terminals.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createClient, httpSource } from "@callnumber/client";
import { Archive } from "../archive/archive.js";
import { ArchiveError, errorDetails } from "../errors.js";
import { type NumbersState, numbersStateOf } from "../numbers/numbers-file.js";
import { type FreshNumber, syncNumbers } from "../numbers/sync-numbers.js";
import { Follower, type FollowSettings } from "../sources/follow.js";
import {
  type OpenedPath,
  openMailSources,
  type Problem,
  planRanges,
  type ScannedSource,
  STDIN,
} from "../sources/source.js";
import { clientOptions, type WorkerSettings } from "./client-options.js";
import type { NumberedMessage } from "./range-importer.js";
import { emptySummary, PROBLEM_COUNT_MAX, type Summary } from "./summary.js";
import { importWithWorkers, type WorkerListener } from "./worker-pool.js";

export interface ImportSettings extends Omit<WorkerSettings, "isDelivered" | "archiveFile" | "numbersState"> {
  readonly sources: readonly string[];
  readonly processes: number;
  /** Goes on with what arrives until the signal is aborted; undefined: ends when all is imported. */
  readonly follow: FollowSettings | undefined;
}

export interface ImportListener {
  /** `share`: 0 to 1, of the bytes of all sources. */
  onProgress(share: number, messageCount: number): void;
  /** A line for people. */
  onNote(note: string): void;
  onNumbered(message: NumberedMessage): void;
  /** With `follow`: all that was there is read. */
  onCaughtUp(): void;
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
  const {
    sources: paths,
    processes,
    follow,
    ...given
  } = {
    ...settings,
    archive: resolve(settings.archive),
    numbersFile: settings.numbersFile && resolve(settings.numbersFile),
    isDelivered: settings.sources.includes(STDIN),
  };
  const summary = emptySummary(given);
  const { messages } = summary;
  const scanned = new Map<string, ScannedSource>();
  const addProblem = (problem: Problem) => {
    summary.problemCount++;
    if (summary.problems.length < PROBLEM_COUNT_MAX) summary.problems.push(problem);
  };
  try {
    const onProblem = (problem: Problem) => {
      if (problem.isNoMail !== true) messages.notStored++;
      addProblem(problem);
      listener.onNote(noteOf(problem));
    };
    const { opened, archiveFile } = await prepare(paths, given, follow !== undefined, onProblem);
    const numbersState = await learnNumbers(given, archiveFile, addProblem, () => summary.runsLeased++);
    const forWorkers: WorkerSettings = { ...given, archiveFile, numbersState };
    const sources = opened.flatMap((place) => place.sources);
    const { onNote, onCaughtUp } = listener;
    const onSourceScanned = (source: ScannedSource) => void scanned.set(source.path, source);
    const follower = follow && new Follower(paths, follow, { onSourceScanned, onNote, onCaughtUp });
    const bytesTotal = sources.reduce((sum, { bytes }) => sum + bytes, 0);
    let bytesDone = 0;
    let messageCount = 0;
    const workerListener: WorkerListener = {
      onStarted: (number, pid) => {
        summary.processes++;
        listener.onNote(`process ${number} started, pid ${pid}`);
      },
      onNote: (number, text) => listener.onNote(`process ${number} ${text}`),
      onLeased: (runCount) => {
        summary.runsLeased += runCount;
      },
      onImported: (range, { stored, restored, copies, relations, sameContent, alreadyThere, notStored, problems }) => {
        bytesDone += range.bytes;
        messageCount += range.items.length;
        messages.stored += stored.length;
        messages.sameContent += sameContent;
        messages.alreadyThere += alreadyThere;
        // What is followed is read again: the end decides.
        if (follower === undefined) messages.notStored += notStored;
        summary.restored += restored;
        add(summary.copies, copies);
        add(summary.relations, relations);
        for (const problem of problems) {
          if (follower === undefined || problem.stored) addProblem(problem);
          else if (problem.isTransient !== true) onNote(noteOf(problem));
        }
        follower?.imported(range, problems);
        for (const message of stored) listener.onNumbered(message);
        // A source may grow while it is imported.
        const share = bytesDone < bytesTotal ? bytesDone / bytesTotal : 1;
        listener.onProgress(share, messageCount);
      },
    };
    try {
      const rangesUntil = (end: AbortSignal) =>
        follower?.ranges(end) ?? planRanges(sources, { onSourceScanned, onProblem });
      await importWithWorkers(rangesUntil, processes, forWorkers, workerListener, signal);
    } finally {
      for (const problem of follower?.unsolved ?? []) {
        messages.notStored++;
        addProblem(problem);
      }
      summary.sources = [...scanned.values()];
      using archive = Archive.reopen(given.archive, archiveFile);
      summary.archiveHolds = archive.count();
      summary.storeId = archive.origin?.storeId ?? null;
    }
  } catch (error) {
    summary.error = errorDetails(error);
  }
  const isStopped = signal.aborted && settings.follow === undefined;
  summary.outcome = summary.error !== null ? "failed" : isStopped ? "stopped" : "complete";
  summary.seconds = (performance.now() - startedAtMs) / 1000;
  return summary;
}

function add<T extends string>(sums: Record<T, number>, counts: Readonly<Record<T, number>>): void {
  for (const name of Object.keys(sums) as T[]) sums[name] += counts[name];
}

type GivenSettings = Omit<WorkerSettings, "archiveFile" | "numbersState">;

/** Brings the archive and its file of numbers together. Returns what the file then is. */
async function learnNumbers(
  settings: GivenSettings,
  archiveFile: string | undefined,
  onProblem: (problem: Problem) => void,
  onLease: () => void,
): Promise<NumbersState | undefined> {
  const { archive: path, numbersFile, namespace } = settings;
  if (numbersFile === undefined) return undefined;
  using archive = Archive.reopen(path, archiveFile);
  const takeNumber = async (): Promise<FreshNumber> => {
    const client = createClient({ ...clientOptions(settings, archive.origin?.storeId, 0), hooks: { onLease } });
    try {
      const callNumber = await client.next();
      return { callNumber, origin: { storeId: client.storeId as string, namespace } };
    } finally {
      await client.close();
    }
  };
  await syncNumbers(archive, numbersFile, takeNumber, (number, reason) =>
    onProblem({
      source: number > 0 ? `${numbersFile}, line ${number}` : numbersFile,
      number: 0,
      byteOffset: 0,
      reason,
      stored: true,
    }),
  );
  return numbersStateOf(numbersFile);
}

function noteOf({ source, number, reason }: Problem): string {
  return `${source}${number > 0 ? `, message ${number}` : ""}: ${reason}`;
}

/** Rejects what can be rejected before a worker is started or a call number taken, but a bad source only if all are. Makes the archive. */
async function prepare(
  paths: readonly string[],
  settings: GivenSettings,
  mayBeEmpty: boolean,
  onProblem: (problem: Problem) => void,
): Promise<{ readonly opened: OpenedPath[]; readonly archiveFile: string | undefined }> {
  const opened = await Promise.allSettled(paths.map((path) => openMailSources(path, mayBeEmpty)));
  const sources = opened.filter((result) => result.status === "fulfilled").map(({ value }) => value);
  for (const [index, source] of paths.entries()) {
    const result = opened[index] as (typeof opened)[0];
    // What is followed may still come.
    if (result.status === "fulfilled" || mayBeEmpty) continue;
    if (sources.length === 0) throw result.reason;
    const reason = (result.reason as Error).message.replace(`${source} `, "");
    onProblem({ source, number: 0, byteOffset: 0, reason, stored: false });
  }
  assertUsableCoordinator(settings);
  using archive = new Archive(settings.archive);
  archive.assertOrigin({ namespace: settings.namespace });
  return { opened: sources, archiveFile: archive.file };
}

/** URL and token, by the rules of the client. */
function assertUsableCoordinator({ coordinator, token, tokenFile }: GivenSettings): void {
  try {
    httpSource({ coordinator });
  } catch (error) {
    throw new ArchiveError("bad_usage", (error as Error).message, { cause: error });
  }
  let text = token;
  try {
    if (tokenFile !== undefined) text = readFileSync(tokenFile, "utf8");
  } catch (error) {
    const message = `The token file can't be read: ${(error as Error).message}. Check the path and its permissions.`;
    throw new ArchiveError("token_invalid", message, { cause: error });
  }
  try {
    httpSource({ coordinator, token: text });
  } catch (error) {
    const message = `${tokenFile ?? "CALLNUMBER_TOKEN"} is not a token. Use what callnumber token create printed, alone.`;
    throw new ArchiveError("token_invalid", message, { cause: error });
  }
}
