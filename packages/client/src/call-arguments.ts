/** What callers pass with a call: how many numbers they want, and the arrays to fill with them. */

import { LEASE_RUN_COUNT_MAX } from "@callnumber/protocol/api";
import { CALL_NUMBER_LENGTH, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { RunNumbers } from "./run-numbers.js";

/** The most numbers of one call: those of the largest lease. */
export const TAKE_COUNT_MAX = LEASE_RUN_COUNT_MAX * SEQUENCE_COUNT;

/** @throws RangeError that begins with `what`, unless `count` is 1 to `TAKE_COUNT_MAX`. */
export function assertCount(what: string, count: number): void {
  if (Number.isInteger(count) && count >= 1 && count <= TAKE_COUNT_MAX) return;
  throw new RangeError(`${what} 1 to ${TAKE_COUNT_MAX} numbers, not ${String(count)}`);
}

/** An array to fill. */
export interface Target {
  /** How many numbers it holds. */
  readonly count: number;
  /** Writes the numbers from sequence `from` to before `to` behind the first `taken`. @throws TypeError when the array was detached. */
  write(numbers: RunNumbers, taken: number, from: number, to: number): void;
}

/** @throws TypeError or RangeError when the array is not one that `fillBytes()` fills. */
export function bytesTarget(target: Uint8Array): Target {
  if (!(target instanceof Uint8Array)) throw new TypeError("fillBytes() fills a Uint8Array");
  const count = target.length / CALL_NUMBER_LENGTH;
  assertCount("fillBytes() takes the length in bytes of", count);
  return {
    count,
    write(numbers, taken, from, to) {
      assertAttached(target, count * CALL_NUMBER_LENGTH);
      numbers.writeBytes(target, taken * CALL_NUMBER_LENGTH, from, to);
    },
  };
}

/** @throws TypeError or RangeError when the array is not one that `fillNumbers()` fills. */
export function numbersTarget(target: Float64Array): Target {
  if (!(target instanceof Float64Array)) throw new TypeError("fillNumbers() fills a Float64Array");
  const count = target.length;
  assertCount("fillNumbers() fills", count);
  return {
    count,
    write(numbers, taken, from, to) {
      assertAttached(target, count);
      numbers.writeNumbers(target, taken, from, to);
    },
  };
}

/** Writing into an array whose memory was transferred or resized away would lose numbers silently. */
function assertAttached(target: Uint8Array | Float64Array, length: number): void {
  if (target.length !== length) throw new TypeError("the array was taken away while it was being filled");
}
