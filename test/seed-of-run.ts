/** Returns the seed of this run: `CALLNUMBER_TEST_SEED` to repeat a failure, otherwise a random number from 0 to 2^31 - 1. */
export function seedOfRun({ CALLNUMBER_TEST_SEED: given }: NodeJS.ProcessEnv): number {
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
}
