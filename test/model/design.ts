/**
 * The design under test as a list of switches, each a sentence of the guard that can be taken away.
 * Knows what a design consists of, not what follows from it.
 */

export interface Design {
  /** A range is handed out, and a claim confirmed, only after a replica has acknowledged it (`WAIT`). */
  readonly quorum: boolean;
  /** A lease is refused when the record's epoch is not the server's. */
  readonly epoch: boolean;
  /** A full resynchronisation (`sync_full`) makes a new epoch. */
  readonly fullSyncInEpoch: boolean;
  /** An accepted partial resynchronisation (`sync_partial_ok`) makes a new epoch. */
  readonly partialSyncInEpoch: boolean;
  /** After a doubt a claim is acknowledged first and the counter raised then, instead of both in one step. */
  readonly claimFirst: boolean;
  /**
   * Where a doubt puts the counter: on the line, `margin` epsilons ahead of the clock; or past `age of the record · rate`;
   * or nowhere above what the coordinator remembers.
   */
  readonly jump: "line" | "age" | "none";
  /** How many eps beyond the later clock a jump lands. */
  readonly marginEps: number;
  /** A record whose checksum does not fit is refused. */
  readonly checksum: boolean;
  /** A record that has not been written for longer than the gap is doubted. */
  readonly gap: boolean;
  /** A coordinator refuses records, and ranges, below what it remembers. */
  readonly memory: boolean;
  /** Role, epoch and generation are looked at once more after the quorum, before a range is handed out. */
  readonly check: boolean;
  /** An answer with another caller's nonce is not taken. */
  readonly nonce: boolean;
  /** A version is left only once its line has passed its last run. */
  readonly leavesAtEnd: boolean;
  /** A store in doubt that is advanced is left to be claimed, instead of being believed. */
  readonly advanceClaims: boolean;
  /** Leases are given at all: without it the store is safe and useless, which the search for healing has to find. */
  readonly leases: boolean;
}

export const FULL_DESIGN: Design = {
  quorum: true,
  epoch: true,
  fullSyncInEpoch: true,
  partialSyncInEpoch: true,
  claimFirst: true,
  jump: "line",
  marginEps: 2,
  checksum: true,
  gap: true,
  memory: true,
  check: true,
  nonce: true,
  leavesAtEnd: true,
  advanceClaims: true,
  leases: true,
};

/** The small numbers of the model. Time is in ticks, rates in runs for each tick. */
export interface Numbers {
  readonly rate: number;
  /** The start of the line, `B` in the guard. */
  readonly burst: number;
  readonly eps: number;
  readonly gap: number;
  /** Runs of a version, run 0 included, which is never leased; `Infinity`: the first one never ends. */
  readonly space: number;
}

/** Runs are counted on through all versions, as ledger ids are. */
export const versionOf = ({ space }: Numbers, run: number): number => (run < space ? 0 : Math.floor(run / space));
/** Run 0 of a version, and its last one. */
export const firstOf = ({ space }: Numbers, version: number): number => (version === 0 ? 0 : version * space);
export const lastOf = ({ space }: Numbers, version: number): number => (version + 1) * space - 1;

/**
 * The greatest run of a version that may be leased at a tick; may lie beyond its last one, or below its first. The first run of the model
 * is 1, and its store was made at tick 0.
 */
export const line = (numbers: Numbers, version: number, tick: number): number =>
  firstOf(numbers, version) + (tick - beginOf(numbers, version)) * numbers.rate + numbers.burst;

/** When the line of a version reaches its last run: the next one's begins. */
export const lineEnds = (numbers: Numbers, version: number): number =>
  beginOf(numbers, version) + Math.ceil((numbers.space - 1 - numbers.burst) / numbers.rate);

function beginOf(numbers: Numbers, version: number): number {
  return version === 0 ? 0 : lineEnds(numbers, version - 1);
}
