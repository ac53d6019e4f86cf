/**
 * Brings an archive and its file of numbers together before an import: the archive learns the numbers of messages that it does not have, and
 * the file gets those that it lacks. After that, each number is appended before its message is committed.
 */
import { existsSync } from "node:fs";
import type { Archive } from "../archive/archive.js";
import { ArchiveError } from "../errors.js";
import { placeOf } from "./known-numbers.js";
import {
  appendLines,
  assertWritable,
  type NumbersEntry,
  type Origin,
  readNumbersFile,
  removeTornHeader,
} from "./numbers-file.js";

/** A fresh number of the store, which is greater than all that it leased before. */
export interface FreshNumber {
  readonly callNumber: string;
  readonly origin: Origin;
}

/**
 * Reads the file into the archive, and appends what it lacks. A file that does not exist is made with the first number.
 * `takeNumber` is called only if the file has numbers of messages that are not here: each of them must have been leased before that number.
 * `onProblem` is called with each line, from 1, that can't be used.
 * @throws ArchiveError `numbers_unusable` when the file can't be read or written, or is none; `store_mismatch`, `other_namespace` when its
 *   numbers come from elsewhere; `number_never_leased` when the store can't have issued one of them. The archive is then as it was.
 */
export async function syncNumbers(
  archive: Archive,
  path: string,
  takeNumber: () => Promise<FreshNumber>,
  onProblem: (lineNumber: number, reason: string) => void,
): Promise<void> {
  assertWritable(path);
  if (existsSync(path)) {
    removeTornHeader(path);
    let header: Origin | undefined;
    const onHeader = (found: Origin) => {
      header = found;
      archive.assertOrigin(found);
    };
    await archive.learn(entriesIn(path, onHeader, onProblem), async (greatest) => {
      const { callNumber, origin } = await takeNumber();
      assertSameOrigin(path, header as Origin, origin);
      if (placeOf(greatest) >= placeOf(callNumber)) throw neverLeased(path, greatest, origin);
      return origin;
    });
    for (const number of archive.known.conflicts())
      onProblem(0, `its number ${number} is that of another message here`);
    for (const { here, inFile } of archive.known.renumbered())
      onProblem(
        0,
        `the message ${here} has the number ${inFile} in it: it was imported without it. Both links lead to it`,
      );
  }
  if (archive.origin !== undefined) appendMissing(archive, path, archive.origin);
}

/** Yields the entries of a file of numbers. @throws ArchiveError `numbers_unusable` when it can't be read, or is none. */
export async function* entriesIn(
  path: string,
  onHeader: (header: Origin) => void = () => {},
  onProblem: (lineNumber: number, reason: string) => void = () => {},
): AsyncGenerator<NumbersEntry, void> {
  let isNumbersFile = false;
  for await (const line of orUnusable(path, readNumbersFile(path))) {
    if ("header" in line) onHeader(line.header);
    isNumbersFile ||= "header" in line;
    if (!isNumbersFile) throw unusable(path, "its first line is not that of a file of numbers");
    if ("problem" in line) onProblem(line.lineNumber, line.problem);
    if ("entry" in line) yield line.entry;
  }
}

/** Appends what the file lacks: all numbers, if it was not read before. @throws ArchiveError `numbers_unusable`. */
export function appendMissing(archive: Archive, path: string, origin: Origin): void {
  let lines: string[] = [];
  for (const line of archive.known.missingLines()) {
    if (lines.push(line) < CHUNK_COUNT) continue;
    appendLines(path, origin, lines);
    lines = [];
  }
  if (lines.length > 0) appendLines(path, origin, lines);
}

const CHUNK_COUNT = 5000;

async function* orUnusable<T>(path: string, lines: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* lines;
  } catch (error) {
    throw unusable(path, (error as Error).message);
  }
}

function unusable(path: string, cause: string): ArchiveError {
  const action =
    "Put back a copy of it, or the first line of a copy, which never changes. A new file would give other numbers to messages that the archive lacks.";
  return new ArchiveError("numbers_unusable", `The file of numbers ${path} can't be used: ${cause}. ${action}`);
}

function assertSameOrigin(path: string, header: Origin, { storeId, namespace }: Origin): void {
  if (header.storeId === storeId && header.namespace === namespace) return;
  const failure = `The numbers in ${path} are of the store ${header.storeId}, namespace ${header.namespace}`;
  const action = "Pass the coordinator and the namespace of that store, or the file of this archive.";
  throw new ArchiveError(
    "store_mismatch",
    `${failure}, not of ${storeId}, ${namespace}. Nothing was imported.\n${action}`,
  );
}

function neverLeased(path: string, callNumber: string, { storeId }: Origin): ArchiveError {
  const failure = `The file of numbers ${path} has ${callNumber}, which the store ${storeId} has not leased. Nothing was imported`;
  const action = "The file is of another store, or the store was rolled back: run callnumber explain rolled_back.";
  return new ArchiveError("number_never_leased", `${failure}.\n${action}`);
}
