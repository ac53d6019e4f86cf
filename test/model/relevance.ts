/**
 * Forgets what can no longer matter, so that worlds with the same future become the same world.
 * Only once the adversary has no fault left: until then a restart, a link or an old record can make everything matter again.
 */
import type { Limits } from "./adversary.js";
import { continues, interrupted, isWaiting } from "./replication.js";
import type { Rules } from "./scripts.js";
import { type Coordinator, type DataNode, isMaster, NOBODY, type StoreRecord, type World } from "./world.js";

/** The same world without what no future step can depend on, or undefined where no run can ever be handed out again. */
export function relevant(world: World, { design }: Rules, limits: Limits): World | undefined {
  // Without a quorum every master leases, with or without replicas.
  if (world.faultCount < limits.faults || !design.quorum) return world;
  // Of three nodes only one can be a master with a replica. Another master waits for acknowledgements for ever.
  const leader = world.nodes.findIndex((node, index) => isMaster(node) && hasReplica(world, index));
  const record = world.nodes[leader]?.record;
  if (!record || (design.checksum && !record.sound)) return undefined;
  const voter = world.nodes.findIndex(({ follows, linked }) => follows === leader && linked);
  const coordinators = world.coordinators.map((one) => relevantCoordinator(one, leader, record, voter !== NOBODY));
  return {
    ...world,
    nodes: world.nodes.map((node, index) => {
      if (index === leader) return { ...node, history: KNOWN, offset: 1, before: NOWHERE };
      // Nobody will promote a replica: that it is there is all. One that is linked is as good as two.
      if (node.follows !== leader || (node.linked && index !== voter)) return NODE_APART;
      const known = node.linked || continues(node, leaderOf(world, node));
      return { ...node, record: null, history: known ? KNOWN : UNKNOWN, offset: 1 };
    }),
    coordinators,
    backup: null,
    rolledBack: NOBODY,
    handedOut: world.handedOut & ~(2 ** firstStillLeasable(coordinators, record) - 1),
  };
}

/**
 * Whoever waits at another master may as well have left; memory below the record never speaks; and an acknowledgement that can
 * come may as well have come, since whoever does not get it can only give up, which it may do at any time.
 */
function relevantCoordinator(
  given: Coordinator,
  leader: number,
  { c, g }: StoreRecord,
  hasVoter: boolean,
): Coordinator {
  const here = given.at === leader ? given : { ...interrupted(given), at: leader };
  const silent = here.floor <= c && here.gmin <= g && (here.phase !== "leased" || here.floor < here.from);
  const heard = hasVoter && isWaiting(here) && !here.acknowledged;
  if (!silent && !heard) return here;
  const { floor, gmin, acknowledged } = here;
  return { ...here, floor: silent ? 0 : floor, gmin: silent ? 0 : gmin, acknowledged: heard || acknowledged };
}

/** Runs below were all leased before, and are in nobody's hand. */
const firstStillLeasable = (coordinators: readonly Coordinator[], { c }: StoreRecord): number =>
  Math.min(c + 1, ...coordinators.map(({ phase, from }) => (phase === "leased" ? from : c + 1)));

const hasReplica = (world: World, index: number): boolean => world.nodes.some(({ follows }) => follows === index);
const leaderOf = (world: World, node: DataNode): DataNode => world.nodes[node.follows] as DataNode;

/** What is left of replication histories: whether a replica could go on from where it is. */
const KNOWN = 1;
const UNKNOWN = 0;
const NOWHERE = { history: UNKNOWN, offset: 0 };
/** A node without part in what comes: it looks like an empty master, at which every lease is refused. */
const NODE_APART: DataNode = {
  history: UNKNOWN,
  offset: 0,
  record: null,
  follows: NOBODY,
  linked: false,
  epoch: 0,
  before: NOWHERE,
  clockAhead: 0,
};
