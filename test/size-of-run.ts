/** `npm test` plays samples of what `npm run test:all` plays in full; with a mutant, a few are enough. */
export const IS_WHOLE = process.env["CALLNUMBER_TEST_ALL"] === "1";

export const IS_MUTATION = process.env["CALLNUMBER_TEST_MUTATION"] === "1";
const FEW = 1 / 20;

/** How many of what one test draws or tries. Without `whole`, as many in both. */
export function sized(sample: number, whole = sample): number {
  return IS_WHOLE ? whole : IS_MUTATION ? Math.ceil(sample * FEW) : sample;
}

/** Returns what a run tries of a list: all of it in `npm run test:all`, otherwise one of `partCount` parts, drawn by the seed. */
export function drawn<T>(items: readonly T[], partCount: number, seed: number): readonly T[] {
  return IS_WHOLE ? items : items.filter((_, index) => index % partCount === seed % partCount);
}

/** Returns the seed of this run: `CALLNUMBER_TEST_SEED` to repeat a failure, otherwise a random number from 0 to 2^31 - 1. */
export function seedOfRun({ CALLNUMBER_TEST_SEED: given }: NodeJS.ProcessEnv): number {
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
}
