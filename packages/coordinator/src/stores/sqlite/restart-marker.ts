/**
 * Was the last shutdown clean? The restart marker is a small file in memory, one for each store, that describes what the store holds.
 * It is lost when the machine restarts and no backup contains it, so that a store that was rolled back disagrees with it.
 *
 * It is written before each commit: it describes what the store is about to hold, and never less than it holds. When the process is
 * killed:
 *
 *   before the write ──▶ the store holds what the marker describes: no runs are skipped; no step was answered
 *   during it, or between it and the commit ──▶ they disagree: the store is recovered
 *   from the commit on, its sync and its answers included ──▶ they agree, and no later step was answered: no runs are skipped
 *
 * A marker must never describe less than what was answered: a store rolled back to that state would agree with it. In this process, a
 * marker that can't be rewritten is removed, and if that fails too, nothing is committed any more. A later process may not see the
 * marker, or may not remove it (another /dev/shm, another user). So it changes the lock file before it leases, and the marker says when
 * the lock file was last changed: then it is void, wherever it is.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { hash } from "node:crypto";
import {
  accessSync,
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
import { dirname, join } from "node:path";
import process from "node:process";
import { shellWord } from "@callnumber/protocol/api";
import { SILENCE_MAX_MS } from "../../guard/clocks.js";
import type { RestartMark } from "../../guard/restart-decision.js";
import { storePathOf } from "./file-checks.js";
import { isMemoryBacked, type Machine, thisMachine } from "./machine.js";

/** Each namespace has a slot, which is written as a whole. The longest mark has about 550 characters. */
const SLOT_BYTES = 1_024;
const SLOT_COUNT_MAX = 4_096;
/** After so long without a heartbeat an operator decides anyway: the marker is removed, so that deleted stores leave nothing behind. */
const ABANDONED_AFTER_MS = SILENCE_MAX_MS;
const PREFIX = "callnumber-";
const SUFFIX = ".restart";
/** Begins each slot. Marks in another format, of another release, are ignored. */
const FORM = "callnumber-restart-1";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, W_OK, X_OK } = constants;
/** In a folder that every user may write to: no link is followed, and no pipe can make the opening wait. */
const READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
const CREATE_FLAGS = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;

/** A mark as it was found. */
interface FoundMark extends RestartMark {
  /** By the clock that wrote it, ms. */
  readonly writtenAtMs: number;
  /** Of the file that it was written into. A copy is another one, whatever its name and its times: its folder may have been renamed. */
  readonly ino: number;
}

/** What earlier processes have left. */
export interface FoundMarker {
  /** By namespace. */
  readonly marks: ReadonlyMap<string, FoundMark>;
  /** When the file was last changed, ms. */
  readonly changedAtMs: number;
  readonly ino: number;
}

const NOTHING_FOUND: FoundMarker = { marks: new Map(), changedAtMs: 0, ino: 0 };

interface OpenMarker {
  readonly path: string;
  readonly file: number;
}

/** What prevents a marker, and what helps. */
export interface MarkerFault {
  readonly why: string;
  readonly remedy: string;
}

const NO_FOLDER: MarkerFault = {
  why: "this machine has no memory-backed directory for it that this user may write",
  remedy: "a tmpfs with room at /dev/shm (Linux)",
};

/** The restart marker of the store at `storePath`, a real path. Until `begin`, nothing is changed: a process that only reads leaves no trace. */
export class RestartMarker {
  readonly found: FoundMarker;
  readonly #machine: Machine;
  readonly #folders: readonly string[];
  /** Where it may be, the best first. */
  readonly #paths: readonly string[];
  /** Made by this process; undefined while there is none. */
  #open: OpenMarker | undefined;
  /** When this process last wrote the file, by the file's own time. */
  #changedNs: bigint | undefined;
  readonly #slots = new Map<string, number>();

  constructor(storePath: string, machine: Machine) {
    this.#machine = machine;
    this.#folders = machine.markerFolders.filter((folder) => isMemoryBacked(folder, machine));
    this.#paths = this.#folders.map((folder) => join(folder, nameOf(storePath)));
    const found = this.#paths.map((path) => readIfOwn(path, machine)).filter((marker) => marker !== undefined);
    // Of several, one at least is out of date.
    const [only = NOTHING_FOUND, ...others] = found;
    this.found = others.length === 0 ? only : NOTHING_FOUND;
  }

