/**
 * A Redis Cluster: three masters that share the slots, and a replica for each. Made, and read, by the user that we ship for that. What a
 * node knows of the others is its own view.
 */
import { command, info, linesByName, until } from "./redis-command.js";
import type { LaunchNode } from "./replicated-redis.js";
import { asClusterMaker } from "./shipped-users.js";
import { type RedisServer, startRedisServer } from "./test-redis.js";

const MASTER_COUNT = 3;
const SLOT_COUNT = 16_384;
/** Redis forgets a manual failover that has not come about within 5,000 ms; then it is requested again. */
const FAILOVER_REQUEST_MS = 6_000;

export interface ClusterRedisOptions {
  /** How long a node must be silent before the others hold it to be down. Default: 2,000; less takes a busy machine for a dead node. */
  nodeTimeoutMs?: number;
  /** Default: `startRedisServer`, so that every node ends with the test file. */
  launch?: LaunchNode;
}

/** How much the others have a say: their votes and the master's consent, their votes, nothing. */
type FailoverForce = "FORCE" | "TAKEOVER" | undefined;

export interface ClusterRedis {
  /** As they were started: the masters, then the replica of each in the same order. The roles change. */
  readonly nodes: readonly RedisServer[];
  /** The node that owns the slot of the key, as the first node sees it. */
  masterOf(key: string): Promise<RedisServer>;
  /** The replicas of a master that the first node does not hold to be down. */
  replicasOf(master: RedisServer): Promise<RedisServer[]>;
  /**
   * CLUSTER FAILOVER on the replica. Resolves when it reports that it is a master; the others may learn it later, see `untilAgreed`.
   * @throws RespRefusal when the replica refuses, as without force while its master is down.
   */
  failover(replica: RedisServer, force?: FailoverForce): Promise<void>;
  /** Resolves when all nodes hold the cluster to be whole and agree on the owners of slots, with each replica's link up. */
  untilAgreed(): Promise<void>;
}

/** Resolves when every node holds the cluster to be whole, and every replica has its link. */
export async function startClusterRedis({
  nodeTimeoutMs = 2_000,
  launch = startRedisServer,
}: ClusterRedisOptions = {}): Promise<ClusterRedis> {
  const config = clusterConfig(nodeTimeoutMs);
  const nodes = await Promise.all(
    Array.from({ length: MASTER_COUNT * 2 }, (_, index) =>
      // By default the bus has the port plus 10,000: among those that outgoing connections are given, and so perhaps taken after a kill.
      launch({ config, morePorts: ["cluster-port"] }, index),
    ),
  );
  const [first] = nodes as [RedisServer];
  const masters = nodes.slice(0, MASTER_COUNT);
  await Promise.all(masters.map(giveSlots));
  for (const node of nodes.slice(1)) {
    const [, busPort] = (await command(node, "CONFIG", "GET", "cluster-port")) as [string, string];
    await command(asClusterMaker(first), "CLUSTER", "MEET", node.host, node.port, busPort);
  }
  await Promise.all(nodes.slice(MASTER_COUNT).map((node, index) => replicate(node, masters[index] as RedisServer)));
  await untilAgreed(nodes);
  return {
    nodes,
    async masterOf(key) {
      const slot = Number(await command(first, "CLUSTER", "KEYSLOT", key));
      const view = await viewOf(first, nodes);
      const owner = view.find(({ slots }) => slots.some(([from, to]) => from <= slot && slot <= to));
      if (!owner) throw new Error(`no node owns slot ${slot}`);
      return owner.node;
    },
    async replicasOf(master) {
      const view = await viewOf(first, nodes);
      const id = view.find(({ node }) => node === master)?.id;
      return view.filter(({ masterId, isDown }) => masterId === id && !isDown).map(({ node }) => node);
    },
    failover,
    untilAgreed: () => untilAgreed(nodes),
  };
}

