/**
 * The witness on disk: one small file for each coordinator and namespace, in a folder that is not the store's. A process writes
 * its own file only, and reads those of all: what one coordinator saw, every later one on this machine knows.
 *
 * Written at every range that is handed out, in place and without a sync: that outlives the process. Every five seconds, and after
 * each failure, replaced by a new file that is synced: that outlives the machine. No descriptor is kept between two writings: the
 * number of a closed one may by then be a connection, or the file of another namespace.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { CoordinatorError } from "../errors.js";
import { makePrivateFolder } from "../platform/private-file.js";
import { type Checkpoint, type CheckpointFile, CORRUPT, merged } from "./checkpoint.js";

const SYNC_EVERY_MS = 5_000;
/** Files of coordinators that ended so long ago are taken over and removed. */
const ABANDONED_AFTER_MS = 3_600_000;
/** Each writing replaces the one before as a whole: all have the same length. */
const FILE_BYTES = 1_024;
/** As many fit; of more, those are enough to know the place again by. */
const ADDRESSES_MAX = 16;
const SUFFIX = ".witness";
/** A namespace may hold dots. */
const NAME = /^([0-9a-f]{16})\.(.+)\.[0-9a-f-]{36}\.witness$/;

/**
 * Where a store is, without secrets: what was seen at one place is not held against another. Two places are the same when the group
 * is and they have an address in common: servers are added to a group and taken from it, and two groups may bear the same name.
 */
export interface StorePlace {
  readonly group: string;
  readonly addresses: readonly string[];
}

export interface WitnessFolderOptions {
  readonly folder: string;
  readonly place: StorePlace;
  readonly namespace: string;
  readonly now?: () => number;
}

/**
 * The witness of a namespace. Makes folder and file when there is something to remember.
 * @throws CoordinatorError `witness_unusable` when the folder can't be read or written.
 */
export function openCheckpointFile({ folder, place, namespace, now = Date.now }: WitnessFolderOptions): CheckpointFile {
  const at = addressesOf(place);
  const path = join(folder, `${groupOf(place)}.${namespace}.${randomUUID()}${SUFFIX}`);
  const usable = <T>(act: () => T): T => orUnusable(folder, act);
  let hasFile = false;
  let remembered: Checkpoint | undefined;
  /** Undefined while only a new file will do. */
  let syncedAtMs: number | undefined;

  /** What other coordinators have noted here. */
  const notedHere = () =>
    filesIn(folder, place)
      .filter((file) => file.namespace === namespace && file.path !== path)
      .map((file) => ({ path: file.path, noted: notedIn(file) }))
      .filter(({ noted }) => isOf(noted, at));

  function write(text: string): void {
    const lastSyncMs = syncedAtMs;
    syncedAtMs = undefined;
    if (lastSyncMs !== undefined && Math.abs(now() - lastSyncMs) < SYNC_EVERY_MS) {
      try {
        writeFileSync(path, text, { flag: "r+" });
        syncedAtMs = lastSyncMs;
        return;
      } catch {
        // The file was removed, or holds half of the text: a new one takes its place.
      }
    }
    makePrivateFolder(folder);
    replaceFile(folder, path, text);
    syncedAtMs = now();
    const isFirst = !hasFile;
    hasFile = true;
    // Only now: what the others knew is on the disk in ours.
    if (isFirst) removeAbandoned();
  }

  return {
    read: () =>
      usable(() => {
        const found = notedHere().map(({ noted }) => noted);
        if (found.includes(CORRUPT)) return CORRUPT;
        const known = (found as Noted[]).map(({ remembrance }) => remembrance);
        mustBeOneStore(known, folder, namespace);
        remembered = known.length === 0 ? undefined : known.reduce(merged);
        return remembered;
      }),
    note: (remembrance) =>
      usable(() => {
        remembered = remembrance;
        write(textOf({ namespace, remembrance, at }));
      }),
    close: () => {
      if (!hasFile) return;
      hasFile = false;
      usable(() => replaceFile(folder, path, textOf({ namespace, remembrance: remembered as Checkpoint, at })));
    },
  };

  function removeAbandoned(): void {
    try {
      for (const { path: other } of notedHere()) if (isAbandoned(other)) unlinkSync(other);
    } catch {
      // A file that stays is read again by the next start.
    }
  }

  function isAbandoned(other: string): boolean {
    return now() - statSync(other).mtimeMs > ABANDONED_AFTER_MS;
  }
}

