/** `npm test` plays samples of what `npm run test:all` plays in full; beside a mutant, a few tell as much. */
export const IS_WHOLE = process.env["CALLNUMBER_TEST_ALL"] === "1";

export const IS_MUTATION = process.env["CALLNUMBER_TEST_MUTATION"] === "1";
const FEW = 1 / 20;

/** How many of what one test draws or tries. Without `whole`, as many in both. */
export function sized(sample: number, whole = sample): number {
  return IS_WHOLE ? whole : IS_MUTATION ? Math.ceil(sample * FEW) : sample;
}
