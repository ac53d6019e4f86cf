/**
 * What a coordinator may do next, from every await: it leases, waits, checks and hands out; after a doubt it claims, waits and
 * confirms. Between any two of these steps anything else may happen, a kill included.
 * Knows the scripts and no fault. What it remembers is less than in the guard, where it also remembers what it has merely seen.
 */
import { line } from "./design.js";
import { interrupted, written } from "./replication.js";
import { type Answer, type Caller, claimScript, confirmScript, isDoubt, isRefusal, leaseScript, type Rules } from "./scripts.js";
import { at, COORDINATOR_NAMES, type Coordinator, isMaster, NODE_NAMES, replaced, type World } from "./world.js";

/** Is told each world that can come next, and how to say what happened. */
export type Visit = (next: World, words: () => string) => void;

/** How many runs a lease asks for: the least, and all there is room for. */
const ASKED = [1, Number.POSITIVE_INFINITY];

export function visitCoordinatorSteps(world: World, rules: Rules, visit: Visit): void {
  for (const [index, coordinator] of world.coordinators.entries()) {
    STEPS[coordinator.phase](world, rules, index, visit);
  }
}

/**
 * Where a coordinator has its acknowledgement for a lease, it hands out or loses the range at once, and nothing else is looked at.
 * That leaves nothing out: whatever happens before its check either lets the check pass, and could as well happen after it, or
 * makes it differ, and then the range is burnt as if it had been lost. Answers whether it was so.
 */
export function visitUrgentSteps(world: World, rules: Rules, visit: Visit): boolean {
  const index = world.coordinators.findIndex(({ phase, acknowledged }) => phase === "leased" && acknowledged);
  if (index < 0) return false;
  STEPS.leased(world, rules, index, visit);
  return true;
}

const STEPS: Record<Coordinator["phase"], (world: World, rules: Rules, index: number, visit: Visit) => void> = {
  idle(world, rules, index, visit) {
    for (const asked of ASKED) {
      const next = lease(world, rules, index, asked);
      const { phase, from, to } = at(next.world.coordinators, index);
      // Whatever was asked, a refusal is the same, and so is the only run there is room for.
      if (next.world === world || (asked > 1 && (phase !== "leased" || from === to))) break;
      visit(next.world, () => `${name(index)} asks ${place(world, index)} for a lease: ${next.says}`);
    }
    moves(world, index, visit);
  },
  doubt(world, rules, index, visit) {
    const next = claim(world, rules, index);
    visit(next.world, () => `${name(index)} claims the store at ${place(world, index)}: ${next.says}`);
  },
  leased(world, rules, index, visit) {
    const coordinator = at(world.coordinators, index);
    if (coordinator.acknowledged) {
      const next = handOut(world, rules, index);
      visit(next.world, () => `${name(index)} checks ${place(world, index)}: ${next.says}`);
    }
    visit(changed(world, index, interrupted(coordinator)), () => `${name(index)} gives up its lease, which is burnt`);
  },
  claimed(world, rules, index, visit) {
    const coordinator = at(world.coordinators, index);
    if (coordinator.acknowledged) {
      const next = confirm(world, rules, index);
      visit(next.world, () => `${name(index)} confirms its claim at ${place(world, index)}: ${next.says}`);
    }
    visit(changed(world, index, interrupted(coordinator)), () => `${name(index)} gives up its claim`);
  },
};

interface Outcome {
  readonly world: World;
  readonly says: string;
}

/** One lease script and its answer. The world stays the same where the answer is a refusal that leads nowhere. */
export function lease(world: World, rules: Rules, index: number, asked: number): Outcome {
  const coordinator = at(world.coordinators, index);
  const node = at(world.nodes, coordinator.at);
  const answer = leaseScript(rules, node, world.now + node.clockAhead, caller(world, index), asked);
  const old = node.record;
  if (isDoubt(answer) && old) {
    return { world: changed(world, index, { ...coordinator, phase: "doubt", g: old.g }), says: answer };
  }
  if (isRefusal(answer) || !old) return { world, says: String(answer) };
  const [from, to] = [old.c + 1, answer.c];
  const waiting: Coordinator = { ...coordinator, phase: "leased", from, to, g: answer.g, acknowledged: !rules.design.quorum };
  return { world: changed(written(world, coordinator.at, answer), index, waiting), says: `${range(from, to)}, not yet handed out` };
}

