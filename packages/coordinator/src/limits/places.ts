/**
 * How many of each kind may be under way at a time, for all who ask; under-way.ts has how they are shared. What one alone may have is half.
 * One kind takes no place of another: whoever looks keeps nobody from leasing, and is told how things stand while they export.
 */
import { NO_CROWDS } from "./crowds.js";
import { OVERLOADED_MESSAGE, UnderWay } from "./under-way.js";

/**
 * Of leases and reports together, for one alone. Those let in share a turn of the event loop and wait for each other: a crowd that begins
 * together is let in, and waits for milliseconds.
 */
export const LEASES_AT_ONCE_DEFAULT = 64;
/** Of what operators ask, for one alone: more than a browser has connections, and each is answered within one turn or a few. */
export const QUESTIONS_AT_ONCE = 16;
/** Of questions that look through a part of the ledger, for one alone: each may hold up a lease for one step of its way. */
export const LOOKS_AT_ONCE = 8;
/** Of strangers' questions whether a call number can exist, for one alone: each asks the store. */
export const PUBLIC_LOOKS_AT_ONCE = 8;
/** For one alone. An export goes on for minutes, and reads as fast as it is taken. */
export const EXPORTS_AT_ONCE = 2;

export interface Places {
  readonly leases: UnderWay;
  readonly questions: UnderWay;
  readonly looks: UnderWay;
  readonly publicLooks: UnderWay;
  readonly exports: UnderWay;
}

export function newPlaces(leasesAtOnce: number): Places {
  return {
    leases: new UnderWay(2 * leasesAtOnce, OVERLOADED_MESSAGE),
    questions: new UnderWay(2 * QUESTIONS_AT_ONCE, tooMany("questions are", "some are answered")),
    looks: new UnderWay(2 * LOOKS_AT_ONCE, tooMany("questions about the ledger are", "some are answered")),
    publicLooks: new UnderWay(
      2 * PUBLIC_LOOKS_AT_ONCE,
      tooMany("questions about call numbers are", "some are answered"),
    ),
    exports: new UnderWay(2 * EXPORTS_AT_ONCE, tooMany("exports are", "one has ended"), NO_CROWDS),
  };
}

function tooMany(what: string, until: string): string {
  return `too many ${what} under way for this token or address; ask again when ${until}`;
}
