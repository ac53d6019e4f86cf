/**
 * What minting remembers from one process to the next: last sequences, the counter of a ticket server, the last time of a clock. One
 * process at a time has the file; what is minted is on the disk before it is printed, so that a crash loses numbers and repeats none.
 * A file that is not there, or can't be read whole, is never taken for an empty one: then everything would begin anew.
 */
import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Memory } from "../index.js";
import type { LockedFiles } from "./io.js";

/** A state file that can't be used. Nothing was minted. */
export class StateFileError extends Error {
  override readonly name = "StateFileError";
  readonly code = "mint_state_unusable";
}

export interface StateFile {
  /** State under names of one kind: a sequence and a counter may bear the same name. */
  memory(kind: string): Memory;
  /** On the disk, with its name, when this returns. Does nothing where nothing has changed. */
  save(): void;
  /** Lets others have the file. What was not saved is gone. */
  close(): void;
}

const WHAT = "the last numbers of callnumber schemes mint; whoever loses or restores this file repeats numbers";
const FILE_MODE = 0o600;
const WHOLE_NUMBER = /^\d{1,60}$/;

/**
 * Opens the state at `path`, or makes it where `create` says so. The lock beside it is removed by `close`.
 * @throws StateFileError when another process has it, it is not there, is damaged, or can't be written.
 */
export function openStateFile(
  path: string,
  { create, files }: { readonly create: boolean; readonly files: LockedFiles },
): StateFile {
  const real = realPathOfState(path, files);
  const unlock = lock(real, files);
  try {
    const values = readState(real, create);
    return stateFile(real, values ?? new Map(), unlock, values === undefined);
  } catch (error) {
    unlock();
    throw error;
  }
}

function stateFile(path: string, values: Map<string, bigint>, unlock: () => void, isNew: boolean): StateFile {
  let hasChanged = isNew;
  const save = (): void => {
    if (!hasChanged) return;
    replace(path, textOf(values));
    hasChanged = false;
  };
  // Before anything is minted: a folder that can't be written is found out now.
  if (isNew) save();
  return {
    memory: (kind) => ({
      get: (name) => values.get(`${kind}:${name}`),
      set: (name, value) => {
        values.set(`${kind}:${name}`, value);
        hasChanged = true;
      },
    }),
    save,
    close: unlock,
  };
}

/** A link stays one: what is changed is the file behind it, and two names of one file have one lock. */
function realPathOfState(path: string, { realPathOf }: LockedFiles): string {
  try {
    return realPathOf(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "link_leads_nowhere") throw error;
    throw new StateFileError(`the state file can't be used: ${(error as Error).message}`);
  }
}

function lock(path: string, { makeLockFile, holderOfLock }: LockedFiles): () => void {
  const name = `${path}.lock`;
  let isMade: boolean;
  try {
    isMade = makeLockFile(name);
  } catch (error) {
    throw unusable(path, error);
  }
  if (!isMade) throw lockedBy(holderOfLock(name), name, path);
  let isOurs = true;
  return () => {
    if (!isOurs) return;
    isOurs = false;
    removeIfThere(name);
  };
}

function lockedBy(holder: string, name: string, path: string): StateFileError {
  return new StateFileError(
    `${holder} mints with ${path}: ${name} is there. Two at once would make the same numbers. If no such process runs, it was killed: ` +
      "remove that file, and try again",
  );
}

/** Undefined for a file that is to be made. */
function readState(path: string, create: boolean): Map<string, bigint> | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined && create) return undefined;
  if (stats === undefined) {
    throw new StateFileError(
      `there is no state file ${path}. Where numbers were minted before, find it: without it they begin anew, and repeat. ` +
        "For the very first ones say --create",
    );
  }
  // A pipe would hold up the process, a device have no end.
  if (!stats.isFile()) throw new StateFileError(`${path} is no file`);
  if (stats.nlink > 1) {
    throw new StateFileError(
      `${path} has a second name (a hard link), under which it would stay as it is now, and numbers repeat. Remove the other name`,
    );
  }
  const values = valuesIn(textOfFile(path));
  if (values !== undefined) return values;
  throw new StateFileError(
    `${path} is no state of callnumber schemes mint, or is damaged. It is left as it is: what stands in it can't be guessed`,
  );
}

function textOfFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unusable(path, error);
  }
}

function textOf(values: ReadonlyMap<string, bigint>): string {
  const texts = [...values].map(([name, value]) => [name, String(value)] as const);
  return `${JSON.stringify({ what: WHAT, values: Object.fromEntries(texts) }, null, 2)}\n`;
}

/** Undefined for any text that `textOf` does not write. */
function valuesIn(text: string): Map<string, bigint> | undefined {
  let read: { readonly what?: unknown; readonly values?: unknown } | null;
  try {
    read = JSON.parse(text) as typeof read;
  } catch {
    return undefined;
  }
  if (read?.what !== WHAT || typeof read.values !== "object" || read.values === null) return undefined;
  const entries = Object.entries(read.values as Record<string, unknown>);
  if (!entries.every(([, value]) => typeof value === "string" && WHOLE_NUMBER.test(value))) return undefined;
  const values = new Map(entries.map(([name, value]) => [name, BigInt(value as string)]));
  return textOf(values) === text ? values : undefined;
}

/** Whole on the disk under another name before it takes the place of the old one. */
function replace(path: string, text: string): void {
  const unfinished = `${path}.${randomUUID()}.unfinished`;
  try {
    const file = openSync(unfinished, "wx", FILE_MODE);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
    syncFolderOf(path);
  } catch (error) {
    removeIfThere(unfinished);
    throw unusable(path, error);
  }
}

function syncFolderOf(path: string): void {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Not begun, or renamed or removed already.
  }
}

function unusable(path: string, error: unknown): StateFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new StateFileError(`the state file ${path} can't be used (${code ?? message})`);
}
