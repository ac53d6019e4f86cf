/**
 * The witness on disk: one small file for each coordinator and namespace, in a folder that is not the store's. A process writes
 * its own file only, and reads those of all: what one coordinator saw, every later one on this machine knows.
 *
 * Written at every range that is handed out, in place and without a sync: that outlives the process. Now and then written anew
 * and synced: that outlives the machine.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { CoordinatorError } from "../errors.js";
import { makePrivateFolder } from "../private-file.js";
import { DAMAGED, merged, type Remembrance, type Witness } from "./witness.js";

const SYNC_EVERY_MS = 5_000;
/** Files of coordinators that ended so long ago are taken over and removed. */
const ABANDONED_AFTER_MS = 3_600_000;
/** Each writing replaces the one before as a whole: all have the same length. */
const FILE_BYTES = 512;
/** As many fit; of more, those are enough to know the place again by. */
const ADDRESSES_MAX = 16;
const SUFFIX = ".witness";

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
 * The witness of a namespace. Makes the folder; writes no file before there is something to remember.
 * @throws CoordinatorError `witness_unusable` when the folder can't be read or made.
 */
export function openWitness({ folder, place, namespace, now = Date.now }: WitnessFolderOptions): Witness {
  const group = groupIn(place);
  const at = [...new Set(place.addresses)].map((address) => shortHash(address, ADDRESS_DIGITS));
  const path = join(folder, `${group}.${namespace}.${randomUUID()}${SUFFIX}`);
  const usable = <T>(act: () => T): T => orUnusable(folder, act);
  let file: number | undefined;
  let remembered: Remembrance | undefined;
  let syncedAtMs = 0;

  const others = () =>
    readdirSync(folder)
      .filter((name) => namespaceOf(name, group) === namespace && join(folder, name) !== path)
      .map((name) => join(folder, name));

  /** What other coordinators have noted here; a damaged file no longer tells where. */
  const notedHere = () =>
    others()
      .map((other) => ({ path: other, noted: notedIn(other) }))
      .filter(({ noted }) => noted === DAMAGED || noted?.at.some((address) => at.includes(address)));

  function writeAnew(text: string): void {
    const isFirst = file === undefined;
    if (file !== undefined) closeSync(file);
    const fresh = `${path}.new`;
    file = openSync(fresh, "w", 0o600);
    writeSync(file, text, 0);
    fsyncSync(file);
    renameSync(fresh, path);
    syncFolder(folder);
    syncedAtMs = now();
    // Only now: what the others knew is on the disk in ours.
    if (!isFirst) return;
    for (const { path: other } of notedHere()) if (isAbandoned(other)) removeIfThere(other);
  }

  return {
    read: () =>
      usable(() => {
        makePrivateFolder(folder);
        const found = notedHere().map(({ noted }) => noted);
        if (found.includes(DAMAGED)) return DAMAGED;
        const known = (found as Noted[]).map(({ remembrance }) => remembrance);
        mustBeOneStore(known, folder, namespace);
        remembered = known.length === 0 ? undefined : known.reduce(merged);
        return remembered;
      }),
    note: (remembrance) =>
      usable(() => {
        remembered = remembrance;
        const text = textOf({ remembrance, at });
        if (file === undefined || Math.abs(now() - syncedAtMs) >= SYNC_EVERY_MS) writeAnew(text);
        else writeSync(file, text, 0);
      }),
    close: () => {
      if (file === undefined) return;
      if (remembered !== undefined) usable(() => writeAnew(textOf({ remembrance: remembered as Remembrance, at })));
      closeSync(file);
      file = undefined;
    },
  };

  function isAbandoned(other: string): boolean {
    const found = statSync(other, { throwIfNoEntry: false });
    return found !== undefined && now() - found.mtimeMs > ABANDONED_AFTER_MS;
  }
}

/**
 * What is remembered of a place, by namespace. Makes nothing.
 * @throws CoordinatorError as `Witness.read`.
 */
export function rememberedAt(folder: string, place: StorePlace): ReadonlyMap<string, Remembrance | typeof DAMAGED> {
  const names = orUnusable(folder, () => (existsSync(folder) ? readdirSync(folder) : []));
  const namespaces = new Set(names.map((name) => namespaceOf(name, groupIn(place))));
  const found = new Map<string, Remembrance | typeof DAMAGED>();
  for (const namespace of namespaces) {
    const remembered = namespace && openWitness({ folder, place, namespace }).read();
    if (namespace && remembered) found.set(namespace, remembered);
  }
  return found;
}

/** What a file holds: what is remembered, and of which place. */
interface Noted {
  readonly remembrance: Remembrance;
  /** Hashes of its addresses. */
  readonly at: readonly string[];
}

const ADDRESS_DIGITS = 12;

function groupIn({ group }: StorePlace): string {
  return shortHash(group, 16);
}

/** Which namespace a file of the group is about, by its name; undefined for other files. A namespace may hold dots. */
function namespaceOf(name: string, group: string): string | undefined {
  const [, ofGroup, namespace] = /^([0-9a-f]{16})\.(.+)\.[0-9a-f-]{36}\.witness$/.exec(name) ?? [];
  return ofGroup === group ? namespace : undefined;
}

function shortHash(text: string, digits: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}

function textOf({ remembrance, at }: Noted): string {
  const json = JSON.stringify({ ...remembrance, at: at.slice(0, ADDRESSES_MAX) });
  const line = `${createHash("sha1").update(json).digest("hex")} ${json}`;
  return `${line.padEnd(FILE_BYTES - 1)}\n`;
}

/** What a file holds; undefined for one that is just being removed. */
function notedIn(path: string): Noted | undefined | typeof DAMAGED {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [, sum, json = ""] = /^([0-9a-f]{40}) (\{.*\}) *\n$/.exec(text) ?? [];
  if (sum !== createHash("sha1").update(json).digest("hex")) return DAMAGED;
  const { at, ...remembrance } = JSON.parse(json) as Remembrance & Pick<Noted, "at">;
  return { remembrance, at };
}

function mustBeOneStore(known: readonly Remembrance[], folder: string, namespace: string): void {
  const storeIds = [...new Set(known.map(({ storeId }) => storeId))];
  if (storeIds.length < 2) return;
  throw new CoordinatorError(
    "store_replaced",
    `the witness folder ${folder} remembers more than one store for namespace "${namespace}": ${storeIds.join(", ")}. ` +
      "Find out which one the archive's numbers come from, and remove the files of the other",
  );
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
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
