/**
 * What a coordinator remembers of a namespace, in the process and in a checkpoint file outside the store: lower bounds for every answer, and
 * whether the store was moved. Losing it loses a warning; it never moves a counter.
 * Guarantees: G8, G13 (docs/guarantees.md).
 */
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import type { Bounds } from "./clocks.js";
import type { RecordAfter, StepCommand } from "./commands.js";
import { type NamespaceRecord, recoveredGenerationAfter } from "./record.js";
import { refused } from "./refusals.js";
import { byMoves, isMovedFrom, isMovedSeal, latestFirst, movedToIn, storeIdFields, textOfMove } from "./store-id.js";

export interface Checkpoint {
  readonly storeId: string;
  /** Ledger id of the greatest run seen. */
  readonly ledgerId: number;
  /** The greatest generation seen. */
  readonly generation: number;
  readonly nodeCount: number;
  /** Where the store was moved to, as in its seal. Nothing is leased from it any more, also when it has forgotten the seal. */
  readonly movedTo?: string;
  /** Where `move` is about to take the store, as the seal will have it, until it is known to be set: the next try sets the same. */
  readonly movesTo?: string;
}

/** There is a checkpoint, and it can't be read: the store may have rolled back. */
export const CORRUPT = "corrupt";

/** A move to a place. */
export interface MoveHere {
  /** The place of the old store. */
  readonly from: string;
  /** The id of the new store. */
  readonly storeId: string;
}

/** `ledgerId`: the greatest that is known of it; 0 where it was perhaps never made. */
export type LaterStore = Pick<Checkpoint, "storeId" | "ledgerId">;

export interface CheckpointFile {
  /** Returns the last checkpoint of this coordinator or another one on this machine; undefined for none. */
  read(): Checkpoint | typeof CORRUPT | undefined;
  /** Returns what can be read of it, also next to a damaged file. */
  readable(): Checkpoint | undefined;
  /** Writes a checkpoint, which outlives the process once this returns. */
  note(checkpoint: Checkpoint): void;
  /** Returns the moves to here, as the checkpoints of their sources have them, whether they were finished or not. */
  movesHere(): readonly MoveHere[];
  /** Returns the moves of a store as its seals have them, the latest first, one unless one was given up: noted at whatever address it had then. */
  movesOf(storeId: string): readonly string[];
  /** Returns the stores that a store became by moves, or that gave it up, the latest first, as far as checkpoints of any place have them. */
  laterStoresOf(storeId: string): readonly LaterStore[];
  /** Returns what is noted of a node that a store's record does not count, see uncounted-node.ts: 0 for none. */
  recoveredMin(storeId: string): number;
  /** Notes it for every coordinator with this directory. It outlives the machine once this returns. */
  noteRecoveredMin(storeId: string, recoveredMin: number): void;
  close(): void;
}

/** For a coordinator without a place for checkpoints. */
export const NO_CHECKPOINT_FILE: CheckpointFile = {
  read: () => undefined,
  readable: () => undefined,
  note: () => {},
  movesHere: () => [],
  movesOf: () => [],
  laterStoresOf: () => [],
  recoveredMin: () => 0,
  noteRecoveredMin: () => {},
  close: () => {},
};

type RecordSeen = Pick<NamespaceRecord, "storeId" | "version" | "highWaterMark" | "generation" | "nodeCount"> &
  Partial<Pick<NamespaceRecord, "seal">>;

/**
 * Whether a record may be believed where no checkpoint shows what it had: another coordinator, which would have noticed a rollback, or
 * `init` wrote it a moment ago.
 */
export function isAttended(
  { changedAtMs }: Pick<NamespaceRecord, "changedAtMs">,
  nowMs: number,
  { attendedMs }: Pick<Bounds, "attendedMs">,
): boolean {
  return nowMs - changedAtMs <= attendedMs;
}

/** Returns what a record has of its store, or a step that has just written it. */
export function checkpointOf({
  storeId,
  version,
  highWaterMark,
  generation,
  nodeCount,
  seal = "",
}: RecordSeen): Checkpoint {
  const movedTo = isMovedSeal(seal) ? { movedTo: textOfMove(seal) } : {};
  return { storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount, ...movedTo };
}

/** Returns the moves that checkpoints have of a store, the latest first. */
export function movesIn(checkpoints: readonly Checkpoint[], storeId: string): readonly string[] {
  const own = checkpoints.filter((noted) => noted.storeId === storeId);
  return latestFirst(own.flatMap(({ movedTo }) => movedTo ?? []));
}

