/**
 * What a coordinator may do next, from every await: it leases or touches, waits, checks, and hands out or remembers; after a doubt
 * it claims, waits, checks and confirms. Between any two of these steps anything else may happen, a kill included.
 * Knows the scripts and no fault. The rules are those of namespace-guard.ts and verify-outcome.ts (packages/coordinator/src/guard), without
 * what only refuses more: patience with somebody else's claim, a last look at the line, a limit of tries.
 */

import { callerOf, changed, coordinatorName, placeName, rangeWords, remembering } from "./coordinators.js";
import { line, versionOf } from "./design.js";
import { caughtUp, interrupted, written } from "./replication.js";
import {
  type Answer,
  claimScript,
  confirmScript,
  isRecoverable,
  isRefusal,
  leaseScript,
  type Rules,
  touchScript,
} from "./scripts.js";
import { at, type Coordinator, isMaster, NODE_NAMES, type World } from "./world.js";

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
  const index = world.coordinators.findIndex(({ phase, acknowledged }) => acknowledged && phase === "leased");
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
      visit(next.world, () => `${coordinatorName(index)} asks ${placeName(world, index)} for a lease: ${next.says}`);
    }
    if (rules.touches) touches(world, rules, index, visit);
    moves(world, index, visit);
  },
  doubt(world, rules, index, visit) {
    const next = claim(world, rules, index);
    visit(next.world, () => `${coordinatorName(index)} claims the store at ${placeName(world, index)}: ${next.says}`);
    moves(world, index, visit);
  },
  leased(world, rules, index, visit) {
    const coordinator = at(world.coordinators, index);
    if (coordinator.acknowledged) {
      const next = handOut(world, rules, index);
      visit(next.world, () => `${coordinatorName(index)} checks ${placeName(world, index)}: ${next.says}`);
    }
    visit(
      changed(world, index, interrupted(coordinator)),
      () => `${coordinatorName(index)} gives up its lease, which is burnt`,
    );
  },
  claimed(world, rules, index, visit) {
    const coordinator = at(world.coordinators, index);
    if (coordinator.acknowledged) {
      const next = confirm(world, rules, index);
      visit(
        next.world,
        () => `${coordinatorName(index)} confirms its claim at ${placeName(world, index)}: ${next.says}`,
      );
    }
    const left = (coordinator.acknowledged && remembering(world, rules, index)) || interrupted(coordinator);
    visit(changed(world, index, left), () => `${coordinatorName(index)} gives up its claim`);
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
  const answer = leaseScript(rules, node, world.now + node.clockAhead, callerOf(world, index), asked);
  const old = node.record;
  if (isRecoverable(answer) && old) {
    return { world: changed(world, index, { ...coordinator, phase: "doubt", g: old.g }), says: answer };
  }
  if (isRefusal(answer) || !old) return { world, says: String(answer) };
  const [from, to] = [old.c + 1, answer.c];
  const waiting: Coordinator = {
    ...coordinator,
    phase: "leased",
    from,
    to,
    g: answer.g,
    acknowledged: !rules.design.quorum,
  };
  return {
    world: changed(written(world, coordinator.at, answer), index, waiting),
    says: `${rangeWords(from, to)}, not yet handed out`,
  };
}

/**
 * A touch, whose answer is either lost or, where a replica stands by, judged at once: then the mark and the generation are remembered.
 * That leaves nothing out: a replica that acknowledges later stood by already, or its arrival has made the check differ. A
 * confirmation is remembered in the same way, by a touch that follows it.
 */
