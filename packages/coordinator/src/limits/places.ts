/**
 * How many of each kind may be under way at a time, for all who ask; under-way.ts has how they are shared. What one alone may have is half.
 * One kind takes no place of another: whoever looks keeps nobody from leasing.
 */
import { UnderWay } from "./under-way.js";

/** Of leases and reports together, for one alone. Those let in share a turn of the event loop and wait for each other: a crowd that begins
 * together is let in, and waits for milliseconds. */
export const LEASES_AT_ONCE_DEFAULT = 64;
/** Questions that look through a part of the ledger, for one alone: each may hold up a lease for one step of its way. */
export const LOOKS_AT_ONCE = 8;
/** For one alone. An export goes on for minutes, and reads as fast as it is taken. */
export const EXPORTS_AT_ONCE = 2;

export interface Places {
  readonly leases: UnderWay;
  readonly looks: UnderWay;
  readonly exports: UnderWay;
}

export function newPlaces(leasesAtOnce: number): Places {
  return {
    leases: new UnderWay(2 * leasesAtOnce),
    looks: new UnderWay(
      2 * LOOKS_AT_ONCE,
      "too many questions about the ledger are under way for this token or address; ask again when some are answered",
    ),
    exports: new UnderWay(
      2 * EXPORTS_AT_ONCE,
      "too many exports are under way for this token or address; ask again when one has ended",
    ),
  };
}