/** Returns the later stores that checkpoints have of a store, the latest first. Of one that only a note of a move has, no run is known. */
export function laterStoresIn(checkpoints: readonly Checkpoint[], storeId: string): readonly LaterStore[] {
  const known = checkpoints.flatMap(({ movedTo = "", ...noted }) => {
    const became = movedToIn(movedTo)?.storeId;
    return became === undefined ? [noted] : [noted, { storeId: became, ledgerId: 0 }];
  });
  return known.filter((each) => isMovedFrom(storeId, each.storeId)).sort(byMoves);
}

/** Returns the greatest ledger id that is known of one of these stores; 0 where it was perhaps never made. */
export function leasedIdOf(stores: readonly LaterStore[], storeId: string): number {
  return Math.max(0, ...stores.filter((each) => each.storeId === storeId).map(({ ledgerId }) => ledgerId));
}

/** Returns the store of a checkpoint, and the version that it had reached. */
export function versionIn({ storeId, ledgerId }: Checkpoint) {
  return { storeId, version: runOfLedgerId(ledgerId).version };
}

/** The error for a store that goes on as a later one than is asked for. */
export function movedOn(namespace: string, storeId: string): CoordinatorError {
  return new CoordinatorError(
    "namespace_moved",
    `namespace "${namespace}" was moved, and goes on as store ${storeId}, as a checkpoint has it. Use that store (--store). Nothing was changed`,
  );
}

/**
 * A store that became another one leases nothing, also where no note of its own move is left. One of an earlier version can't lease runs of the
 * later one. Returns the error `namespace_moved`, undefined for the latest store that checkpoints have.
 */
export function whyNotLatest(
  namespace: string,
  { storeId, version }: Pick<NamespaceRecord, "storeId" | "version">,
  file: CheckpointFile,
): CoordinatorError | undefined {
  const later = file.laterStoresOf(storeId).find((each) => version >= storeIdFields(each.storeId).firstVersion);
  return later && movedOn(namespace, later.storeId);
}

/** @throws CoordinatorError `namespace_moved`, see above. */
export function assertLatest(...of: Parameters<typeof whyNotLatest>): void {
  const moved = whyNotLatest(...of);
  if (moved !== undefined) throw moved;
}

/** Returns a checkpoint as operators read it. */
export function checkpointFields({ ledgerId, ...rest }: Checkpoint) {
  return { ...rest, ...runOfLedgerId(ledgerId) };
}

/**
 * Notes a step of an operator that the store has done already. @throws CoordinatorError `checkpoint_unavailable`, which says so: what was done
 * stays done.
 */
export function noteDone(file: CheckpointFile, checkpoint: Checkpoint, done: string): void {
  try {
    file.note(checkpoint);
  } catch (error) {
    const { code, message } = error as CoordinatorError;
    throw new CoordinatorError(code, `${done}, but its checkpoint was not written: ${message}`, { cause: error });
  }
}

/** Returns the greater values of two checkpoints of one store, moved if one of them is; of two stores, the first checkpoint. */
export function mergeCheckpoints(one: Checkpoint, other: Checkpoint): Checkpoint {
  if (one.storeId !== other.storeId) return one;
  const [movedTo] = latestFirst([one, other].flatMap((each) => each.movedTo ?? []));
  const movesTo = one.movesTo ?? other.movesTo;
  const move = movedTo !== undefined ? { movedTo } : movesTo !== undefined ? { movesTo } : {};
  return {
    storeId: one.storeId,
    ledgerId: Math.max(one.ledgerId, other.ledgerId),
    generation: Math.max(one.generation, other.generation),
    nodeCount: other.generation > one.generation ? other.nodeCount : one.nodeCount,
    ...move,
  };
}

/** Returns the checkpoint with the store's move, also where that was noted at another address: the store may have been copied or put back. */
export function withMove(checkpoint: Checkpoint, file: CheckpointFile): Checkpoint {
  const [movedTo = checkpoint.movedTo] = file.movesOf(checkpoint.storeId);
  return movedTo === undefined ? checkpoint : { ...checkpoint, movedTo };
}

export function isSameCheckpoint(one: Checkpoint, other: Checkpoint): boolean {
  return one.storeId === other.storeId && one.ledgerId === other.ledgerId && one.generation === other.generation;
}

/** After so many heartbeats of a namespace, one looks for a later store, too: about once a minute. */
const LOOK_EVERY_BEATS = 12;