function touches(world: World, rules: Rules, index: number, visit: Visit): void {
  const coordinator = at(world.coordinators, index);
  const node = at(world.nodes, coordinator.at);
  const answer = touchScript(rules, node, world.now + node.clockAhead, callerOf(world, index));
  if (isRefusal(answer)) return;
  const isNews = answer.t !== node.record?.t;
  const touched = isNews ? written(world, coordinator.at, answer) : world;
  const words = `${coordinatorName(index)} touches ${placeName(world, index)}`;
  if (isNews) visit(touched, () => `${words}, and the answer is lost`);
  if (coordinator.floor >= answer.c && coordinator.gmin >= answer.g) return;
  const noted = changed(touched, index, {
    ...coordinator,
    floor: Math.max(coordinator.floor, answer.c),
    gmin: Math.max(coordinator.gmin, answer.g),
  });
  if (!rules.design.quorum) visit(noted, () => words);
  for (const [voter, { follows, linked }] of world.nodes.entries()) {
    if (follows !== coordinator.at || !linked) continue;
    visit(caughtUp(noted, voter), () => `${words}, and ${NODE_NAMES[voter]} acknowledges it`);
  }
}

/** One claim script. Where the design claims first, the answer waits for the quorum. */
export function claim(world: World, rules: Rules, index: number): Outcome {
  const coordinator = at(world.coordinators, index);
  const node = at(world.nodes, coordinator.at);
  const answer = claimScript(rules, node, world.now + node.clockAhead, callerOf(world, index), coordinator.g);
  if (isRefusal(answer)) return refused(world, index, answer);
  const taken = written(world, coordinator.at, answer);
  if (!rules.design.claimFirst) {
    const jumped = changed(taken, index, interrupted(coordinator));
    return { world: jumped, says: `the mark jumps to ${answer.c} in the same step` };
  }
  const waiting = { phase: "claimed", to: answer.c, g: answer.g, acknowledged: !rules.design.quorum } as const;
  const claimed = changed(taken, index, { ...coordinator, ...waiting });
  return { world: claimed, says: `generation ${answer.g}, not yet confirmed` };
}

/** The check and the confirm script in one step: the script asks again all that the check asks. */
export function confirm(world: World, rules: Rules, index: number): Outcome {
  const judged = remembering(world, rules, index);
  if (!judged) return refused(world, index, "RACED");
  const node = at(world.nodes, judged.at);
  const { g } = at(world.coordinators, index);
  const counted = changed(world, index, judged);
  const answer = confirmScript(rules, node, world.now + node.clockAhead, callerOf(counted, index), g);
  if (isRefusal(answer)) return refused(counted, index, answer);
  const open = written(counted, judged.at, answer);
  return { world: open, says: `the mark jumps to ${answer.c}` };
}

/** The check after the quorum, and the range at once to its requester. */
export function handOut(world: World, rules: Rules, index: number): Outcome {
  const coordinator = at(world.coordinators, index);
  const { from, to, floor } = coordinator;
  const judged = remembering(world, rules, index);
  if (!judged || (rules.design.memory && from <= floor)) {
    return {
      world: changed(world, index, interrupted(coordinator)),
      says: `it differs, ${rangeWords(from, to)} burnt`,
    };
  }
  const bits = 2 ** (to + 1) - 2 ** from;
  const repeated = world.handedOut & bits;
  // A design without a line promises none.
  const highest = line(rules.numbers, versionOf(rules.numbers, to), world.now + rules.numbers.eps);
  const aboveLine = rules.design.jump === "line" && to > highest ? to : 0;
  const next = { ...world, handedOut: world.handedOut | bits, repeated, aboveLine };
  return { world: changed(next, index, judged), says: `${rangeWords(from, to)} HANDED OUT` };
}

/** A doubt goes along: the claim is made wherever the connection then stands, if it is for the same generation. */
function moves(world: World, index: number, visit: Visit): void {
  const coordinator = at(world.coordinators, index);
  for (const [to, node] of world.nodes.entries()) {
    // At a master without a record there is nothing to wait for.
    if (to === coordinator.at || !isMaster(node) || !node.record) continue;
    if (coordinator.phase === "doubt" && node.record.g !== coordinator.g) continue;
    visit(
      changed(world, index, { ...coordinator, at: to }),
      () => `${coordinatorName(index)} connects to ${NODE_NAMES[to]}`,
    );
  }
}

const refused = (world: World, index: number, answer: Answer): Outcome => ({
  world: changed(world, index, interrupted(at(world.coordinators, index))),
  says: String(answer),
});
