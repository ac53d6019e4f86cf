/**
 * What a coordinator remembers of a namespace outside the store, so that its own end does not end the memory. Losing it loses
 * a warning; it never moves a counter by itself.
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import type { NamespaceRecord } from "../store.js";

export interface Remembrance {
  readonly storeId: string;
  /** Ledger id of the greatest run seen. */
  readonly ledgerId: number;
  /** The greatest generation seen. */
  readonly generation: number;
  readonly nodeCount: number;
}

/** Something was remembered and can't be read any more: the store is to be doubted. */
export const DAMAGED = "damaged";

export interface Witness {
  /** What was remembered last, by this coordinator or another one on this machine; undefined for nothing. */
  read(): Remembrance | typeof DAMAGED | undefined;
  /** Keeps it, so that it outlives the process when this returns. */
  note(remembrance: Remembrance): void;
  close(): void;
}

/** For a coordinator that was given no place to remember in. */
export const NO_WITNESS: Witness = {
  read: () => undefined,
  note: () => {},
  close: () => {},
};

/** What a record, or a step that has just written it, tells of a store. */
export function remembranceOf({ storeId, version, highWaterMark, generation, nodeCount }: RecordSeen): Remembrance {
  return { storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount };
}

type RecordSeen = Pick<NamespaceRecord, "storeId" | "version" | "highWaterMark" | "generation" | "nodeCount">;

/** The greater of what is known of one store; of two stores, the first. */
export function merged(one: Remembrance, other: Remembrance): Remembrance {
  if (one.storeId !== other.storeId) return one;
  return {
    storeId: one.storeId,
    ledgerId: Math.max(one.ledgerId, other.ledgerId),
    generation: Math.max(one.generation, other.generation),
    nodeCount: other.generation > one.generation ? other.nodeCount : one.nodeCount,
  };
}

export function isSameRemembrance(one: Remembrance, other: Remembrance): boolean {
  return one.storeId === other.storeId && one.ledgerId === other.ledgerId && one.generation === other.generation;
}
