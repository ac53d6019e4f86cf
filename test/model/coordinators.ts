/** What a coordinator is told, remembers and is called. Knows no step and no fault. */
import { interrupted } from "./replication.js";
import type { Caller, Rules } from "./scripts.js";
import { at, COORDINATOR_NAMES, type Coordinator, NODE_NAMES, replaced, type World } from "./world.js";

export function callerOf(world: World, index: number): Caller {
  const { floor, gmin, clockAhead } = at(world.coordinators, index);
  return { floor, gmin, clock: world.now + clockAhead };
}

/**
 * A coordinator after a step that counts: it remembers the mark and the generation that the step left. Undefined when the check
 * differs. Role and epoch are looked at too, elsewhere: whoever waits at a server when they change has been cut off already.
 */
export function remembering(world: World, rules: Rules, index: number): Coordinator | undefined {
  const coordinator = at(world.coordinators, index);
  const { to, g, floor, gmin } = coordinator;
  if (rules.design.check && at(world.nodes, coordinator.at).record?.g !== g) return undefined;
  return { ...interrupted(coordinator), floor: Math.max(floor, to), gmin: Math.max(gmin, g) };
}

/** The same world with one coordinator changed. */
export const changed = (world: World, index: number, coordinator: Coordinator): World => ({
  ...world,
  coordinators: replaced(world.coordinators, index, coordinator),
});

export const coordinatorName = (index: number): string => at(COORDINATOR_NAMES, index);
export const placeName = (world: World, index: number): string => at(NODE_NAMES, at(world.coordinators, index).at);
export const rangeWords = (from: number, to: number): string => (from === to ? `run ${from}` : `runs ${from} to ${to}`);
