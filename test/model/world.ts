/**
 * The world of the model: what three data nodes and two coordinators hold, in small whole numbers, and how it begins.
 * Knows no rule and no fault. A world never changes: every step makes a new one, which shares what stayed the same.
 */

/** Also the names in a trace. */
export const NODE_NAMES = ["A", "B", "C"] as const;
export const COORDINATOR_NAMES = ["K1", "K2"] as const;

/** No node, no coordinator. */
export const NOBODY = -1;

/** The record of the store as one node holds it; its fields have the names that the guard gives them. */
export interface StoreRecord {
  /** The last run leased. */
  readonly c: number;
  /** Tick of the last write. */
  readonly t: number;
  /** The epoch under which leasing was last confirmed. */
  readonly ep: number;
  /** Generation, one more for each claim. */
  readonly g: number;
  /** 1 from a claim to its confirmation, else 0. */
  readonly p: number;
  /** False after an edit by hand: the checksum no longer fits. */
  readonly sound: boolean;
}

/** A point in the history of a replication, as PSYNC names it: a replication id, and the count of writes until there. */
export interface Position {
  readonly history: number;
  readonly offset: number;
}

/** What a node has on its disk or in a backup: an earlier record, with the position that an RDB file carries. */
export interface Snapshot extends Position {
  readonly node: number;
  readonly record: StoreRecord | null;
}

export interface DataNode extends Position {
  /** Null when the key is absent. */
  readonly record: StoreRecord | null;
  /** The node whose replica this is by its configuration, or `NOBODY` for a master. */
  readonly follows: number;
  /** Whether replication from that node stands. */
  readonly linked: boolean;
  /** Stands for all parts of the epoch at once: no part ever returns to an earlier value, so a fresh number does. */
  readonly epoch: number;
  /** Master only: the history it continues since its promotion, and how far it had come in it. */
  readonly before: Position;
  /** Ticks that its clock is ahead of the true time. */
  readonly clockAhead: number;
}

/**
 * Where a coordinator waits. `doubt`: a refusal was answered, a claim comes next. `leased`: the lease script has run and its
 * WAIT stands. `claimed`: the same for the claim. All else is `idle`, also after an answer that is burnt.
 */
type Phase = "idle" | "doubt" | "leased" | "claimed";

export interface Coordinator {
  /** The node it is connected to. */
  readonly at: number;
  readonly phase: Phase;
  /** The first run of the range in hand, while `leased`. */
  readonly from: number;
  /** The mark that its step left, while it waits. */
  readonly to: number;
  /** The generation it works under: of the refusal, of the claim, or of the lease. */
  readonly g: number;
  /** Whether the quorum has acknowledged what this coordinator last wrote. */
  readonly acknowledged: boolean;
  /** What it remembers, in memory and witness alike: the greatest mark and the greatest generation of steps that counted. */
  readonly floor: number;
  readonly gmin: number;
  /** Ticks that its clock is ahead of the true time. */
  readonly clockAhead: number;
}

export interface World {
  /** True time, in ticks. */
  readonly now: number;
  readonly nodes: readonly DataNode[];
  readonly coordinators: readonly Coordinator[];
  /** The one backup that the adversary has taken, if any. */
  readonly backup: Snapshot | null;
  /** A master whose record was rolled back while it ran and would still be believed, or `NOBODY`. */
  readonly rolledBack: number;
  readonly faultCount: number;
  /** Bit n stands for run n: handed out to a client. */
  readonly handedOut: number;
  /** Runs that were handed out twice, or above the line: what must never be. */
  readonly repeated: number;
  readonly aboveLine: number;
  /** The next number for an epoch or a history. */
  readonly fresh: number;
}

const FIRST_EPOCH = 1;
const FIRST_HISTORY = 1;
const START: Position = { history: FIRST_HISTORY, offset: 0 };

export const FIRST_RECORD: StoreRecord = { c: 0, t: 0, ep: FIRST_EPOCH, g: 1, p: 0, sound: true };

/** A fresh store on A with B and C as replicas that hold all of it; both coordinators are at A and remember nothing. */
export function firstWorld(): World {
  return {
    now: 0,
    nodes: NODE_NAMES.map((_, index) => ({
      history: FIRST_HISTORY,
      offset: 0,
      record: FIRST_RECORD,
      follows: index === 0 ? NOBODY : 0,
      linked: index !== 0,
      epoch: FIRST_EPOCH,
      before: START,
      clockAhead: 0,
    })),
    coordinators: COORDINATOR_NAMES.map(() => ({
      at: 0,
      phase: "idle",
      from: 0,
      to: 0,
      g: 0,
      acknowledged: false,
      floor: 0,
      gmin: 0,
      clockAhead: 0,
    })),
    backup: null,
    rolledBack: NOBODY,
    faultCount: 0,
    handedOut: 0,
    repeated: 0,
    aboveLine: 0,
    fresh: Math.max(FIRST_EPOCH, FIRST_HISTORY) + 1,
  };
}

/** What every node had on its disk when the store was made: a restart may always fall back to it. */
export const FIRST_SNAPSHOT: Omit<Snapshot, "node"> = { ...START, record: FIRST_RECORD };

export const isMaster = (node: DataNode): boolean => node.follows === NOBODY;

/** The same list with one place changed. */
export function replaced<Item>(list: readonly Item[], index: number, item: Item): Item[] {
  const copy = list.slice();
  copy[index] = item;
  return copy;
}

/** @throws RangeError when the index is outside: a fault of the model itself. */
export function at<Item>(list: readonly Item[], index: number): Item {
  const item = list[index];
  if (item === undefined) throw new RangeError(`there is no place ${index} in a list of ${list.length}`);
  return item;
}
