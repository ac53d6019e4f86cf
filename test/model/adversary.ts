/**
 * What the adversary may do: faults, each of which counts, and what goes on by itself (time, replication, links that come back).
 *
 * Its limits are what the guard does not claim to survive, each with its line in the guard:
 * - Three nodes, so the quorum is one replica. "Every promotable node counts (`init --nodes N`)": nobody attaches a fourth.
 * - A node has one past: disks and backups bring back what that node, or the record, once was. "Two live copies of one store
 *   with the same id (a cloned volume)" is outside, and so no node starts from another one's files.
 * - Clocks are wrong by up to eps, and on one side only by more. "Clocks of coordinator and Redis wrong in the same direction by
 *   more than eps, at a lease or around a loss" is outside.
 * - "A store rolled back inside one server process, younger than the gap, at the moment when the only coordinator that remembers
 *   is lost together with its witness" is outside. The model needs more: see `everyoneRemembers` in `Limits`.
 * - An edit by hand changes a field and not the checksum. "Root on the Redis host" is outside.
 * - A coordinator's witness is lost only together with the coordinator's memory. With the witness kept, a kill at any await is
 *   the same as giving up, which the coordinator's own steps do.
 */
import type { Visit } from "./coordinator-steps.js";
import { changed, lease } from "./coordinator-steps.js";
import { attached, caughtUp, interrupted, isBehind, promoted, restarted, written } from "./replication.js";
import { isRefusal, recoverScript, type Rules } from "./scripts.js";
import {
  at,
  COORDINATOR_NAMES,
  FIRST_RECORD,
  FIRST_SNAPSHOT,
  isMaster,
  NODE_NAMES,
  NOBODY,
  replaced,
  type Snapshot,
  type StoreRecord,
  type World,
} from "./world.js";

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

export type FaultKind = keyof typeof FAULTS;

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
  const faulty: Visit = (next, words) => visit({ ...next, faultCount: world.faultCount + 1 }, () => `FAULT: ${words()}`);
  for (const kind of limits.kinds ?? ALL_FAULTS) FAULTS[kind](world, rules, limits, faulty);
}

type Fault = (world: World, rules: Rules, limits: Limits, visit: Visit) => void;

const FAULTS = {
  promote(world, _rules, _limits, visit) {
    for (const index of replicas(world)) {
      visit(promoted(world, index), () => `${nodeName(index)} is promoted, its old master lives on`);
    }
  },
  follow(world, { design }, _limits, visit) {
    for (const master of masters(world)) {
      for (const [index, node] of world.nodes.entries()) {
        if (index === master || node.follows === master) continue;
        visit(attached(world, design, index, master), () => `${nodeName(index)} is told to follow ${nodeName(master)}`);
      }
    }
  },
  /** kill -9, power loss, an older RDB or AOF put back, no persistence at all; with the configuration it had, or an older one. */
  restart(world, _rules, _limits, visit) {
    for (const [index, node] of world.nodes.entries()) {
      for (const [from, snapshot] of disksOf(world, index)) {
        for (const follows of new Set([node.follows, ...masters(world).filter((master) => master !== index)])) {
          const configured = { ...world, nodes: replaced(world.nodes, index, { ...node, follows }) };
          visit(restarted(configured, index, snapshot.record, snapshot), () => {
            const role = follows === NOBODY ? "as a master" : `as replica of ${nodeName(follows)}`;
            return `${nodeName(index)} is killed and starts again from ${from} ${role}`;
          });
        }
      }
    }
  },
  /** An old record copied back, or a dump reloaded, inside the running server. */
  rollBack(world, rules, limits, visit) {
    for (const index of masters(world)) {
      for (const record of oldRecords(world)) {
        if (sameRecord(record, at(world.nodes, index).record)) continue;
        const young = world.now - record.t <= rules.numbers.gap + rules.numbers.eps;
        const believed = young && record.p === 0 && record.ep === at(world.nodes, index).epoch;
        if (believed && !isRemembered(world, record, limits)) continue;
        const next = { ...written(world, index, record), rolledBack: believed ? index : world.rolledBack };
        visit(next, () => `the record of tick ${record.t}, with mark ${record.c}, is put back into the running ${nodeName(index)}`);
      }
    }
  },
  backUp(world, _rules, { faults }, visit) {
    // One is taken, and only while a fault is left to put it back.
    if (world.backup || world.faultCount + 1 >= faults) return;
    for (const [node, { record, history, offset }] of world.nodes.entries()) {
      if (sameRecord(record, FIRST_RECORD)) continue;
      visit({ ...world, backup: { node, record, history, offset } }, () => `a backup is taken of ${nodeName(node)}`);
    }
  },
  /** FLUSHALL or DEL. */
  flush(world, _rules, _limits, visit) {
    for (const index of masters(world)) {
      if (at(world.nodes, index).record) visit(written(world, index, null), () => `the record is deleted at ${nodeName(index)}`);
    }
  },
  edit(world, { design }, _limits, visit) {
    for (const index of masters(world)) {
      const { record, epoch } = at(world.nodes, index);
      if (!record?.sound) continue;
      // Where the checksum is looked at, one wrong field is as good as another.
      const edits: Partial<StoreRecord>[] = design.checksum ? [{}] : [{ c: 0 }, { t: world.now }, { ep: epoch }, { g: record.g + 1 }, { p: 0 }];
      for (const edit of edits) {
        const what = Object.entries(edit).map(([field, value]) => `${field} = ${value}`)[0] ?? "one field";
        visit(written(world, index, { ...record, ...edit, sound: false }), () => `${what} is written by hand at ${nodeName(index)}`);
      }
    }
  },
  /** The operator's verb, typed at any time on any master. */
  recover(world, rules, _limits, visit) {
    for (const index of masters(world)) {
      const node = at(world.nodes, index);
      const answer = recoverScript(rules, node, world.now + node.clockAhead, { floor: 0, gmin: 0, clock: world.now });
      if (!isRefusal(answer)) visit(written(world, index, answer), () => `an operator types recover for ${nodeName(index)}`);
    }
  },
  forget(world, _rules, _limits, visit) {
    if (world.rolledBack !== NOBODY) return;
    for (const [index, coordinator] of world.coordinators.entries()) {
      if (coordinator.floor === 0 && coordinator.gmin === 0) continue;
      const empty = { ...interrupted(coordinator), floor: 0, gmin: 0 };
      visit(changed(world, index, empty), () => `${COORDINATOR_NAMES[index]} is killed, and its witness file is lost`);
    }
  },
  /** A proxy gives the answer for one coordinator to the other as well. */
  doubleAnswer(world, rules, _limits, visit) {
    for (const [index, { phase, from, to, g, at: place }] of world.coordinators.entries()) {
      const other = 1 - index;
      const caller = at(world.coordinators, other);
      if (phase !== "leased" || caller.phase !== "idle" || caller.at !== place) continue;
      const asked = lease(world, rules, other, 1).world;
      if (at(asked.coordinators, other).phase !== "leased") continue;
      const taken = rules.design.nonce ? interrupted(caller) : { ...at(asked.coordinators, other), from, to, g };
      visit(changed(asked, other, taken), () => `${COORDINATOR_NAMES[other]} asks for a lease and gets the answer for ${COORDINATOR_NAMES[index]}`);
    }
  },
  /** The clock of a node or of a coordinator is set ahead or back. Coordinators' stay within eps: see the limits above. */
  clock(world, { numbers: { eps } }, _limits, visit) {
    if (eps === 0) return;
    for (const clockAhead of [-eps, eps]) {
      for (const [index, node] of world.nodes.entries()) {
        if (node.clockAhead !== 0) continue;
        visit({ ...world, nodes: replaced(world.nodes, index, { ...node, clockAhead }) }, () => `the clock of ${nodeName(index)} is now ${clockAhead} ahead`);
      }
      for (const [index, coordinator] of world.coordinators.entries()) {
        if (coordinator.clockAhead !== 0) continue;
        visit(changed(world, index, { ...coordinator, clockAhead }), () => `the clock of ${COORDINATOR_NAMES[index]} is now ${clockAhead} ahead`);
      }
    }
  },
} satisfies Record<string, Fault>;

