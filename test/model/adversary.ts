/**
 * What the adversary may do: faults, each of which counts, and what goes on by itself (time, replication, links that come back).
 *
 * Its limits are what docs/guarantees.md does not promise:
 * - A2, A3: three nodes, so the quorum is one replica; nobody attaches a fourth.
 * - A4, R1: a node has one past. Disks and backups bring back what that node, or the record, once was; no node starts from another
 *   one's files, and nothing has two futures.
 * - A1, R2: clocks are wrong by up to eps. A clock that is wrong by more, on one side only, is refused at every step.
 * - A6: an edit by hand changes a field and not the checksum.
 * - R3: a record is put back into a running server, younger than the gap, only while every coordinator remembers more than it
 *   holds; see `everyoneRemembers`.
 * - A7, R6: nobody sets a server's statistics back; see `OUTSIDE_THE_PROMISES`.
 *
 * A coordinator's witness is lost only together with the coordinator's memory. With the witness kept, a kill at any await is the
 * same as giving up, which the coordinator's own steps do.
 */
import type { Visit } from "./coordinator-steps.js";
import { ALL_FAULTS, FAULTS, type FaultKind } from "./faults.js";
import { attached, caughtUp, isBehind } from "./replication.js";
import type { Rules } from "./scripts.js";
import { at, isMaster, NOBODY, NODE_NAMES, type World } from "./world.js";

export interface Limits {
  /** Ticks until the clock stands still. */
  readonly ticks: number;
  readonly faults: number;
  /** Claims and recoveries beyond this generation are not looked at. */
  readonly generations: number;
  /** Only the named faults happen; without the list, all. */
  readonly kinds?: readonly FaultKind[];
  /**
   * A running server's record is rolled back to one younger than the gap only while every coordinator, not just one,
   * remembers more than it holds: else one that knows less may lease before one that knows more has spoken.
   */
  readonly everyoneRemembers: boolean;
}

/** What happens by itself, and costs the adversary nothing. */
export function visitCourse(world: World, rules: Rules, limits: Limits, visit: Visit): void {
  if (world.now < limits.ticks) visit({ ...world, now: world.now + 1 }, () => `time passes: it is ${world.now + 1}`);
  for (const [index, node] of world.nodes.entries()) {
    if (isMaster(node)) continue;
    const master = at(world.nodes, node.follows);
    if (isBehind(world, node)) {
      visit(caughtUp(world, index), () => `${NODE_NAMES[index]} catches up with ${NODE_NAMES[node.follows]}`);
    } else if (!node.linked && isMaster(master)) {
      visit(
        attached(world, rules.design, index, node.follows),
        () => `${NODE_NAMES[index]} finds its master ${NODE_NAMES[node.follows]} again`,
      );
    }
  }
}

export function visitFaults(world: World, rules: Rules, limits: Limits, visit: Visit): void {
  if (world.faultCount >= limits.faults) return;
  const faulty: Visit = (next, words) =>
    visit({ ...next, faultCount: world.faultCount + 1 }, () => `FAULT: ${words()}`);
  for (const kind of limits.kinds ?? ALL_FAULTS) FAULTS[kind](world, rules, limits, faulty);
}

/** Notes when a record that was rolled back is no longer believed, or no longer there. */
export function withRollbackSettled(world: World, next: World): World {
  if (next.rolledBack === NOBODY || next.rolledBack !== world.rolledBack) return next;
  const was = at(world.nodes, next.rolledBack);
  const is = at(next.nodes, next.rolledBack);
  const settled = !isMaster(is) || is.epoch !== was.epoch || !is.record || is.record.g !== was.record?.g;
  return settled ? { ...next, rolledBack: NOBODY } : next;
}
