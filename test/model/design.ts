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
  leases: true,
};

/** The small numbers of the model. Time is in ticks, rates in runs for each tick. */
export interface Numbers {
  readonly rate: number;
  /** The start of the line, `B` in the guard. */
  readonly burst: number;
  readonly eps: number;
  readonly gap: number;
}

/** The greatest run that may be leased at a tick. The first run of the model is 1, and its store was made at tick 0. */
export const line = ({ rate, burst }: Numbers, tick: number): number => tick * rate + burst;
