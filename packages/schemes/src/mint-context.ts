/**
 * All that minting needs from outside, passed in: so that a scheme can be played under any clock, with any luck, on any number of nodes.
 * Nothing in this package reads the time, draws or waits by itself.
 */

/** Milliseconds since 1970, UTC. May stand still, leap and go back: what a scheme does then is a part of the scheme. */
export interface Clock {
  nowMs(): number;
}

export interface Random {
  /** A whole number from 0 to `bound - 1` (`bound` 1 to 2^53 - 1), each with the same chance. */
  below(bound: number): number;
}

/** What a process knows of itself. Two processes with the same of it are what a node collision is. */
export interface NodeIdentity {
  /** Given by somebody who keeps the list of nodes. */
  readonly given: number;
  /** The number of the server in the group, given too, but narrower. */
  readonly server: number;
  readonly pid: number;
  /** MAC addresses of the machine in the order of its interfaces, as `de:ad:be:ef:00:01`. Without any, a number that would be their hash is `given`. */
  readonly macs: readonly string[];
}

/** Small state under a name, for one process alone. */
export interface Memory {
  get(name: string): bigint | undefined;
  set(name: string, value: bigint): void;
}

/** A counter that all nodes share, and that survives them: the first answer is 1. */
export interface CentralCounter {
  next(): bigint;
}

export interface MintContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly node: NodeIdentity;
  /** Ends with the process. */
  readonly memory: Memory;
  /** Outlives the process, on this machine. */
  readonly disk: Memory;
  readonly counter: CentralCounter;
}
