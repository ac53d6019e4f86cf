/** A call number and its parts as `decode --json` and `encode --json` answer them, one line for each. */
import type { CallNumberParts } from "@callnumber/protocol/codec";

/** `callNumber` is one, so that nothing in it wants to be escaped. */
export function partsAsJson(callNumber: string, { version, run, sequence }: CallNumberParts): string {
  return `{"callNumber":"${callNumber}","version":${version},"run":${run},"sequence":${sequence}}`;
}
