/**
 * Checkpoints on disk: one small file for each coordinator and namespace, in a directory outside the store. A process writes only its own file
 * and reads all: what one coordinator saw, every later one on this machine knows.
 *
 * Written for every range that is handed out, in place and without a sync: that survives the process. Every five seconds, and after a failure,
 * replaced by a new synced file: that survives the machine; so is one that notes a move, before the new store is made. No descriptor stays open
 * between two writes: the number of a closed one may by then be a connection, or the file of another namespace.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { hash, randomUUID } from "node:crypto";
import { readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CoordinatorError } from "../errors.js";
import { makePrivateDirectory } from "../platform/private-file.js";
import {
  type Checkpoint,
  type CheckpointFile,
  CORRUPT,
  laterStoresIn,
  type MoveHere,
  mergeCheckpoints,
  movesIn,
} from "./checkpoint.js";
import { namesIn, orUnusable, replaceFile } from "./checkpoint-directory.js";
import { movedToIn } from "./store-id.js";
import { readRecoveredMin, writeRecoveredMin } from "./uncounted-node.js";

const SYNC_EVERY_MS = 5_000;
/** Files of coordinators that ended so long ago are merged and removed. */
const ABANDONED_AFTER_MS = 3_600_000;
/** All files have the same length, so that each write in place replaces the whole text; one that notes a move is never written in place. */
const FILE_BYTES = 1_024;
/** As many fit, and they are enough to recognize the place. */
const ADDRESSES_MAX = 16;
const SUFFIX = ".checkpoint";
/** A namespace may include dots. */
const NAME = /^([0-9a-f]{16})\.(.+)\.[0-9a-f-]{36}\.checkpoint$/;

/**
 * Where a store is, without secrets: a checkpoint counts for its place only, and its move for its store id. Two places are the same if they have
 * the group and an address in common: servers are added to a group and removed from it, and two groups may have the same name.
 */
export interface StorePlace {
  readonly group: string;
  readonly addresses: readonly string[];
  /** As seals name it; only moves need it. */
  readonly url?: string;
}

export interface CheckpointFileOptions {
  readonly folder: string;
  readonly place: StorePlace;
  readonly namespace: string;
  readonly now?: () => number;
}

