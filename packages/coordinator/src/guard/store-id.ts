/**
 * The store id, `<uuid>.<first ledger id>.<instant it was made, ms>.<rate>`: never changed. The first version and run of the
 * store follow from it alone, and with a clock its run ceiling. `move` keeps the UUID, which names the files of trimmed leases, and nothing else.
 * The seal of a store that was moved, in the field `ph` of its record, has the id that it goes on as.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";

/** By how many runs per second the run ceiling rises. */
export const RATE_DEFAULT = 2;
export const RATE_MAX = 16;

const PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(\d{1,10})\.(\d{1,15})\.(\d{1,2})$/;

export interface StoreIdFields {
  /** The version of the first call numbers: 0, and one more with each move. */
  readonly firstVersion: number;
  /** The first run of that version. */
  readonly firstRun: number;
  readonly initializedAtMs: number;
  readonly rate: number;
}

/** `firstVersion`: default 0. */
export function newStoreId(
  { firstVersion = 0, firstRun, initializedAtMs, rate }: Omit<StoreIdFields, "firstVersion"> & Partial<StoreIdFields>,
  uuid: string = randomUUID(),
): string {
  return `${uuid}.${ledgerIdOf(firstVersion, firstRun)}.${initializedAtMs}.${rate}`;
}

/** Parses a store id of a record or a checkpoint. @throws Error when the text is none. */
export function storeIdFields(storeId: string): StoreIdFields {
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is not a store id`);
  return id;
}

/** Returns the id of the new store of a move. @throws Error when the text is no store id. */
export function nextStoreId(storeId: string, firstVersion: number, initializedAtMs: number, firstRun = 1): string {
  const { rate } = storeIdFields(storeId);
  return newStoreId({ firstVersion, firstRun, initializedAtMs, rate }, storeId.slice(0, storeId.indexOf(".")));
}

/** Whether one store was moved to the other, perhaps over others between, or the other was made for a move that gave the one up. */
export function isMovedFrom(earlier: string, later: string): boolean {
  const [one, other] = [parseStoreId(earlier), parseStoreId(later)];
  const isSameUuid = earlier.split(".", 1)[0] === later.split(".", 1)[0];
  return isSameUuid && one !== undefined && other !== undefined && firstLedgerIdOf(one) < firstLedgerIdOf(other);
}

/** Sorts stores: the one that the others became first. */
export function byMoves(one: { readonly storeId: string }, other: { readonly storeId: string }): number {
  return Number(isMovedFrom(one.storeId, other.storeId)) - Number(isMovedFrom(other.storeId, one.storeId));
}

function firstLedgerIdOf({ firstVersion, firstRun }: StoreIdFields): number {
  return ledgerIdOf(firstVersion, firstRun);
}

/** Parses a store id; undefined when the text is none. */
export function parseStoreId(storeId: string): StoreIdFields | undefined {
  const match = PATTERN.exec(storeId);
  if (match === null) return undefined;
  const [firstLedgerId, initializedAtMs, rate] = match.slice(1).map(Number) as [number, number, number];
  const { version: firstVersion, run: firstRun } = runOfLedgerId(firstLedgerId);
  if (firstRun < 1 || firstVersion > VERSION_MAX || rate < 1 || rate > RATE_MAX) return undefined;
  return { firstVersion, firstRun, initializedAtMs, rate };
}

export const MOVED_SEAL = "moved";
/** Characters of store id and place, without spaces, in the seal of a move. */
export const MOVED_TEXT_LENGTH_MAX = 480;
const DONE = " done";
const MOVED_PATTERN = new RegExp(`^${MOVED_SEAL}(?: ([!-~]{1,${MOVED_TEXT_LENGTH_MAX}}))?(?:${DONE})?$`);

/** Where a moved store went, and the store id that it goes on as there. */
export interface MovedTo {
  readonly storeId: string;
  readonly place: string;
}

/**
 * The seal of a store that was moved, of printable ASCII without spaces. It keeps what the first try decided: every further try
 * goes on to the same place as the same store.
 */
export function movedSeal({ storeId, place }: MovedTo): string {
  return `${MOVED_SEAL} ${storeId}@${place}`;
}

/** The seal of a move, and that the new store is being made, or was: from then on, nothing at its place means that it is elsewhere, or lost. */
export function doneSeal(seal: string): string {
  return isDoneSeal(seal) ? seal : `${seal}${DONE}`;
}

export function isDoneSeal(seal: string): boolean {
  return isMovedSeal(seal) && seal.endsWith(DONE);
}

export function isMovedSeal(seal: string): boolean {
  return MOVED_PATTERN.test(seal);
}

/** What follows "moved", for a refusal; empty for none. */
export function textOfMove(seal: string): string {
  return MOVED_PATTERN.exec(seal)?.[1] ?? "";
}

/** Undefined for a text that no `movedSeal` holds. */
export function movedToIn(text: string): MovedTo | undefined {
  const [storeId = ""] = text.split("@", 1);
  return parseStoreId(storeId) && { storeId, place: text.slice(storeId.length + 1) };
}

/** Returns the moves of one store, each once, the latest first: one that gave another up, or else was begun later. */
export function latestFirst(texts: readonly string[]): readonly string[] {
  const placeOf = (text: string): readonly [number, number] => {
    const id = parseStoreId(movedToIn(text)?.storeId ?? "");
    return id === undefined ? [0, 0] : [firstLedgerIdOf(id), id.initializedAtMs];
  };
  return [...new Set(texts)].sort((one, other) => {
    const [[oneId, oneMs], [otherId, otherMs]] = [placeOf(one), placeOf(other)];
    return otherId - oneId || otherMs - oneMs;
  });
}

/** Returns the URL of a place for a command: in a seal it has no character but printable ASCII. */
export function urlOfPlace(place: string): string {
  try {
    return decodeURIComponent(place);
  } catch {
    // Not from a URL: shown as it is.
    return place;
  }
}
