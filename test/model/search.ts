/**
 * The search: all worlds that can be reached within the limits, nearest first, so that the first repeat found has a shortest trace.
 * Knows how to go on from a world, and not what the steps mean.
 */
import { type Limits, visitCourse, visitFaults, withRollbackSettled } from "./adversary.js";
import { type Visit, visitCoordinatorSteps, visitUrgentSteps } from "./coordinator-steps.js";
import { fingerprint } from "./fingerprint.js";
import { relevant } from "./relevance.js";
import { GENERATIONS_A_TICK } from "./scripts.js";
import { STARTS } from "./starts.js";
import type { Trial } from "./trials.js";
import { Visited } from "./visited.js";
import { at, COORDINATOR_NAMES, NODE_NAMES, type World } from "./world.js";

export interface Bounds {
  /** The longest trace looked at, in steps; without it, all. */
  readonly depth?: number;
  /** The search ends unfinished after this many worlds; without it, never. */
  readonly states?: number;
}

export interface Found {
  /** Worlds visited, the first one included. */
  readonly states: number;
  /** The length of the trace that breaks the promise, or of the longest one looked at. */
  readonly depth: number;
  /** `exhausted`: there is no other world within the limits, at any depth. */
  readonly ended: "repeat" | "exhausted" | "depth" | "states";
  /** Words for the start and each step; only after a repeat. */
  readonly trace: readonly string[];
}

/** Is told each world once, as it was reached, with its number. */
export type Look = (world: World, number: number) => void;

/** Looks at every world within the bounds, or up to the first in which a run is handed out twice, or above the line. */
export function search(trial: Trial, bounds: Bounds = {}, look: Look = () => {}): Found {
  const { depth: depthMax = Number.POSITIVE_INFINITY, states: statesMax = Number.POSITIVE_INFINITY } = bounds;
  const visited = new Visited();
  const start = STARTS[trial.start].world;
  visited.add(fingerprint(start, trial.limits), 0, 0);
  look(start, 0);
  let level = [start];
  let levelStart = 0;
  for (let depth = 0; ; depth += 1) {
    if (depth >= depthMax) return { states: visited.count, depth, ended: "depth", trace: [] };
    const nextStart = visited.count;
    const nextLevel: World[] = [];
    for (const [place, world] of level.entries()) {
      const broken = expand(world, levelStart + place, trial, visited, nextLevel, look);
      if (broken !== undefined) {
        const way = [...visited.wayTo(levelStart + place), broken];
        return { states: visited.count, depth: way.length, ended: "repeat", trace: told(trial, way) };
      }
      if (visited.count >= statesMax) return { states: visited.count, depth, ended: "states", trace: [] };
    }
    if (nextLevel.length === 0) return { states: visited.count, depth, ended: "exhausted", trace: [] };
    level = nextLevel;
    levelStart = nextStart;
  }
}

/** Adds the worlds that can come next to `found`; answers the step that breaks the promise, if one does. */
function expand(
  world: World,
  number: number,
  trial: Trial,
  visited: Visited,
  found: World[],
  look: Look,
): number | undefined {
  let step = -1;
  let broken: number | undefined;
  visitNext(world, trial, (next) => {
    step += 1;
    if (broken !== undefined) return;
    if (breaksPromise(next)) broken = step;
    const rest = relevant(next, trial, trial.limits);
    if (!rest || !visited.add(fingerprint(rest, trial.limits), number, step)) return;
    found.push(rest);
    look(next, visited.count - 1);
  });
  return broken;
}

export const breaksPromise = ({ repeated, aboveLine }: World): boolean => repeated !== 0 || aboveLine !== 0;

/** Tells every world that can come next. */
export function visitNext(world: World, trial: Trial, visit: Visit): void {
  const { limits } = trial;
  const bounded: Visit = (next, words) => {
    if (!isClaimedTooOften(next, limits)) visit(withRollbackSettled(world, next), words);
  };
  if (visitUrgentSteps(world, trial, bounded)) return;
  visitCoordinatorSteps(world, trial, bounded);
  visitCourse(world, trial, limits, bounded);
  visitFaults(world, trial, limits, bounded);
}

function isClaimedTooOften({ nodes }: World, { generations }: Limits): boolean {
  for (const { record } of nodes) if (record && record.g % GENERATIONS_A_TICK > generations) return true;
  return false;
}

/** Walks the way again from the start, and writes down what happens. */
function told(trial: Trial, way: readonly number[]): string[] {
  const start = STARTS[trial.start];
  let world = start.world;
  const steps = way.map((wanted) => {
    const nexts: [World, () => string][] = [];
    visitNext(world, trial, (next, words) => nexts.push([next, words]));
    const [next, words] = at(nexts, wanted);
    const rest = relevant(next, trial, trial.limits) ?? next;
    const said = [words(), ...silentChanges(next, rest), ...broken(next)].join("; ");
    world = rest;
    return said;
  });
  return [`at the start ${start.words}`, ...steps];
}

/** What the search takes for granted once no more faults come. */
const silentChanges = (before: World, after: World): string[] =>
  after.coordinators.flatMap((coordinator, index) => {
    const { at: place, acknowledged } = at(before.coordinators, index);
    const name = at(COORDINATOR_NAMES, index);
    if (coordinator.at !== place) return [`${name} goes to ${at(NODE_NAMES, coordinator.at)}`];
    return coordinator.acknowledged && !acknowledged ? [`${name} has its acknowledgement`] : [];
  });

const broken = ({ repeated, aboveLine }: World): string[] => [
  ...(repeated === 0 ? [] : [`REPEATED: ${runsOf(repeated)}`]),
  ...(aboveLine === 0 ? [] : ["ABOVE THE LINE"]),
];

const runsOf = (bits: number): string =>
  [...bits.toString(2)]
    .reverse()
    .flatMap((bit, run) => (bit === "1" ? [run] : []))
    .join(", ");
