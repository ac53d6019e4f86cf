/**
 * What a coordinator remembers of a namespace outside the store, so that it outlives the coordinator. Losing it loses a warning; it never
 * moves a counter.
 */
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import type { NamespaceRecord } from "../stores/store.js";

export interface Checkpoint {
  readonly storeId: string;
  /** Ledger id of the greatest run seen. */
  readonly ledgerId: number;
  /** The greatest generation seen. */
  readonly generation: number;
  readonly nodeCount: number;
}

/** There is a checkpoint, and it can't be read: the store may have rolled back. */
export const CORRUPT = "corrupt";

export interface CheckpointFile {
  /** Returns the last checkpoint of this coordinator or another one on this machine; undefined for none. */
  read(): Checkpoint | typeof CORRUPT | undefined;
  /** Writes a checkpoint, which outlives the process once this returns. */
  note(checkpoint: Checkpoint): void;
  close(): void;
}

/** For a coordinator without a place for checkpoints. */
export const NO_CHECKPOINT_FILE: CheckpointFile = {
  read: () => undefined,
  note: () => {},
  close: () => {},
};

type RecordSeen = Pick<NamespaceRecord, "storeId" | "version" | "highWaterMark" | "generation" | "nodeCount">;

/** Returns what a record has of its store, or a step that has just written it. */
export function checkpointOf({ storeId, version, highWaterMark, generation, nodeCount }: RecordSeen): Checkpoint {
  return { storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount };
}

/** Returns a checkpoint as operators read it. */
export function checkpointFields({ ledgerId, ...rest }: Checkpoint) {
  return { ...rest, ...runOfLedgerId(ledgerId) };
}

/** Returns the greater values of two checkpoints of one store; of two stores, the first checkpoint. */
export function mergeCheckpoints(one: Checkpoint, other: Checkpoint): Checkpoint {
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
