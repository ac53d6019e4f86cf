/**
 * One number of each scheme to look at: made under a clock that stands in the past, with luck that is the same every time, so
 * that it is never a number that somebody could get.
 */
import type { Memory, MintContext, Minted, Scheme } from "../index.js";

/** The day of which the documents that describe the schemes make their examples. */
const SAMPLE_MS = Date.UTC(2018, 5, 9, 10);
const SAMPLE_RUN = 99n;
const LUCK = 1_234_567_890;
const NODE = { given: 3, server: 1, pid: 14_013, macs: ["de:ad:be:ef:00:01"] } as const;

/** A fresh one each time: nothing is remembered from one sample to the next. */
export function sampleContext(): MintContext {
  return {
    clock: { nowMs: () => SAMPLE_MS },
    random: { below: luckOfTheSample() },
    node: NODE,
    memory: memory(),
    disk: memory(),
    counter: { next: () => SAMPLE_RUN },
  };
}

/** @throws Error when the scheme makes none under that clock. */
export function sampleOf(scheme: Scheme): Extract<Minted, { readonly outcome: "minted" }> {
  const minted = scheme.mint(sampleContext());
  if (minted.outcome === "minted") return minted;
  throw new Error(`${scheme.name} waits before its first number`);
}

/** Park and Miller's generator: no secret depends on it. */
function luckOfTheSample(): (bound: number) => number {
  let state = LUCK;
  return (bound) => {
    state = (state * 48_271) % 2_147_483_647;
    return Math.floor((state / 2_147_483_647) * bound);
  };
}

function memory(): Memory {
  const kept = new Map<string, bigint>();
  return { get: (name) => kept.get(name), set: (name, value) => void kept.set(name, value) };
}
