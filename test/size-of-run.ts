/** `npm test` plays samples of what `npm run test:all` plays in full. */
export const IS_WHOLE = process.env["CALLNUMBER_TEST_ALL"] === "1";

/** How many of what one test draws or tries. */
export function sized(sample: number, whole: number): number {
  return IS_WHOLE ? whole : sample;
}
