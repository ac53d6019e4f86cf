/**
 * The seed of a whole run: it decides what property tests draw. Given by whoever wants a failure again, else drawn.
 * Said once, before all tests.
 */
import type { TestProject } from "vitest/node";

const SEED_VARIABLE = "CALLNUMBER_TEST_SEED";
const SEED_LIMIT = 2 ** 31;

/** @throws RangeError when the seed in the environment is no whole number from 0 to 2^31 - 1. */
export function seedOfRun(environment: NodeJS.ProcessEnv): number {
  const given = environment[SEED_VARIABLE];
  const seed = given === undefined ? Math.floor(Math.random() * SEED_LIMIT) : Number(given);
  if (given === "" || !Number.isInteger(seed) || seed < 0 || seed >= SEED_LIMIT) {
    throw new RangeError(`${SEED_VARIABLE} is "${given}": give a whole number from 0 to ${SEED_LIMIT - 1}`);
  }
  return seed;
}

export default function saySeed(project: TestProject): void {
  const { seed } = project.config.sequence;
  console.log(`Seed ${seed}: the same again with ${SEED_VARIABLE}=${seed}`);
}
