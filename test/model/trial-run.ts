/** One trial from search to verdict. A full design is also healed from a part of its worlds. */
import { heal } from "./healing.js";
import { type Bounds, type Found, search } from "./search.js";
import type { Trial } from "./trials.js";

export interface Report {
  readonly trial: Trial;
  readonly found: Found;
  readonly healed: Healed;
  readonly seconds: number;
  /** The result in words. */
  readonly verdict: string;
  readonly passed: boolean;
}

/** How many worlds were healed, and how many of them through a doubt. */
export interface Healed {
  worlds: number;
  doubts: number;
  /** Worlds from which no lease came, or a repeated one. */
  failures: number;
}

/** One world in so many is healed: enough to meet every kind of doubt, and less work than the search itself. */
const HEALED_ONE_IN = 31;

export function runTrial(trial: Trial, bounds: Bounds = {}): Report {
  const healed: Healed = { worlds: 0, doubts: 0, failures: 0 };
  const begun = performance.now();
  const found = search(trial, bounds, (world, number) => {
    if (trial.expected === "repeat" || number % HEALED_ONE_IN !== 0) return;
    const { outcome, throughDoubt } = heal(world, trial);
    healed.worlds += 1;
    if (throughDoubt) healed.doubts += 1;
    if (outcome !== "lease") healed.failures += 1;
  });
  const seconds = (performance.now() - begun) / 1000;
  const passed =
    found.ended === "repeat" ? trial.expected === "repeat" : trial.expected === "nothing" && healed.failures === 0;
  return { trial, found, healed, seconds, passed, verdict: verdictOf(found, healed) };
}

function verdictOf({ ended }: Found, { worlds, doubts, failures }: Healed): string {
  if (ended === "repeat") return "REPEAT";
  const searched = ended === "exhausted" ? "no repeat, nothing left to search" : `no repeat up to the given ${ended}`;
  if (worlds === 0) return searched;
  return `${searched}; ${failures === 0 ? "a lease" : `NO LEASE in ${failures}`} after ${worlds} healings, ${doubts} through a doubt`;
}
