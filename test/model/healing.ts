/**
 * Whether the store leases again once the faults stop: one master is agreed on, all follow it, the clocks are right, and an operator
 * types recover where the record is lost or corrupt, and advances a version that has ended. So a design that only ever refuses does not pass for a safe one.
 */
import { claim, confirm, handOut, lease } from "./coordinator-steps.js";
import { callerOf } from "./coordinators.js";
import { firstOf, lineEnds, type Numbers } from "./design.js";
import { attached, caughtUp, interrupted, isBehind, promoted, written } from "./replication.js";
import { advanceScript, isRefusal, type Rules, recoverScript, touchScript } from "./scripts.js";
import { at, isMaster, NOBODY, replaced, type World } from "./world.js";

export interface Healing {
  readonly outcome: "lease" | "nothing" | "repeat";
  /** Whether a claim was needed on the way. */
  readonly throughDoubt: boolean;
}

/** Far more than any wait that ends. */
const TICKS_MAX = 16;

/** Heals the world around each master that it has, for each coordinator; answers the worst that came of it. */
export function heal(world: World, rules: Rules): Healing {
  const masters = [...world.nodes.keys()].filter((index) => isMaster(at(world.nodes, index)));
  const leaders = masters.length > 0 ? masters : [0];
  const all = leaders.flatMap((leader) =>
    [...world.coordinators.keys()].map((index) => leaseAgain(world, rules, leader, index)),
  );
  const outcomes = new Set(all.map(({ outcome }) => outcome));
  const outcome = (["repeat", "nothing", "lease"] as const).find((one) => outcomes.has(one)) ?? "nothing";
  return { outcome, throughDoubt: all.some(({ throughDoubt }) => throughDoubt) };
}

function leaseAgain(broken: World, rules: Rules, leader: number, index: number): Healing {
  let world = united(broken, rules, leader);
  let throughDoubt = false;
  for (let tick = 0; tick < TICKS_MAX; tick += 1) {
    // Every tick, too: a floor that a clock ahead has left above the line is refused until the line has reached it.
    world = recovered(world, rules, leader);
    world = lease(world, rules, index, 1).world;
    if (at(world.coordinators, index).phase === "leased") {
      const { handedOut, repeated } = handOut(replicated(world), rules, index).world;
      if (repeated !== 0) return { outcome: "repeat", throughDoubt };
      if (handedOut !== world.handedOut) return { outcome: "lease", throughDoubt };
    }
    if (at(world.coordinators, index).phase === "doubt") {
      throughDoubt = true;
      world = replicated(claim(world, rules, index).world);
      if (at(world.coordinators, index).phase === "claimed") world = replicated(confirm(world, rules, index).world);
    }
    world = advanced(world, rules, leader);
    // Every tick, so that the wait for the line is no silence.
    world = replicated(touched(world, rules, index));
    world = { ...world, now: world.now + 1, coordinators: world.coordinators.map(interrupted) };
  }
  return { outcome: "nothing", throughDoubt };
}

/** All nodes follow the leader, both coordinators are connected to it, and all clocks are right. */
function united(world: World, rules: Rules, leader: number): World {
  let next: World = {
    ...world,
    nodes: world.nodes.map((node) => ({ ...node, clockAhead: 0 })),
    coordinators: world.coordinators.map((coordinator) => ({ ...interrupted(coordinator), at: leader, clockAhead: 0 })),
  };
  if (!isMaster(at(next.nodes, leader))) next = promoted(next, leader);
  for (const [index, { follows, linked }] of next.nodes.entries()) {
    if (index !== leader && !(follows === leader && linked)) next = attached(next, rules.design, index, leader);
  }
  return replicated(next);
}

function recovered(world: World, rules: Rules, leader: number): World {
  const node = at(world.nodes, leader);
  if (node.record && (node.record.sound || !rules.design.checksum)) return world;
  // The operator deletes what is corrupt, and waits out a clock that was ahead; the pin says what the archive holds.
  // Of the versions that have begun, the last one is right, whatever was leased: in those before it there is no run left.
  const remembered = world.coordinators.map((coordinator) => coordinator.floor);
  const floor = Math.max(...remembered, firstOf(rules.numbers, versionAt(rules.numbers, world.now)));
  const deleted = { ...node, record: null };
  const answer = recoverScript(rules, deleted, world.now, { floor, gmin: 0, clock: world.now });
  const emptied = { ...world, nodes: replaced(world.nodes, leader, deleted), rolledBack: NOBODY };
  return isRefusal(answer) ? emptied : replicated(written(emptied, leader, answer));
}

/** The first version whose line has not reached its last run. */
function versionAt(numbers: Numbers, tick: number): number {
  let version = 0;
  while (lineEnds(numbers, version) <= tick) version += 1;
  return version;
}

/** As soon as it can be done: a version whose line has ended has little left, or nothing. */
function advanced(world: World, rules: Rules, leader: number): World {
  if (rules.numbers.space === Number.POSITIVE_INFINITY) return world;
  const answer = advanceScript(rules, at(world.nodes, leader), world.now, { floor: 0, gmin: 0, clock: world.now });
  return isRefusal(answer) ? world : replicated(written(world, leader, answer));
}

function touched(world: World, rules: Rules, index: number): World {
  const { at: place } = at(world.coordinators, index);
  const answer = touchScript(rules, at(world.nodes, place), world.now, callerOf(world, index));
  return isRefusal(answer) ? world : written(world, place, answer);
}

function replicated(world: World): World {
  let next = world;
  for (const [index, node] of world.nodes.entries()) if (isBehind(world, node)) next = caughtUp(next, index);
  return next;
}