/** One claim script. Where the design claims first, the answer waits for the quorum. */
export function claim(world: World, rules: Rules, index: number): Outcome {
  const coordinator = at(world.coordinators, index);
  const node = at(world.nodes, coordinator.at);
  const answer = claimScript(rules, node, world.now + node.clockAhead, caller(world, index), coordinator.g);
  if (isRefusal(answer)) return refused(world, index, answer);
  const taken = written(world, coordinator.at, answer);
  if (!rules.design.claimFirst) {
    return { world: changed(taken, index, interrupted(coordinator)), says: `the mark jumps to ${answer.c} in the same step` };
  }
  const waiting: Coordinator = { ...coordinator, phase: "claimed", g: answer.g, acknowledged: !rules.design.quorum };
  return { world: changed(taken, index, waiting), says: `generation ${answer.g}, not yet confirmed` };
}

/** The check and the confirm script in one step: the script asks again all that the check asks. */
export function confirm(world: World, rules: Rules, index: number): Outcome {
  const coordinator = at(world.coordinators, index);
  const node = at(world.nodes, coordinator.at);
  const answer = confirmScript(rules, node, world.now + node.clockAhead, caller(world, index), coordinator.g);
  if (isRefusal(answer)) return refused(world, index, answer);
  const open = written(world, coordinator.at, answer);
  return { world: changed(open, index, interrupted(coordinator)), says: `the mark jumps to ${answer.c}` };
}

/** The check after the quorum, and the range at once to its requester. */
export function handOut(world: World, rules: Rules, index: number): Outcome {
  const coordinator = at(world.coordinators, index);
  const { from, to, g, floor, gmin } = coordinator;
  // Role and epoch are looked at too: whoever waits at a server when they change has been cut off already.
  const same = !rules.design.check || at(world.nodes, coordinator.at).record?.g === g;
  if (!same || (rules.design.memory && from <= floor)) {
    return { world: changed(world, index, interrupted(coordinator)), says: `it differs, ${range(from, to)} burnt` };
  }
  const bits = 2 ** (to + 1) - 2 ** from;
  const repeated = world.handedOut & bits;
  // A design without a line promises none.
  const highest = line(rules.numbers, world.now + rules.numbers.eps);
  const aboveLine = rules.design.jump === "line" && to > highest ? to : 0;
  const remembering = { ...interrupted(coordinator), floor: Math.max(floor, to), gmin: Math.max(gmin, g) };
  const next = { ...world, handedOut: world.handedOut | bits, repeated, aboveLine };
  return { world: changed(next, index, remembering), says: `${range(from, to)} HANDED OUT` };
}

function moves(world: World, index: number, visit: Visit): void {
  const coordinator = at(world.coordinators, index);
  for (const [to, node] of world.nodes.entries()) {
    // At a master without a record there is nothing to wait for.
    if (to === coordinator.at || !isMaster(node) || !node.record) continue;
    const moved = { ...interrupted(coordinator), at: to };
    visit(changed(world, index, moved), () => `${name(index)} connects to ${NODE_NAMES[to]}`);
  }
}

const refused = (world: World, index: number, answer: Answer): Outcome => ({
  world: changed(world, index, interrupted(at(world.coordinators, index))),
  says: String(answer),
});

function caller(world: World, index: number): Caller {
  const { floor, gmin, clockAhead } = at(world.coordinators, index);
  return { floor, gmin, clock: world.now + clockAhead };
}

/** The same world with one coordinator changed. */
export const changed = (world: World, index: number, coordinator: Coordinator): World => ({
  ...world,
  coordinators: replaced(world.coordinators, index, coordinator),
});

const name = (index: number): string => at(COORDINATOR_NAMES, index);
const place = (world: World, index: number): string => at(NODE_NAMES, at(world.coordinators, index).at);
const range = (from: number, to: number): string => (from === to ? `run ${from}` : `runs ${from} to ${to}`);
