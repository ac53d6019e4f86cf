/**
 * One number pair for all worlds that differ only in names: of nodes, of coordinators, of epochs and histories.
 * Two worlds with the same fingerprint have the same future; that two others fall together has a chance near 2^-64 for each pair.
 * The search asks this of every step, so nothing is allocated here: what one call needs lies in arrays made once.
 */
import type { Limits } from "./adversary.js";
import {
  at,
  type Coordinator,
  type DataNode,
  FIRST_SNAPSHOT,
  isMaster,
  NODE_NAMES,
  type Position,
  type StoreRecord,
  type World,
} from "./world.js";

export interface Fingerprint {
  readonly high: number;
  readonly low: number;
}

const PHASES = { idle: 0, doubt: 1, leased: 2, claimed: 3 };

/** Nodes by what they hold: `order[place]` is an index, `places[index + 1]` a place plus one, so that `NOBODY` has place 0. */
const order = new Int32Array(NODE_NAMES.length);
const places = new Int32Array(NODE_NAMES.length + 1);
const likeness = new Float64Array(NODE_NAMES.length);

/** Replication histories by their first mention. The first one has a fixed name: a restart may always fall back to it. */
const histories = new Int32Array(16);
let historyCount = 0;

/** All positions of the world, and the first one, for the same reason. Only the order of those in one history counts. */
const offsets = new Int32Array(2 * NODE_NAMES.length + 2);
const historyAt = new Int32Array(offsets.length);

let high = 0;
let low = 0;

export function fingerprint(world: World, limits: Limits): Fingerprint {
  begin(world);
  add(world.now | (world.faultCount << 8));
  add(world.handedOut);
  add(placeOf(world.rolledBack));
  for (let place = 0; place < order.length; place += 1) {
    const node = at(world.nodes, order[place] as number);
    add((placeOf(node.follows) << 8) | (node.linked ? 128 : 0) | (node.clockAhead + 8));
    add(packed(world, node.record));
    add(placeInHistory(node));
    if (isMaster(node)) add(placeInHistory(node.before));
  }
  addCoordinators(world);
  // Nothing can be put back any more once the faults are used up.
  if (world.backup && world.faultCount < limits.faults) {
    const { node, record } = world.backup;
    add(placeOf(node));
    add(packed(world, record));
    add(placeInHistory(world.backup));
  }
  return { high: finished(high), low: finished(low) };
}

function begin({ nodes, coordinators, backup }: World): void {
  high = 0x9747b28c;
  low = 0x3c6ef372;
  histories[0] = 1;
  historyCount = 1;
  keep(0, FIRST_SNAPSHOT);
  keep(1, backup ?? FIRST_SNAPSHOT);
  for (let index = 0; index < order.length; index += 1) {
    const node = at(nodes, index);
    keep(2 * index + 2, node);
    keep(2 * index + 3, isMaster(node) ? node.before : node);
    likeness[index] = likenessOf(node, visitorsOf(coordinators, index));
    order[index] = index;
  }
  // Three are sorted by three comparisons.
  inOrder(0, 1);
  inOrder(1, 2);
  inOrder(0, 1);
  for (let place = 0; place < order.length; place += 1) places[(order[place] as number) + 1] = place + 1;
}

function inOrder(here: number, there: number): void {
  const [one, other] = [order[here] as number, order[there] as number];
  if ((likeness[one] as number) <= (likeness[other] as number)) return;
  order[here] = other;
  order[there] = one;
}

/** The same for nodes that hold the same; more need not be seen, since a worse order only costs a repeated world. */
const likenessOf = (node: DataNode, visitors: number): number =>
  (((node.record ? contents(node.record) : -1) * 4 + visitors) * 16 + node.clockAhead + 8) * 4 +
  (isMaster(node) ? 2 : 0) +
  (node.linked ? 1 : 0);

function visitorsOf(coordinators: readonly Coordinator[], index: number): number {
  let count = 0;
  for (const coordinator of coordinators) if (coordinator.at === index) count += 1;
  return count;
}

const placeOf = (index: number): number => places[index + 1] as number;

function historyName(history: number): number {
  for (let name = 0; name < historyCount; name += 1) if (histories[name] === history) return name;
  histories[historyCount] = history;
  historyCount += 1;
  return historyCount - 1;
}

function keep(place: number, { history, offset }: Position): void {
  historyAt[place] = history;
  offsets[place] = offset;
}

/** The name of the history, and how many positions in it lie below. */
function placeInHistory({ history, offset }: Position): number {
  let below = 0;
  for (let place = 0; place < offsets.length; place += 1) {
    if (historyAt[place] === history && (offsets[place] as number) < offset) below += 1;
  }
  return (historyName(history) << 8) | below;
}

/** Of the epoch only this can matter: whether it is that of a master now, and of which. */
function packed({ nodes }: World, record: StoreRecord | null): number {
  if (!record) return -1;
  let owner = -1;
  for (let index = 0; index < order.length; index += 1) {
    const node = at(nodes, index);
    if (node.follows < 0 && node.epoch === record.ep) owner = index;
  }
  return contents(record) * 4 + placeOf(owner);
}

const contents = ({ c, t, g, p, sound }: StoreRecord): number =>
  (((c * 16 + t) * 64 + g) * 2 + p) * 2 + (sound ? 1 : 0);

function addCoordinators({ coordinators }: World): void {
  const one = packedCoordinator(at(coordinators, 0));
  const other = packedCoordinator(at(coordinators, 1));
  addWide(Math.min(one, other));
  addWide(Math.max(one, other));
}

/** In fewer than 53 bits. */
function packedCoordinator(coordinator: Coordinator): number {
  const { at: index, phase, from, to, g, acknowledged, floor, gmin, clockAhead } = coordinator;
  const work = ((PHASES[phase] * 2 + (acknowledged ? 1 : 0)) * 32 + from) * 32 + to;
  return ((((work * 64 + g) * 4 + placeOf(index)) * 32 + floor) * 64 + gmin) * 16 + clockAhead + 8;
}

function addWide(value: number): void {
  add(value | 0);
  add(value / 2 ** 32);
}

/** Two lanes of 32 bits, each mixed as MurmurHash3 mixes, with other constants. */
function add(value: number): void {
  high = mixed(high, value, 0xcc9e2d51, 0x1b873593);
  low = mixed(low, value, 0x239b961b, 0xab0e9789);
}

function mixed(state: number, value: number, first: number, second: number): number {
  let word = Math.imul(value, first);
  word = Math.imul((word << 15) | (word >>> 17), second);
  const turned = state ^ word;
  return (Math.imul((turned << 13) | (turned >>> 19), 5) + 0xe6546b64) | 0;
}

function finished(state: number): number {
  let word = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return (word ^ (word >>> 16)) >>> 0;
}