/** The first write makes directory and file. @throws CoordinatorError `checkpoint_unavailable` when the directory can't be read or written. */
export function openCheckpointFile({
  folder,
  place,
  namespace,
  now = Date.now,
}: CheckpointFileOptions): CheckpointFile {
  const at = addressesOf(place);
  const path = join(folder, `${groupOf(place)}.${namespace}.${randomUUID()}${SUFFIX}`);
  const usable = <T>(act: () => T): T => orUnusable(folder, act);
  let hasFile = false;
  let latest: Checkpoint | undefined;
  /** Undefined while the next write must replace the file. */
  let syncedAtMs: number | undefined;

  /** The files of other coordinators of this namespace and place. */
  const foreignFiles = () =>
    filesIn(folder, place)
      .filter((file) => file.namespace === namespace && file.path !== path)
      .map((file) => ({ path: file.path, noted: contentOf(file) }))
      .filter(({ noted }) => isAt(noted, at));

  function readAll() {
    const found = foreignFiles().map(({ noted }) => noted);
    const known = found.flatMap((noted) => (noted === CORRUPT || noted === undefined ? [] : [noted.checkpoint]));
    assertOneStore(known, folder, namespace);
    const merged = known.length === 0 ? undefined : known.reduce(mergeCheckpoints);
    return { merged, isDamaged: found.includes(CORRUPT) };
  }

  function write(text: string, mustSync: boolean): void {
    const lastSyncMs = mustSync ? undefined : syncedAtMs;
    syncedAtMs = undefined;
    if (lastSyncMs !== undefined && Math.abs(now() - lastSyncMs) < SYNC_EVERY_MS) {
      try {
        writeFileSync(path, text, { flag: "r+" });
        syncedAtMs = lastSyncMs;
        return;
      } catch {
        // The file was removed, or holds half of the text: replace it.
      }
    }
    makePrivateDirectory(folder);
    replaceFile(folder, path, text);
    syncedAtMs = now();
    if (hasFile) return;
    hasFile = true;
    // Only now: their checkpoints are part of ours, which is on the disk.
    removeAbandoned();
  }

  return {
    read: () =>
      usable(() => {
        const { merged, isDamaged } = readAll();
        // Whatever a damaged file had: a store that was moved leases nothing.
        return isDamaged && merged?.movedTo === undefined ? CORRUPT : merged;
      }),
    readable: () => usable(() => readAll().merged),
    note: (checkpoint) =>
      usable(() => {
        latest = checkpoint;
        write(textOf({ namespace, checkpoint, at, from: place.url }), textOfMoveIn(checkpoint) !== undefined);
      }),
    movesOf: (storeId) => usable(() => movesIn(checkpointsIn(folder, namespace), storeId)),
    laterStoresOf: (storeId) => usable(() => laterStoresIn(checkpointsIn(folder, namespace), storeId)),
    recoveredMin: (storeId) => usable(() => readRecoveredMin(folder, storeId, namespace)),
    noteRecoveredMin: (storeId, recoveredMin) =>
      usable(() => writeRecoveredMin(folder, storeId, namespace, recoveredMin)),
    movesHere: () => usable(() => movesTo(folder, place).filter((move) => move.namespace === namespace)),
    close: () => {
      if (!hasFile) return;
      hasFile = false;
      usable(() =>
        replaceFile(folder, path, textOf({ namespace, checkpoint: latest as Checkpoint, at, from: place.url })),
      );
    },
  };

  function removeAbandoned(): void {
    try {
      for (const { path: other, noted } of foreignFiles()) {
        // A record that was made again after a move was noted without it.
        const hasOnlyMove =
          noted !== CORRUPT && noted?.checkpoint.movedTo !== undefined && latest?.movedTo === undefined;
        if (isAbandoned(other) && !hasOnlyMove) unlinkSync(other);
      }
    } catch {
      // The next start reads a file that stays.
    }
  }

  function isAbandoned(other: string): boolean {
    return now() - statSync(other).mtimeMs > ABANDONED_AFTER_MS;
  }
}

/**
 * Returns the namespaces that have a checkpoint at a place, also those that the store there has lost, or that `move` was to bring there.
 * @throws CoordinatorError `checkpoint_unavailable` when the folder can't be read.
 */
export function checkpointedNamespaces(folder: string, place: StorePlace): ReadonlySet<string> {
  const at = addressesOf(place);
  return orUnusable(folder, () => {
    const files = filesIn(folder, place).filter((file) => isAt(contentOf(file), at));
    return new Set([...files, ...movesTo(folder, place)].map(({ namespace }) => namespace));
  });
}

/**
 * Returns the checkpoints of a place, by namespace. Writes nothing.
 * @throws CoordinatorError as `CheckpointFile.read`.
 */
export function checkpointsAt(folder: string, place: StorePlace): ReadonlyMap<string, Checkpoint | typeof CORRUPT> {
  const namespaces = [...checkpointedNamespaces(folder, place)];
  const checkpoints = namespaces.map(
    (namespace) => [namespace, openCheckpointFile({ folder, place, namespace }).read()] as const,
  );
  return new Map(checkpoints.filter((entry): entry is [string, Checkpoint | typeof CORRUPT] => entry[1] !== undefined));
}

/** For a new store: it is not made where no checkpoint can be written. @throws CoordinatorError `checkpoint_unavailable`. */
export function makeCheckpointDirectory(folder: string): void {
  orUnusable(folder, () => makePrivateDirectory(folder));
}