  /** Why no marker can be kept, as far as can be seen; undefined when there is a place for one. */
  get fault(): MarkerFault | undefined {
    if (this.#open !== undefined || this.#paths.some(isFree)) return undefined;
    const taken = this.#paths.find((path) => isAccessible(dirname(path)));
    if (taken === undefined) return NO_FOLDER;
    const why = `${taken} has the name of its marker, and this user can't remove it`;
    return { why, remedy: `rm ${shellWord(taken)}, as its owner or root` };
  }

  /**
   * Removes what earlier processes have left: the markers of this store, known by the ids of its namespaces, also under another name of
   * its file, and abandoned ones. What can't be removed is void all the same.
   */
  begin(storeIds: ReadonlySet<string>): void {
    for (const path of [...this.#paths, ...this.#folders.flatMap(markersIn)]) {
      try {
        if (this.#paths.includes(path) || isOutdated(path, storeIds, this.#machine)) unlinkSync(path);
      } catch {
        // It is not there, or another user's.
      }
    }
  }

  /** Writes these marks; those of other namespaces stay. @throws when one can't be written: then `remove`. */
  write(marks: readonly RestartMark[]): void {
    // Another process changed, moved or removed it. What is not written again is recovered at the next start.
    if (this.#open !== undefined && this.#stateOf(this.#open.file) !== this.#changedNs) this.remove();
    this.#open ??= created(this.#paths);
    const { file } = this.#open;
    for (const mark of marks) {
      const slot = this.#slots.get(mark.namespace) ?? this.#slots.size;
      this.#slots.set(mark.namespace, slot);
      writeSlot(file, slot, mark);
    }
    this.#changedNs = this.#stateOf(file);
  }

  /** Removes all marks that this process wrote. @throws when the file can neither be emptied nor removed. */
  remove(): void {
    if (this.#open === undefined) return;
    voidMarker(this.#open);
    this.#slots.clear();
    this.close();
  }

  close(): void {
    if (this.#open !== undefined) closeOnce(this.#open.file);
    this.#open = undefined;
  }

  /** Undefined for a file without a name, which no start would find. */
  #stateOf(file: number): bigint | undefined {
    const { nlink, ctimeNs } = fstatSync(file, { bigint: true });
    return nlink === 1n ? ctimeNs : undefined;
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

/** Whether a marker can be made there, after what this user may remove is removed. */
function isFree(path: string): boolean {
  if (!isAccessible(dirname(path))) return false;
  const found = lstatSync(path, { throwIfNoEntry: false });
  const euid = process.geteuid?.();
  return found === undefined || (!found.isDirectory() && (euid === 0 || found.uid === euid));
}

function isAccessible(folder: string): boolean {
  try {
    accessSync(folder, W_OK | X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @throws the last error. */
function created(paths: readonly string[]): OpenMarker {
  let reason: unknown = new Error(NO_FOLDER.why);
  for (const path of paths) {
    try {
      return { path, file: openSync(path, CREATE_FLAGS, 0o600) };
    } catch (error) {
      reason = error;
    }
  }
  throw reason;
}

/** The marks in a marker; undefined where there is none that is a file of this user alone. */
function readIfOwn(path: string, { changedNsOf }: Pick<Machine, "changedNsOf">): FoundMarker | undefined {
  let file: number;
  try {
    file = openSync(path, READ_FLAGS);
  } catch {
    return undefined;
  }
  try {
    if (!isOwn(file)) return undefined;
    const marks = new Map(marksIn(readFileSync(file, "latin1")).map((mark) => [mark.namespace, mark]));
    return { marks, changedAtMs: Number(changedNsOf(file) / 1_000_000n), ino: fstatSync(file).ino };
  } catch {
    return undefined;
  } finally {
    closeOnce(file);
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
  try {
    const names = readdirSync(folder).filter((name) => name.startsWith(PREFIX) && name.endsWith(SUFFIX));
    return names.map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Whether nothing rewrites the marker any more: one of this store by another name of its file, or abandoned. */
function isOutdated(path: string, storeIds: ReadonlySet<string>, machine: Machine): boolean {
  const { uid, mtimeMs } = lstatSync(path);
  if (uid === process.geteuid?.() && mtimeMs < Date.now() - ABANDONED_AFTER_MS) return true;
  const marks = [...(readIfOwn(path, machine)?.marks.values() ?? [])];
  return marks.some(({ storeId }) => storeIds.has(storeId));
}

/** Either half is enough: an empty marker has no marks, and one without a name is not found. */
function voidMarker({ path, file }: OpenMarker): void {
  let isEmpty = false;
  try {
    ftruncateSync(file, 0);
    isEmpty = true;
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
  const json = JSON.stringify({ ...mark, writtenAtMs: Date.now(), ino: fstatSync(file).ino } satisfies FoundMark);
  const text = `${FORM} ${sumOf(json)} ${json}`.padEnd(SLOT_BYTES - 1);
  const bytes = Buffer.from(`${text}\n`, "latin1");
  if (bytes.length !== SLOT_BYTES)
    throw new RangeError(`a restart mark of ${bytes.length} bytes does not fit its slot`);
  const written = writeSync(file, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
  if (written !== SLOT_BYTES)
    throw new Error(`only ${written} of ${SLOT_BYTES} bytes of the restart marker were written`);
}

/** Without damaged ones. */
function marksIn(text: string): readonly FoundMark[] {
  const slots = text.match(new RegExp(`[^]{1,${SLOT_BYTES}}`, "g")) ?? [];
  return slots.flatMap((slot) => {
    const [, form, sum, json = ""] = /^(\S+) ([0-9a-f]{40}) (\{.*\}) *\n$/.exec(slot) ?? [];
    return form === FORM && sum === sumOf(json) ? [JSON.parse(json) as FoundMark] : [];
  });
}

function sumOf(json: string): string {
  return hash("sha1", json);
}
