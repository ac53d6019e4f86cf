/**
 * Was the last shutdown clean? The restart marker is a small file in memory, one for each store, that describes what the store holds.
 * It is lost when the machine restarts and no backup contains it, so that only a store that was not rolled back agrees with it.
 *
 * It is written before each commit: it describes what the store is about to hold, and never less than it holds. When the process is
 * killed:
 *
 *   before the write ──▶ the store holds what the marker describes: no runs are skipped; no step was answered
 *   during it, or between it and the commit ──▶ they disagree: the store is recovered
 *   from the commit on, its sync and its answers included ──▶ they agree, and no later step was answered: no runs are skipped
 *
 * A marker must never describe less than what was answered: a store rolled back to that state would agree with it. So a marker that
 * can't be rewritten is removed, and if that fails too, nothing is committed any more.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { hash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { SILENCE_MAX_MS } from "../../guard/bounds.js";
import type { RestartMark } from "../../guard/restart-decision.js";
import { storePathOf } from "./file-checks.js";
import { isMemoryBacked, type Machine, thisMachine } from "./machine.js";

/** Each namespace has a slot, which is written as a whole. The longest mark has about 480 characters. */
const SLOT_BYTES = 512;
const SLOT_COUNT_MAX = 4_096;
/** After so long without a heartbeat an operator decides anyway: the marker is removed, so that deleted stores leave nothing behind. */
const ABANDONED_AFTER_MS = SILENCE_MAX_MS;
const PREFIX = "callnumber-";
const SUFFIX = ".restart";
/** Begins each slot. Marks in another format, of another release, are ignored. */
const FORM = "callnumber-restart-1";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
/** In a folder that every user may write to: no link is followed, and no pipe can make the opening wait. */
const OPEN_FLAGS = O_RDWR | O_NOFOLLOW | O_NONBLOCK;
const CREATE_FLAGS = OPEN_FLAGS | O_CREAT | O_EXCL;

/** A mark as it was found. */
interface FoundMark extends RestartMark {
  /** By the clock that wrote it, ms. */
  readonly writtenAtMs: number;
}

interface WrittenMark extends FoundMark {
  /** The number of the marker's file. */
  readonly ino: number;
}

export interface RestartMarker {
  /** Undefined where there is no place for one: then every start of the store is recovered. */
  readonly path: string | undefined;
  /** When the file was last changed before it was opened, ms; 0 for none. */
  readonly changedAtMs: number;
  /** The marks at the opening, by namespace. */
  readonly found: ReadonlyMap<string, FoundMark>;
  /** Writes these marks; those of other namespaces stay. @throws when one can't be written: then `remove`. */
  write(marks: readonly RestartMark[]): void;
  /** Removes all marks. @throws when the file can neither be emptied nor removed. */
  remove(): void;
  /**
   * Removes the markers that this store, known by the ids of its namespaces, left when its file had another name: nothing rewrites
   * them from now on. @throws when one of them can neither be emptied nor removed.
   */
  removeOthers(storeIds: ReadonlySet<string>): void;
  close(): void;
}

/**
 * Opens the marker of the store at `storePath` (a real path) in the first memory-backed folder that has a place for it.
 * Makes no file before there is something to write.
 * @throws when a marker of this store lies in another folder and can't be removed.
 */
export function openRestartMarker(storePath: string, machine: Machine): RestartMarker {
  const name = nameOf(storePath);
  const folders = machine.markerFolders.filter((folder) => isMemoryBacked(folder, machine));
  folders.forEach(removeAbandoned);
  const opened: { path: string; file: number | undefined }[] = [];
  try {
    for (const folder of folders) {
      const path = join(folder, name);
      const file = openOwn(path);
      if (file !== "occupied") opened.push({ path, file });
    }
    const [first, ...others] = opened;
    // Written by an earlier start that chose another folder: nothing rewrites it from now on.
    for (const { path, file } of others) voidMarker(path, file);
    const changedAtMs = first?.file === undefined ? 0 : machine.changedAtMsOf(first.file);
    const marker = { ...markerAt(first?.path, first?.file, folders), changedAtMs };
    opened.shift();
    return marker;
  } finally {
    for (const { file } of opened) if (file !== undefined) closeOnce(file);
  }
}

/**
 * Removes the marker of a store whose file is deleted: without this it stays for 30 days. A store that stays in use is recovered at
 * its next start.
 * @throws CoordinatorError `store_not_found` for a link to a file that is gone: the marker is found by the file's own name only.
 */
export function removeRestartMarker(storePath: string, machine: Pick<Machine, "markerFolders"> = thisMachine()): void {
  for (const folder of machine.markerFolders) {
    const path = join(folder, nameOf(storePathOf(storePath, { create: false })));
    if (lstatSync(path, { throwIfNoEntry: false })?.uid === process.geteuid?.()) unlinkSync(path);
  }
}

function nameOf(storePath: string): string {
  return `${PREFIX}${hash("sha256", storePath).slice(0, 32)}${SUFFIX}`;
}

