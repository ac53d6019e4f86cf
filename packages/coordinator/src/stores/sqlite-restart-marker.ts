/**
 * The restart marker: a small file in the machine's memory, one for each store, that says what the store holds. It ends with the
 * machine and no backup holds it, so that only a store that has forgotten nothing agrees with it.
 *
 * Written before each commit: it says what the store is about to hold, and never less than it holds. Whatever kills the process:
 *
 *   before the writing ──▶ the store holds what the marker says: dense; nobody was answered
 *   within it, or between it and the commit ──▶ they disagree: a doubt
 *   from the commit on, its sync and its answers included ──▶ they agree, and nothing later was ever answered: dense
 *
 * What must never be left is a marker that says less than what was answered: a store put back to that would agree with it. So
 * one that can't be rewritten is removed, and if that fails too, nothing is committed any more.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { createHash } from "node:crypto";
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
import type { RestartMark } from "../guard/adopt.js";
import { isMemoryBacked, type Machine, thisMachine } from "./sqlite-machine.js";
import { storePathOf } from "./sqlite-real-path.js";

/** Each namespace has a slot of its own, written as a whole. The longest mark has some 420 characters. */
const SLOT_BYTES = 512;
const SLOT_COUNT_MAX = 4_096;
/**
 * One that was not written for so long makes no restart dense, because the record is silent for as long: it is removed, so that
 * stores that are no more leave nothing behind.
 */
const ABANDONED_AFTER_MS = 3_600_000;
const PREFIX = "callnumber-";
const SUFFIX = ".restart";
/** Leads each slot. Another form of marks, of another release, is none to this one. */
const FORM = "callnumber-restart-1";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
/** In a folder that everybody may write to: no link is followed, and nothing that lies there can make the opening wait. */
const OPEN_FLAGS = O_RDWR | O_NOFOLLOW | O_NONBLOCK;
const CREATE_FLAGS = OPEN_FLAGS | O_CREAT | O_EXCL;

export interface RestartMarker {
  /** Undefined where there is no place for one: then every start of the store is a doubt. */
  readonly path: string | undefined;
  /** What was found when it was opened, by namespace. */
  readonly found: ReadonlyMap<string, RestartMark>;
  /** Writes these marks; those of other namespaces stay. @throws when one can't be written: then `remove`. */
  write(marks: readonly RestartMark[]): void;
  /** Makes it say nothing any more. @throws when it can neither be emptied nor removed. */
  remove(): void;
  /**
   * Removes what this store, known by the ids of its namespaces, left under other names: its file was called otherwise then, and
   * nothing rewrites that from now on. @throws when one of them can neither be emptied nor removed.
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
    // Written by an earlier start that had another choice: nothing rewrites it from now on.
    for (const { path, file } of others) voidMarker(path, file);
    const marker = markerAt(first?.path, first?.file, folders);
    opened.shift();
    return marker;
  } finally {
    for (const { file } of opened) if (file !== undefined) closeOnce(file);
  }
}

/**
 * Removes what a store has left in the machine's memory, for whoever has deleted the store's file or is about to: nothing else
 * does before an hour has passed. Of a store that lives on it costs a jump at its next start.
 * @throws CoordinatorError `store_missing` for a link to a file that is gone: which one it was, only the file's own name tells.
 */
export function removeRestartMarker(storePath: string, machine: Pick<Machine, "markerFolders"> = thisMachine()): void {
  for (const folder of machine.markerFolders) {
    const path = join(folder, nameOf(storePathOf(storePath, { create: false })));
    if (lstatSync(path, { throwIfNoEntry: false })?.uid === process.geteuid?.()) unlinkSync(path);
  }
}

function nameOf(storePath: string): string {
  return `${PREFIX}${createHash("sha256").update(storePath).digest("hex").slice(0, 32)}${SUFFIX}`;
}

function markerAt(path: string | undefined, opened: number | undefined, folders: readonly string[]): RestartMarker {
  let file = opened;
  const slots = new Map<string, number>();
  const found = new Map<string, RestartMark>();
  if (file !== undefined) {
    for (const [slot, mark] of marksIn(readFileSync(file, "latin1")).entries()) {
      slots.set(mark?.namespace ?? `damaged slot ${slot}`, slot);
      if (mark !== undefined) found.set(mark.namespace, mark);
    }
  }

  return {
    path,
    found,
    write(marks) {
      if (path === undefined) return;
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
 * The marker at a path, when it is a file of this user alone; `occupied` when something else lies there to stay.
 * @throws when it is our own and can neither be opened nor removed: nothing would rewrite it, and a later start would believe it.
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

/** Whatever close(2) answers, the descriptor is gone, and may be another file by now. */
function closeOnce(file: number): void {
  try {
    closeSync(file);
  } catch {
    // Nothing is lost: what was written is in memory.
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

/** Those of other users, and what is no marker, stay: nobody would believe them here. */
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

/** Those of other users stay: they are theirs to remove. */
function removeAbandoned(folder: string): void {
  const writtenBeforeMs = Date.now() - ABANDONED_AFTER_MS;
  for (const path of markersIn(folder)) {
    try {
      const { uid, mtimeMs } = lstatSync(path);
      if (uid === process.geteuid?.() && mtimeMs < writtenBeforeMs) unlinkSync(path);
    } catch {
      // Somebody else was faster, or it is no file: whatever it is, it is in nobody's way.
    }
  }
}

/** Either half is enough: an empty marker says nothing, and one without a name is found by nobody. */
function voidMarker(path: string, file: number | undefined): void {
  let fault: unknown;
  try {
    if (file !== undefined) ftruncateSync(file, 0);
  } catch (error) {
    fault = error;
  }
  try {
    unlinkSync(path);
  } catch (error) {
    const isEmpty = file !== undefined && fault === undefined;
    if (!isEmpty && lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw error;
  }
}

function writeSlot(file: number, slot: number, mark: RestartMark): void {
  if (slot >= SLOT_COUNT_MAX) throw new RangeError(`a restart marker holds ${SLOT_COUNT_MAX} namespaces`);
  const json = JSON.stringify(mark);
  const text = `${FORM} ${sumOf(json)} ${json}`.padEnd(SLOT_BYTES - 1);
  const bytes = Buffer.from(`${text}\n`, "latin1");
  if (bytes.length !== SLOT_BYTES)
    throw new RangeError(`a restart mark of ${bytes.length} bytes does not fit its slot`);
  const written = writeSync(file, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
  if (written !== SLOT_BYTES)
    throw new Error(`only ${written} of ${SLOT_BYTES} bytes of the restart marker were written`);
}

/** By slot; undefined for one that is damaged. */
function marksIn(text: string): (RestartMark | undefined)[] {
  const slotCount = Math.ceil(text.length / SLOT_BYTES);
  return Array.from({ length: slotCount }, (_, slot) => {
    const [form, sum = "", json = ""] = splitSlot(text.slice(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES));
    return form === FORM && sum === sumOf(json) ? (JSON.parse(json) as RestartMark) : undefined;
  });
}

function splitSlot(slot: string): string[] {
  return /^(\S+) ([0-9a-f]{40}) (\{.*\}) *\n$/.exec(slot)?.slice(1) ?? [];
}

function sumOf(json: string): string {
  return createHash("sha1").update(json).digest("hex");
}
