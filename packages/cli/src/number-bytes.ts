/** Call numbers and their parts as text and bytes, for `encode` and `decode`: the engine's own decoders are slower for each line. */
import type { CallNumberParts } from "@callnumber/protocol/codec";

const ZERO = 0x30;
const DIGIT_COUNT_MAX = 10;

/** Formats a call number and its parts for `--json`. A call number needs no escapes. */
export function partsAsJson(callNumber: string, { version, run, sequence }: CallNumberParts): string {
  return `{"callNumber":"${callNumber}","version":${version},"run":${run},"sequence":${sequence}}`;
}

/** Writes `value`, 0 to 2^30 - 1, into `out` from `at` on. Returns where it ends. */
export function writeDecimal(value: number, out: Uint8Array, at: number): number {
  let end = at + 1;
  for (let bound = 10; value >= bound; bound *= 10) end++;
  let rest = value;
  for (let place = end - 1; place >= at; place--) {
    // The value has 32 bits: a whole division, several times as fast as Math.floor.
    const tenth = (rest / 10) | 0;
    out[place] = ZERO + rest - 10 * tenth;
    rest = tenth;
  }
  return end;
}

/** Returns the value of `bytes` from `begin` to `end` when they are one to ten digits, else -1. */
export function readDecimal(bytes: Uint8Array, begin: number, end: number): number {
  if (end <= begin || end - begin > DIGIT_COUNT_MAX) return -1;
  let value = 0;
  for (let place = begin; place < end; place++) {
    const digit = (bytes[place] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    value = 10 * value + digit;
  }
  return value;
}

/** Writes `text`, of ASCII alone, into `out` from `at` on. Returns where it ends. */
export function writeAscii(text: string, out: Uint8Array, at: number): number {
  for (let place = 0; place < text.length; place++) out[at + place] = text.charCodeAt(place);
  return at + text.length;
}
