/**
 * What generating remembers from one process to the next: last sequences, the counter of tickets, the last time of a clock. One process at a time
 * has the file; what is generated is on the disk before it is printed, so that a crash loses numbers and repeats none.
 * A file that is missing or damaged is never taken for an empty one: all numbers would start again.
 */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Memory } from "../scheme.js";

/** A state file that can't be used. Nothing was generated. */
export class StateFileError extends Error {
  override readonly name = "StateFileError";
  readonly code = "generator_state_unusable";
}

export interface StateFile {
  /** State under names of one kind: a sequence and a counter may have the same name. */
  memory(kind: string): Memory;
  /** Writes to the disk what has changed. @throws StateFileError */
  save(): void;
  /** Releases the lock. What was not saved is lost. Call it once: the lock may be that of another process then. */
  close(): void;
}

const WHAT = "the last numbers of callnumber schemes generate; numbers repeat where this file is lost or restored";
const FILE_MODE = 0o600;

/**
 * Opens the state at `path`, or creates it with `create`, and locks it by a file with `.lock` after its name.
 * @throws StateFileError when another process has it, it is missing or damaged, or can't be written.
 */
export function openStateFile(path: string, create: boolean): StateFile {
  let unlock = (): void => {};
  try {
    // Two names of one file must have one lock, and a link must stay one.
    const file = lstatSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path);
    unlock = lock(file);
    return stateOf(file, readState(file, create), unlock);
  } catch (error) {
    unlock();
    throw unusable(path, error);
  }
}

function stateOf(path: string, values: Map<string, bigint>, close: () => void): StateFile {
  let hasChanged = false;
  return {
    memory: (kind) => ({
      get: (name) => values.get(`${kind}:${name}`),
      set: (name, value) => {
        values.set(`${kind}:${name}`, value);
        hasChanged = true;
      },
    }),
    save: () => {
      if (!hasChanged) return;
      try {
        replaceFile(path, textOf(values));
      } catch (error) {
        throw unusable(path, error);
      }
      hasChanged = false;
    },
    close,
  };
}

function lock(path: string): () => void {
  const name = `${path}.lock`;
  try {
    closeSync(openSync(name, "wx", FILE_MODE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new StateFileError(
      `another process generates with ${path}: ${name} exists. If no such process runs, remove that file and try again`,
    );
  }
  return () => rmSync(name, { force: true });
}

function readState(path: string, create: boolean): Map<string, bigint> {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined && create) {
    // Before anything is generated: a directory that can't be written is found now.
    replaceFile(path, textOf(new Map()));
    return new Map();
  }
  if (stats === undefined) {
    throw new StateFileError(
      `there is no state file ${path}. If numbers were generated before, find it: without it they start again, and repeat. ` +
        "Pass --create for the very first ones",
    );
  }
  // A pipe would block the process, and a device has no end.
  if (!stats.isFile()) throw new StateFileError(`${path} is not a file`);
  if (stats.nlink > 1) {
    throw new StateFileError(
      `${path} has a second name (a hard link), under which it would stay as it is now, and numbers repeat. Remove the other name`,
    );
  }
  const values = valuesIn(readFileSync(path, "utf8"));
  if (values !== undefined) return values;
  throw new StateFileError(
    `${path} is not a state of callnumber schemes generate, or is damaged. Its content can't be guessed`,
  );
}

function textOf(values: ReadonlyMap<string, bigint>): string {
  const texts = [...values].map(([name, value]) => [name, String(value)] as const);
  return `${JSON.stringify({ what: WHAT, values: Object.fromEntries(texts) }, null, 2)}\n`;
}

/** Undefined for any text that `textOf` does not write. */
function valuesIn(text: string): Map<string, bigint> | undefined {
  try {
    const read = JSON.parse(text) as { readonly values: Readonly<Record<string, string>> };
    const values = new Map(Object.entries(read.values).map(([name, value]) => [name, BigInt(value)]));
    const isWhole = textOf(values) === text && [...values.values()].every((value) => value >= 0n);
    return isWhole ? values : undefined;
  } catch {
    return undefined;
  }
}

/** Complete on the disk under another name before it replaces the old file. */
function replaceFile(path: string, text: string): void {
  const unfinished = `${path}.unfinished`;
  rmSync(unfinished, { force: true });
  try {
    writeFileSync(unfinished, text, { mode: FILE_MODE, flag: "wx", flush: true });
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  const directory = openSync(dirname(path), "r");
  fsyncSync(directory);
  closeSync(directory);
}

function unusable(path: string, error: unknown): StateFileError {
  if (error instanceof StateFileError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return new StateFileError(`the state file ${path} can't be used (${code ?? message})`);
}