/**
 * The namespaces of which something is remembered at a place, also those that the store there holds no more.
 * @throws CoordinatorError `witness_unusable` when the folder can't be read.
 */
export function checkpointedNamespaces(folder: string, place: StorePlace): ReadonlySet<string> {
  const at = addressesOf(place);
  return orUnusable(folder, () => {
    const files = filesIn(folder, place).filter((file) => isOf(notedIn(file), at));
    return new Set(files.map(({ namespace }) => namespace));
  });
}

/**
 * What is remembered of a place, by namespace. Makes nothing.
 * @throws CoordinatorError as `CheckpointFile.read`.
 */
export function checkpointsAt(folder: string, place: StorePlace): ReadonlyMap<string, Checkpoint | typeof CORRUPT> {
  const namespaces = [...checkpointedNamespaces(folder, place)];
  const remembered = namespaces.map(
    (namespace) => [namespace, openCheckpointFile({ folder, place, namespace }).read()] as const,
  );
  return new Map(remembered.filter((entry): entry is [string, Checkpoint | typeof CORRUPT] => entry[1] !== undefined));
}

/** For a new store: one whose witness can't be written is better not made. @throws CoordinatorError `witness_unusable`. */
export function makeCheckpointDirectory(folder: string): void {
  orUnusable(folder, () => makePrivateFolder(folder));
}

/** What a file holds: what is remembered, and of which namespace and place. */
interface Noted {
  readonly namespace: string;
  readonly remembrance: Checkpoint;
  /** Hashes of its addresses. */
  readonly at: readonly string[];
}

/** A file, and the namespace in its name. */
interface NamedFile {
  readonly namespace: string;
  readonly path: string;
}

const ADDRESS_DIGITS = 12;

function groupOf({ group }: StorePlace): string {
  return shortHash(group, 16);
}

function addressesOf({ addresses }: StorePlace): readonly string[] {
  return [...new Set(addresses)].map((address) => shortHash(address, ADDRESS_DIGITS));
}

/** A damaged file does not show where. */
function isOf(noted: Noted | typeof CORRUPT | undefined, at: readonly string[]): boolean {
  return noted === CORRUPT || (noted?.at.some((address) => at.includes(address)) ?? false);
}

function shortHash(text: string, digits: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}

function textOf({ namespace, remembrance, at }: Noted): string {
  const json = JSON.stringify({ namespace, ...remembrance, at: at.slice(0, ADDRESSES_MAX) });
  const line = `${createHash("sha1").update(json).digest("hex")} ${json}`;
  return `${line.padEnd(FILE_BYTES - 1)}\n`;
}

/** What a file holds for its namespace; undefined for a file that was removed meanwhile. */
function notedIn({ path, namespace }: NamedFile): Noted | undefined | typeof CORRUPT {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [, sum, json = ""] = /^([0-9a-f]{40}) (\{.*\}) *\n$/.exec(text) ?? [];
  if (sum !== createHash("sha1").update(json).digest("hex")) return CORRUPT;
  const { namespace: of, at, ...remembrance } = JSON.parse(json) as Checkpoint & Omit<Noted, "remembrance">;
  return of === namespace ? { namespace, remembrance, at } : CORRUPT;
}

function mustBeOneStore(known: readonly Checkpoint[], folder: string, namespace: string): void {
  const storeIds = [...new Set(known.map(({ storeId }) => storeId))];
  if (storeIds.length < 2) return;
  throw new CoordinatorError(
    "store_replaced",
    `the witness folder ${folder} remembers more than one store for namespace "${namespace}": ${storeIds.join(", ")}. ` +
      "Find out which one the archive's numbers come from, and remove the files of the other",
  );
}

/** The files of a group of servers, by their names. */
function filesIn(folder: string, place: StorePlace): readonly NamedFile[] {
  return namesIn(folder).flatMap((name) => {
    const [, group, namespace] = NAME.exec(name) ?? [];
    return namespace === undefined || group !== groupOf(place) ? [] : [{ namespace, path: join(folder, name) }];
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** What was there stays whole until the new file is on the disk; a failure may have replaced it or not. */
function replaceFile(folder: string, path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function orUnusable<T>(folder: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof CoordinatorError) throw error;
    throw new CoordinatorError(
      "witness_unusable",
      `the witness folder ${folder} can't be used (${(error as Error).message}). It remembers outside the store which runs were ` +
        "leased: give a folder that can be written (--witness-folder)",
      { cause: error },
    );
  }
}