function markerAt(
  path: string | undefined,
  opened: number | undefined,
  folders: readonly string[],
): Omit<RestartMarker, "changedAtMs"> {
  let file = opened;
  const slots = new Map<string, number>();
  const found = new Map<string, FoundMark>();
  if (file !== undefined) {
    const { ino } = fstatSync(file);
    for (const [slot, written] of marksIn(readFileSync(file, "latin1")).entries()) {
      slots.set(written?.namespace ?? `damaged slot ${slot}`, slot);
      if (written === undefined) continue;
      const { ino: inoWritten, ...mark } = written;
      // A copy is another file, whatever its name and its time: its directory may have been renamed.
      if (inoWritten === ino) found.set(mark.namespace, mark);
    }
  }

  return {
    path,
    found,
    write(marks) {
      if (path === undefined) return;
      // Another process, whose clock may be wrong, took it for abandoned. What is not written again is recovered at the next start.
      if (file !== undefined && fstatSync(file).nlink === 0) {
        slots.clear();
        this.close();
      }
      file ??= openSync(path, CREATE_FLAGS, 0o600);
      for (const mark of marks) {
        const slot = slots.get(mark.namespace) ?? slots.size;
        slots.set(mark.namespace, slot);
        writeSlot(file, slot, mark);
      }
    },
    remove() {
      if (path === undefined) return;
      slots.clear();
      try {
        voidMarker(path, file);
      } finally {
        this.close();
      }
    },
    removeOthers(storeIds) {
      for (const other of folders.flatMap(markersIn)) if (other !== path) removeIfOf(storeIds, other);
    },
    close() {
      if (file !== undefined) closeOnce(file);
      file = undefined;
    },
  };
}

/**
 * Opens the marker at a path, when it is a file of this user alone; `occupied` when something else is there that can't be removed.
 * @throws when it is our own and can neither be opened nor removed: nothing would rewrite it, and a later start would trust it.
 */
function openOwn(path: string): number | undefined | "occupied" {
  let file: number | undefined;
  try {
    file = openSync(path, OPEN_FLAGS);
    if (isOwn(file)) return file;
  } catch (error) {
    if (file === undefined && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
  }
  if (file !== undefined) closeOnce(file);
  try {
    unlinkSync(path);
    return undefined;
  } catch (error) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isFile() && found.uid === process.geteuid?.()) throw error;
    return "occupied";
  }
}

/** Also when close(2) fails, the descriptor is gone, and may be another file by now. */
function closeOnce(file: number): void {
  try {
    closeSync(file);
  } catch {
    // Nothing is lost: the data are in memory.
  }
}

function isOwn(file: number): boolean {
  const { uid, mode, nlink, size } = fstatSync(file);
  const isPrivateFile = (mode & constants.S_IFMT) === constants.S_IFREG && (mode & 0o077) === 0 && nlink === 1;
  return isPrivateFile && uid === process.geteuid?.() && size <= SLOT_BYTES * SLOT_COUNT_MAX;
}

function markersIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(SUFFIX))
    .map((name) => join(folder, name));
}

/** Files of other users, and files that are no markers, stay: they are ignored. */
function removeIfOf(storeIds: ReadonlySet<string>, path: string): void {
  let file: number;
  try {
    file = openSync(path, OPEN_FLAGS);
  } catch {
    return;
  }
  try {
    const isOfStore =
      isOwn(file) && marksIn(readFileSync(file, "latin1")).some((mark) => mark && storeIds.has(mark.storeId));
    if (isOfStore) voidMarker(path, file);
  } finally {
    closeOnce(file);
  }
}

/** Files of other users stay. */
function removeAbandoned(folder: string): void {
  const writtenBeforeMs = Date.now() - ABANDONED_AFTER_MS;
  for (const path of markersIn(folder)) {
    try {
      const { uid, mtimeMs } = lstatSync(path);
      if (uid === process.geteuid?.() && mtimeMs < writtenBeforeMs) unlinkSync(path);
    } catch {
      // Another process was faster, or it is no file.
    }
  }
}

/** Either half is enough: an empty marker has no marks, and one without a name is not found. */
function voidMarker(path: string, file: number | undefined): void {
  let isEmpty = false;
  try {
    if (file !== undefined) ftruncateSync(file, 0);
    isEmpty = file !== undefined;
  } catch {
    // Its name is removed next.
  }
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isEmpty && lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw error;
  }
}

function writeSlot(file: number, slot: number, mark: RestartMark): void {
  if (slot >= SLOT_COUNT_MAX) throw new RangeError(`a restart marker holds ${SLOT_COUNT_MAX} namespaces`);
  const json = JSON.stringify({ ...mark, writtenAtMs: Date.now(), ino: fstatSync(file).ino } satisfies WrittenMark);
  const text = `${FORM} ${sumOf(json)} ${json}`.padEnd(SLOT_BYTES - 1);
  const bytes = Buffer.from(`${text}\n`, "latin1");
  if (bytes.length !== SLOT_BYTES)
    throw new RangeError(`a restart mark of ${bytes.length} bytes does not fit its slot`);
  const written = writeSync(file, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
  if (written !== SLOT_BYTES)
    throw new Error(`only ${written} of ${SLOT_BYTES} bytes of the restart marker were written`);
}

/** By slot; undefined for one that is damaged. */
function marksIn(text: string): (WrittenMark | undefined)[] {
  const slots = text.match(new RegExp(`[^]{1,${SLOT_BYTES}}`, "g")) ?? [];
  return slots.map((slot) => {
    const [, form, sum, json = ""] = /^(\S+) ([0-9a-f]{40}) (\{.*\}) *\n$/.exec(slot) ?? [];
    return form === FORM && sum === sumOf(json) ? (JSON.parse(json) as WrittenMark) : undefined;
  });
}

function sumOf(json: string): string {
  return hash("sha1", json);
}
