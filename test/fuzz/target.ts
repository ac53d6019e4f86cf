/**
 * What is fuzzed: a target draws inputs and says of each whether what must hold held. An input is bytes and nothing else, so that a
 * finding is played again from its bytes alone.
 */
import type { Draw } from "./draw.js";

export interface FuzzTarget {
  /** As `--target` names it. */
  readonly name: string;
  /** How many inputs `npm test` tries: a few seconds. */
  readonly shortCount: number;
  /** Sets up what the inputs are given to. */
  start(): Promise<FuzzSubject>;
}

interface FuzzSubject {
  /** The same draws make the same input. */
  input(draw: Draw): Buffer;
  /** @throws whatever the input was found to break. Must hold for any bytes, as people may shorten a finding by hand. */
  check(input: Buffer): Promise<void> | void;
  /** @throws what only shows at the end, leaks above all. */
  stop(): Promise<void>;
}

/** Of subjects that need nothing. */
export const NOTHING_TO_STOP = async (): Promise<void> => {};
