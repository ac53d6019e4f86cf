/** Call numbers that the tests of storing share, each genuine. */
import { callNumbersOfRun, SEQUENCE_COUNT } from "@callnumber/protocol/codec";

export const STORED = "2VznWE2i";
/** They differ in case alone; of runs 6 and 8. */
export const SAME_BUT_FOR_CASE = ["02q1iOKe", "02Q1IOKe"] as const;
/** To whoever reads them as numbers both are infinite; of runs 33 and 49. */
export const SAME_AS_NUMBERS = ["0163E800", "0163E801"] as const;

/** Spelt like nothing that was ever issued, and each tempting in its own way. */
export const NO_CALL_NUMBERS = ["", "2VznWE2", "2VznWE2-", " 2VznWE2", "2VznWE\n2", "dxlGgaI4", "zzzzzzzz", "2VznWEé2"];

/** The call numbers of a new namespace in the order of their runs. */
export function* callNumbersFromTheFirst(): Generator<string> {
  for (let run = 1; ; run++) {
    const callNumber = callNumbersOfRun(0, run);
    for (let sequence = 0; sequence < SEQUENCE_COUNT; sequence++) yield callNumber(sequence);
  }
}
