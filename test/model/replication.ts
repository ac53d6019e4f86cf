/**
 * Replication as Redis does it: who follows whom, how a link comes to stand, and what that does to epochs and to waiting callers.
 * Knows no script, and not who causes it or why.
 *
 * A replica always catches up in one step. That leaves nothing out: a replica that holds a part of its master's writes caught up
 * right after the last of that part. Chains of replicas are left out: they acknowledge nothing.
 */
import type { Design } from "./design.js";
import {
  at,
  type Coordinator,
  type DataNode,
  isMaster,
  NOBODY,
  type Position,
  replaced,
  type StoreRecord,
  type World,
} from "./world.js";

/** The master `index` writes its record. */
export function written(world: World, index: number, record: StoreRecord | null): World {
  const node = at(world.nodes, index);
  return { ...world, nodes: replaced(world.nodes, index, { ...node, record, offset: node.offset + 1 }) };
}

export const isBehind = (world: World, { follows, linked, offset }: DataNode): boolean =>
  linked && at(world.nodes, follows).offset !== offset;

/** A replica receives all that its master has written, and acknowledges it to every caller that waits there. */
export function caughtUp(world: World, index: number): World {
  const node = at(world.nodes, index);
  const { record, offset } = at(world.nodes, node.follows);
  return heard({ ...world, nodes: replaced(world.nodes, index, { ...node, record, offset }) }, node.follows);
}

/** Whoever waits at the master `index` has its acknowledgement. */
const heard = (world: World, index: number): World => ({
  ...world,
  coordinators: world.coordinators.map((coordinator) =>
    coordinator.at === index && isWaiting(coordinator) ? { ...coordinator, acknowledged: true } : coordinator,
  ),
});

/** REPLICAOF NO ONE. The old master lives on and loses a replica. */
export function promoted(world: World, index: number): World {
  const node = at(world.nodes, index);
  const { history, offset } = node;
  const master = {
    ...node,
    follows: NOBODY,
    linked: false,
    epoch: world.fresh,
    history: world.fresh,
    before: { history, offset },
  };
  return { ...world, fresh: world.fresh + 1, nodes: replaced(world.nodes, index, master) };
}

/** REPLICAOF the master `masterIndex`, or the same replica's link again: partially where Redis accepts that, else in full. */
export function attached(world: World, design: Design, index: number, masterIndex: number): World {
  const node = at(world.nodes, index);
  const master = at(world.nodes, masterIndex);
  const partially = continues(node, master);
  const { history, record, offset } = master;
  const replica = { ...node, history, follows: masterIndex, linked: true };
  const nodes = detached(world.nodes, index);
  nodes[index] = partially ? replica : { ...replica, record, offset };
  const next = isMaster(node)
    ? { ...world, nodes, coordinators: hungUp(world.coordinators, index) }
    : { ...world, nodes };
  const noticed = partially ? design.partialSyncInEpoch : design.fullSyncInEpoch;
  const known = noticed ? inNewEpoch(next, design, masterIndex) : next;
  // A full copy holds all that anyone waits for.
  return partially ? known : heard(known, masterIndex);
}

/** A process starts again from what its disk holds, as master or as replica without a link yet. */
export function restarted(
  world: World,
  index: number,
  record: StoreRecord | null,
  { history, offset }: Position,
): World {
  const node = at(world.nodes, index);
  const nodes = detached(world.nodes, index);
  nodes[index] = isMaster(node)
    ? { ...node, record, history: world.fresh, offset, epoch: world.fresh, before: { history, offset } }
    : { ...node, record, history, offset, linked: false };
  return { ...world, nodes, fresh: world.fresh + 1, coordinators: hungUp(world.coordinators, index) };
}

/** Whether Redis would let the node go on from its position, instead of copying everything. */
export const continues = (node: DataNode, master: DataNode): boolean =>
  [master, master.before].some(({ history, offset }) => node.history === history && node.offset <= offset);

/** The replicas of `index` lose their link; they still follow it. */
const detached = (nodes: readonly DataNode[], index: number): DataNode[] =>
  nodes.map((node) => (node.follows === index && node.linked ? { ...node, linked: false } : node));

/** What was asked in an earlier epoch can never pass its check any more, so it is burnt at once. */
function inNewEpoch(world: World, design: Design, index: number): World {
  return {
    ...world,
    nodes: replaced(world.nodes, index, { ...at(world.nodes, index), epoch: world.fresh }),
    fresh: world.fresh + 1,
    coordinators: design.epoch && design.check ? hungUp(world.coordinators, index) : world.coordinators,
  };
}

/** Callers that wait at a server which ends or becomes a replica are cut off. */
const hungUp = (coordinators: readonly Coordinator[], index: number): Coordinator[] =>
  coordinators.map((coordinator) =>
    coordinator.at === index && isWaiting(coordinator) ? interrupted(coordinator) : coordinator,
  );

export const isWaiting = ({ phase }: Coordinator): boolean => phase === "leased" || phase === "claimed";

/** A coordinator that has dropped what it was doing; it remembers what it has handed out. */
export const interrupted = (coordinator: Coordinator): Coordinator => ({
  ...coordinator,
  phase: "idle",
  from: 0,
  to: 0,
  g: 0,
  acknowledged: false,
});