function clusterConfig(nodeTimeoutMs: number): Record<string, string> {
  return {
    "cluster-enabled": "yes",
    "cluster-node-timeout": `${nodeTimeoutMs}`,
    // A replica that has been cut off for long shall not stand back for that.
    "cluster-replica-validity-factor": "0",
    // A master without a replica would be given another one's.
    "cluster-allow-replica-migration": "no",
    "repl-diskless-sync-delay": "0",
  };
}

async function giveSlots(master: RedisServer, index: number): Promise<void> {
  const firstOf = (share: number) => Math.floor((SLOT_COUNT * share) / MASTER_COUNT);
  const first = firstOf(index);
  const slots = Array.from({ length: firstOf(index + 1) - first }, (_, slot) => first + slot);
  await command(asClusterMaker(master), "CLUSTER", "SET-CONFIG-EPOCH", index + 1);
  await command(asClusterMaker(master), "CLUSTER", "ADDSLOTS", ...slots);
}

async function replicate(replica: RedisServer, master: RedisServer): Promise<void> {
  const masterId = String(await command(master, "CLUSTER", "MYID"));
  // Refused until the two have heard of each other.
  const ask = () => command(asClusterMaker(replica), "CLUSTER", "REPLICATE", masterId);
  await until(`${replica.url} knows ${master.url}`, ask, (answer) => answer === "OK");
}

async function failover(replica: RedisServer, force: FailoverForce): Promise<void> {
  const words = ["CLUSTER", "FAILOVER", ...(force === undefined ? [] : [force])];
  let requestedAt = 0;
  const role = async () => {
    const { role } = await info(replica);
    if (role !== "master" && Date.now() - requestedAt > FAILOVER_REQUEST_MS) {
      await command(asClusterMaker(replica), ...words);
      requestedAt = Date.now();
    }
    return role;
  };
  await role();
  await until(`${replica.url} is a master`, role, (seen) => seen === "master");
}

async function untilAgreed(nodes: readonly RedisServer[]): Promise<void> {
  const opinionOf = async (node: RedisServer) => {
    const { cluster_state: state } = linesByName(await command(asClusterMaker(node), "CLUSTER", "INFO"));
    const { master_link_status: link } = await info(asClusterMaker(node));
    return { state, link, view: viewText(await viewOf(node, nodes)) };
  };
  await until(
    "the cluster's nodes agree that it is whole",
    () => Promise.all(nodes.map(opinionOf)),
    (all) =>
      new Set(all.map(({ view }) => view)).size === 1 &&
      all.every(({ state, link }) => state === "ok" && link !== "down"),
  );
}

/** A node as another one sees it. */
interface NodeSeen {
  readonly node: RedisServer;
  readonly id: string;
  /** The id of the master that it follows; "-" for a master. */
  readonly masterId: string;
  /** The node that was asked holds it to be down, or learns so from the others. */
  readonly isDown: boolean;
  /** First and last slot of each range it owns. */
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** Returns all of `nodes` that `asked` knows, from CLUSTER NODES. */
async function viewOf(asked: RedisServer, nodes: readonly RedisServer[]): Promise<NodeSeen[]> {
  const text = String(await command(asClusterMaker(asked), "CLUSTER", "NODES"));
  return text.split("\n").flatMap((line) => {
    const [id = "", address = "", flags = "", masterId = "", , , , , ...ranges] = line.split(" ");
    const [, host, port] = /^(.*):(\d+)@/.exec(address) ?? [];
    // A node that no client has connected to yet does not know its own address.
    const node = nodes.find((one) => `${one.port}` === port && one.host === (host || asked.host));
    // A range in brackets is a slot that is being moved to another node.
    const slots = ranges.filter((range) => !range.startsWith("[")).map(slotRange);
    return node ? [{ node, id, masterId, isDown: /(^|,)fail/.test(flags), slots }] : [];
  });
}

/** Returns the same text for the same view, from any node. */
function viewText(view: readonly NodeSeen[]): string {
  const lines = view.map(({ id, masterId, isDown, slots }) => `${id} ${masterId} ${isDown} ${slots.join(" ")}`);
  return lines.sort().join("\n");
}

function slotRange(text: string): [number, number] {
  const [first = Number.NaN, last = first] = text.split("-").map(Number);
  return [first, last];
}
