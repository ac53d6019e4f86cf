/** One trial from search to verdict. Where nothing may be found, a part of the worlds is also healed. */
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
interface Healed {
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
    trial.expected === "repeat" ? found.ended === "repeat" : found.ended === "exhausted" && healed.failures === 0;
  return { trial, found, healed, seconds, passed, verdict: verdictOf(found, healed) };
}

function verdictOf({ ended, states, depth }: Found, { worlds, doubts, failures }: Healed): string {
  if (ended === "repeat") return "REPEAT";
  if (ended === "states") return `BOUND REACHED, ${states} states: the rest was not searched`;
  if (ended === "depth") return `BOUND REACHED, ${depth} steps: what lies beyond was not searched`;
  if (worlds === 0) return "no repeat";
  const again = failures === 0 ? "a lease" : `NO LEASE, OR A REPEAT, in ${failures}`;
  return `no repeat; ${again} after ${worlds} healings, ${doubts} through a doubt`;
}
