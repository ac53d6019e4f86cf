/**
 * One number of each scheme as a sample: minted under a clock of the past, with random numbers that are the same every time, so that it is
 * never a number that an archive could get.
 */
import type { MintContext, Minted, Scheme } from "../index.js";

/** The day of the examples in the documents that describe the schemes. */
const SAMPLE_MS = Date.UTC(2018, 5, 9, 10);
const SAMPLE_RUN = 99n;
const SEED = 1_234_567_890;

/** Returns a new context each time: nothing is remembered from one sample to the next. */
export function sampleContext(): MintContext {
  return {
    clock: { nowMs: () => SAMPLE_MS },
    random: { below: seededDraws() },
    node: { given: 3, server: 1, pid: 14_013, macs: ["de:ad:be:ef:00:01"] },
    memory: new Map(),
    disk: new Map(),
    counter: { next: () => SAMPLE_RUN },
  };
}

/** @throws Error when the scheme mints none under that clock. */
export function sampleOf(scheme: Scheme): Minted {
  const step = scheme.mint(sampleContext());
  if (step.outcome === "minted") return step;
  throw new Error(`${scheme.name} waits before its first number`);
}

/** Park and Miller's generator: no secret depends on it. */
function seededDraws(): (bound: number) => number {
  let state = SEED;
  return (bound) => {
    state = (state * 48_271) % 2_147_483_647;
    return Math.floor((state / 2_147_483_647) * bound);
  };
}