const ALL_FAULTS = Object.keys(FAULTS) as FaultKind[];

/** Notes when a record that was rolled back is no longer believed, or no longer there. */
export function withRollbackSettled(world: World, next: World): World {
  if (next.rolledBack === NOBODY || next.rolledBack !== world.rolledBack) return next;
  const was = at(world.nodes, next.rolledBack);
  const is = at(next.nodes, next.rolledBack);
  const settled = !isMaster(is) || is.epoch !== was.epoch || !is.record || is.record.g !== was.record?.g;
  return settled ? { ...next, rolledBack: NOBODY } : next;
}

/** What the node may find at a restart: nothing, the beginning, its last write, or the backup if it was taken of this node. */
function disksOf(world: World, index: number): [string, Snapshot][] {
  const node = index;
  const { record, history, offset } = at(world.nodes, index);
  return [
    ["all it had", { node, record, history, offset }],
    ["an empty disk", { node, record: null, history: world.fresh, offset: 0 }],
    ["its first files", { node, ...FIRST_SNAPSHOT }],
    ...(world.backup?.node === index ? [["its backup", world.backup] satisfies [string, Snapshot]] : []),
  ];
}

const oldRecords = ({ backup }: World): StoreRecord[] => [FIRST_RECORD, ...(backup?.record ? [backup.record] : [])];

function isRemembered({ coordinators }: World, { c, g }: StoreRecord, { everyoneRemembers }: Limits): boolean {
  const remembering = coordinators.filter(({ floor, gmin }) => floor > c || gmin > g);
  return remembering.length >= (everyoneRemembers ? coordinators.length : 1);
}

const sameRecord = (one: StoreRecord | null, other: StoreRecord | null): boolean =>
  one === other ||
  (one !== null && other !== null && (Object.keys(one) as (keyof StoreRecord)[]).every((field) => one[field] === other[field]));

const masters = (world: World): number[] => indexesWhere(world, true);
const replicas = (world: World): number[] => indexesWhere(world, false);
const indexesWhere = (world: World, wanted: boolean): number[] =>
  [...world.nodes.keys()].filter((index) => isMaster(at(world.nodes, index)) === wanted);
const nodeName = (index: number): string => at(NODE_NAMES, index);