/** The content of a file. */
interface FileContent {
  readonly namespace: string;
  readonly checkpoint: Checkpoint;
  /** Hashes of the addresses of its place. */
  readonly at: readonly string[];
  /** Its place, where it is needed: for a store that moves. */
  readonly from?: string | undefined;
}

/** A file, by its name. */
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

/** A corrupt file does not show where its store is: it counts for every place. */
function isAt(noted: FileContent | typeof CORRUPT | undefined, at: readonly string[]): boolean {
  return noted === CORRUPT || (noted?.at.some((address) => at.includes(address)) ?? false);
}

function shortHash(text: string, digits: number): string {
  return hash("sha256", text).slice(0, digits);
}

function textOf({ namespace, checkpoint, at, from }: FileContent): string {
  const source = textOfMoveIn(checkpoint) === undefined ? {} : { from };
  const json = JSON.stringify({ namespace, ...checkpoint, ...source, at: at.slice(0, ADDRESSES_MAX) });
  const line = `${hash("sha1", json)} ${json}`;
  return `${line.padEnd(FILE_BYTES - 1)}\n`;
}

/** Reads a file; undefined when it was removed meanwhile. */
function contentOf({ path, namespace }: NamedFile): FileContent | undefined | typeof CORRUPT {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [, sum, json = ""] = /^([0-9a-f]{40}) (\{.*\}) *\n$/.exec(text) ?? [];
  if (sum !== hash("sha1", json)) return CORRUPT;
  const { namespace: of, at, from, ...checkpoint } = JSON.parse(json) as Checkpoint & Omit<FileContent, "checkpoint">;
  return of === namespace ? { namespace, checkpoint, at, from } : CORRUPT;
}

function assertOneStore(known: readonly Checkpoint[], folder: string, namespace: string): void {
  const storeIds = [...new Set(known.map(({ storeId }) => storeId))];
  if (storeIds.length < 2) return;
  throw new CoordinatorError(
    "store_id_mismatch",
    `the checkpoint directory ${folder} has checkpoints of more than one store for namespace "${namespace}": ${storeIds.join(", ")}. ` +
      "Remove the files of the store that the archive's numbers do not come from",
  );
}

/** Lists the files of a group of servers; without one all files. */
function filesIn(folder: string, place?: StorePlace): readonly NamedFile[] {
  return namesIn(folder).flatMap((name) => {
    const [, group, namespace] = NAME.exec(name) ?? [];
    const isMeant = place === undefined || group === groupOf(place);
    return namespace === undefined || !isMeant ? [] : [{ namespace, path: join(folder, name) }];
  });
}

/** What the checkpoints of sources have of moves to a place. One that only began counts no more once its source has moved elsewhere. */
function movesTo(folder: string, { url }: StorePlace): readonly (MoveHere & Pick<FileContent, "namespace">)[] {
  if (url === undefined) return [];
  return filesIn(folder).flatMap((file) => {
    const noted = contentOf(file);
    if (noted === undefined || noted === CORRUPT || noted.from === undefined) return [];
    const { namespace, checkpoint, from } = noted;
    const { place, storeId } = movedToIn(textOfMoveIn(checkpoint) ?? "") ?? {};
    if (place !== url || storeId === undefined) return [];
    const [latest] = movesIn(checkpointsIn(folder, namespace), checkpoint.storeId);
    return latest !== undefined && movedToIn(latest)?.place !== url ? [] : [{ namespace, from, storeId }];
  });
}

/** Of every place, since a store that comes back under another address is the same store. Damaged files show no store. */
function checkpointsIn(folder: string, namespace: string): readonly Checkpoint[] {
  return filesIn(folder).flatMap((file) => {
    const noted = file.namespace === namespace ? contentOf(file) : undefined;
    return noted === undefined || noted === CORRUPT ? [] : [noted.checkpoint];
  });
}

function textOfMoveIn({ movedTo, movesTo: planned }: Checkpoint): string | undefined {
  return movedTo ?? planned;
}
