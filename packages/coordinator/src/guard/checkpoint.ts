/**
 * What a coordinator remembers of a namespace outside the store, so that its own end does not end the memory. Losing it loses
 * a warning; it never moves a counter by itself.
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import type { NamespaceRecord } from "../store.js";

export interface Checkpoint {
  readonly storeId: string;
  /** Ledger id of the greatest run seen. */
  readonly ledgerId: number;
  /** The greatest generation seen. */
  readonly generation: number;
  readonly nodeCount: number;
}

/** Something was remembered and can't be read any more: the store is to be doubted. */
export const CORRUPT = "damaged";

export interface CheckpointFile {
  /** What was remembered last, by this coordinator or another one on this machine; undefined for nothing. */
  read(): Checkpoint | typeof CORRUPT | undefined;
  /** Keeps it, so that it outlives the process when this returns. */
  note(remembrance: Checkpoint): void;
  close(): void;
}

/** For a coordinator that was given no place to remember in. */
export const NO_CHECKPOINT_FILE: CheckpointFile = {
  read: () => undefined,
  note: () => {},
  close: () => {},
};

/** What a record, or a step that has just written it, tells of a store. */
export function checkpointOf({ storeId, version, highWaterMark, generation, nodeCount }: RecordSeen): Checkpoint {
  return { storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount };
}

type RecordSeen = Pick<NamespaceRecord, "storeId" | "version" | "highWaterMark" | "generation" | "nodeCount">;

/** The greater of what is known of one store; of two stores, the first. */
export function merged(one: Checkpoint, other: Checkpoint): Checkpoint {
  if (one.storeId !== other.storeId) return one;
  return {
    storeId: one.storeId,
    ledgerId: Math.max(one.ledgerId, other.ledgerId),
    generation: Math.max(one.generation, other.generation),
    nodeCount: other.generation > one.generation ? other.nodeCount : one.nodeCount,
  };
}

export function isSameCheckpoint(one: Checkpoint, other: Checkpoint): boolean {
  return one.storeId === other.storeId && one.ledgerId === other.ledgerId && one.generation === other.generation;
}