export class GuardMemory {
  readonly #namespace: string;
  readonly #file: CheckpointFile;
  #checkpoint: Checkpoint;
  /** As in uncounted-node.ts. */
  #recoveredMin: number;
  #beatCount = 0;
  /** The error for a later store, where a checkpoint had one when that was last looked for. */
  #end: CoordinatorError | undefined;
  /** The write of the checkpoint that is about to begin. */
  #write: Promise<void> | undefined;

  constructor(namespace: string, file: CheckpointFile, checkpoint: Checkpoint) {
    this.#namespace = namespace;
    this.#file = file;
    this.#checkpoint = checkpoint;
    this.#recoveredMin = file.recoveredMin(checkpoint.storeId);
  }

  get checkpoint(): Checkpoint {
    return this.#checkpoint;
  }

  /** What a healthy store has at least. */
  get lowerBounds(): { readonly floor: number; readonly generationMin: number } {
    return { floor: this.#checkpoint.ledgerId, generationMin: this.#checkpoint.generation };
  }

  /** What every step of the guard has. */
  get base() {
    return { storeId: this.#checkpoint.storeId, recoveredMin: this.#recoveredMin, isSilenceAccepted: false };
  }

  /** Undefined for a store that was not moved, as far as is known. */
  get move(): CoordinatorError | undefined {
    const { movedTo } = this.#checkpoint;
    return movedTo === undefined ? this.#end : refused("MOVED", movedTo, this.#namespace);
  }

  /**
   * Before a step: learns what others have noted. A store that was moved or given up meanwhile, and comes back, is claimed first: then the
   * checkpoints are asked, and at heartbeats now and then. @throws CoordinatorError `namespace_moved`, also when the store itself has forgotten it;
   * `checkpoint_unavailable`.
   */
  refresh(step: StepCommand["step"]): void {
    const isDue = step === "claim" || (step === "heartbeat" && ++this.#beatCount % LOOK_EVERY_BEATS === 0);
    if (isDue || step === "heartbeat") this.#refreshUncounted();
    if (isDue) {
      this.#checkpoint = withMove(this.#checkpoint, this.#file);
      this.#end = whyNotLatest(this.#namespace, versionIn(this.#checkpoint), this.#file);
    }
    if (this.move !== undefined) throw this.move;
  }

  /**
   * Notes a move that the store answered with; every other error is left alone. On file before it is known here: after a failed write the next
   * step tries again. @throws CoordinatorError `checkpoint_unavailable`.
   */
  noteMove(error: unknown): void {
    const { movedTo } = error as CoordinatorError;
    if (movedTo === undefined) return;
    const moved = { ...this.#checkpoint, movedTo };
    this.#file.note(moved);
    this.#checkpoint = moved;
  }

  /** A node was seen that the record does not count, and `recover` has not written the record since, as far as is known. */
  get hasUncounted(): boolean {
    return this.#recoveredMin > this.#checkpoint.generation;
  }

  /** Where the file is gone, or could not be written, it is written again. */
  #refreshUncounted(): void {
    const noted = this.#file.recoveredMin(this.#checkpoint.storeId);
    if (noted > this.#recoveredMin) this.#recoveredMin = noted;
    else if (noted < this.#recoveredMin && this.hasUncounted) this.#writeUncounted();
  }

  /** Notes that a record of a generation does not count a node that was seen: here, and on file, too, where that can be written. */
  noteUncounted(generation: number): void {
    const recoveredMin = recoveredGenerationAfter(Math.max(generation, this.#checkpoint.generation));
    if (recoveredMin <= this.#recoveredMin) return;
    this.#recoveredMin = recoveredMin;
    this.#writeUncounted();
  }

  #writeUncounted(): void {
    try {
      this.#file.noteRecoveredMin(this.#checkpoint.storeId, this.#recoveredMin);
    } catch {
      // The next heartbeat tries again, and finds that no checkpoint can be written, either.
    }
  }

  /**
   * Notes a verified step: at once here, and on file when this resolves. One write for all steps whose outcomes came in the same moment.
   * @throws CoordinatorError `checkpoint_unavailable`.
   */
  async noteStep(after: RecordAfter): Promise<void> {
    this.#checkpoint = { ...mergeCheckpoints(this.#checkpoint, checkpointOf(after)), nodeCount: after.nodeCount };
    this.#write ??= Promise.resolve().then(() => {
      this.#write = undefined;
      this.#file.note(this.#checkpoint);
    });
    await this.#write;
  }

  close(): void {
    this.#file.close();
  }
}
