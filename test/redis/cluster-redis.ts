/**
 * A Redis Cluster: three masters that share the slots, and a replica for each.
 * What a node holds to be true of the others is its own view, so who asks says whom. Made, and looked at, by the user that we ship for that.
 */
import { command, info, linesByName, until } from "./redis-command.js";
import { endAll, type LaunchNode } from "./replicated-redis.js";
import { asClusterMaker } from "./shipped-users.js";
import { type RedisServer, type RedisServerOptions, startRedisServer } from "./test-redis.js";

const MASTER_COUNT = 3;
const SLOT_COUNT = 16_384;
/** Redis forgets a fail-over by hand that has not come about within 5,000 ms; then it is asked for again. */
const FAILOVER_REQUEST_MS = 6_000;

export interface ClusterRedisOptions {
  /** How long a node must be silent before the others hold it to be down. Default: 2,000; less takes a busy machine for a dead node. */
  nodeTimeoutMs?: number;
  /** Lines of redis.conf for each node, before those that a cluster needs. Default: nothing is kept on disk but the cluster's own file. */
  config?: RedisServerOptions["config"];
  /** Default: `startRedisServer`, so that every node ends with the test file. */
  launch?: LaunchNode;
}

/** How much the others have a say: their votes and the master's consent, their votes, nothing. */
type FailoverForce = "FORCE" | "TAKEOVER" | undefined;

export interface ClusterRedis {
  /** As they were started: the masters, then the replica of each in the same order. The roles change. */
  readonly nodes: readonly RedisServer[];
  /** The node that owns the slot, or the slot of the key, as `seenBy` (default: the first node) has it. */
  masterOf(slotOrKey: number | string, seenBy?: RedisServer): Promise<RedisServer>;
  /** The replicas of a master that `seenBy` (default: the first node) does not hold to be down. */
  replicasOf(master: RedisServer, seenBy?: RedisServer): Promise<RedisServer[]>;
  /**
   * CLUSTER FAILOVER on the replica. Resolves when it says that it is a master; the others may hear later, see `untilAgreed`.
   * @throws RespRefusal when the replica refuses, as without force while its master is down.
   */
  failover(replica: RedisServer, force?: FailoverForce): Promise<void>;
  /** Resolves when the given nodes (default: all) hold the cluster to be whole and agree on who owns what, with each replica's link up. */
  untilAgreed(among?: readonly RedisServer[]): Promise<void>;
  /** Kills every node. Without it they end with the test file. */
  end(): Promise<void>;
}

/** Resolves when every node holds the cluster to be whole, and every replica has its link. */
export async function startClusterRedis({
  nodeTimeoutMs = 2_000,
  config = {},
  launch = startRedisServer,
}: ClusterRedisOptions = {}): Promise<ClusterRedis> {
  const nodes = await Promise.all(
    Array.from({ length: MASTER_COUNT * 2 }, (_, index) =>
      // By default the bus has the port plus 10,000: among those that outgoing connections are given, and so perhaps taken after a kill.
      launch({ config: { ...config, ...clusterConfig(nodeTimeoutMs) }, morePorts: ["cluster-port"] }, index),
    ),
  );
  const masters = nodes.slice(0, MASTER_COUNT);
  await Promise.all(masters.map(giveSlots));
  await introduce(nodes);
  await Promise.all(nodes.slice(MASTER_COUNT).map((node, index) => replicate(node, masters[index] as RedisServer)));
  await untilAgreed(nodes, nodes);

  const [first] = nodes as [RedisServer];
  return {
    nodes,
    async masterOf(slotOrKey, seenBy = first) {
      const slot =
        typeof slotOrKey === "number" ? slotOrKey : Number(await command(seenBy, "CLUSTER", "KEYSLOT", slotOrKey));
      const view = await viewOf(seenBy, nodes);
      const owner = view.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last));
      if (!owner) throw new Error(`no node owns slot ${slot}`);
      return owner.node;
    },
    async replicasOf(master, seenBy = first) {
      const view = await viewOf(seenBy, nodes);
      const id = view.find(({ node }) => node === master)?.id;
      return view.filter(({ masterId, isDown }) => masterId === id && !isDown).map(({ node }) => node);
    },
    failover,
    untilAgreed: (among = nodes) => untilAgreed(among, nodes),
    end: () => endAll(nodes),
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

async function introduce(nodes: readonly RedisServer[]): Promise<void> {
  const first = nodes[0] as RedisServer;
  for (const node of nodes.slice(1)) {
    const [, busPort] = (await command(node, "CONFIG", "GET", "cluster-port")) as [string, string];
    await command(asClusterMaker(first), "CLUSTER", "MEET", node.host, node.port, busPort);
  }
}

async function replicate(replica: RedisServer, master: RedisServer): Promise<void> {
  const masterId = String(await command(master, "CLUSTER", "MYID"));
  // Refused until the two have heard of each other.
  const ask = () => command(asClusterMaker(replica), "CLUSTER", "REPLICATE", masterId);
  await until(`${replica.url} knows ${master.url}`, ask, (answer) => answer === "OK");
}

async function failover(replica: RedisServer, force: FailoverForce): Promise<void> {
  const request = () =>
    command(asClusterMaker(replica), "CLUSTER", "FAILOVER", ...(force === undefined ? [] : [force]));
  await request();
  let requestedAt = Date.now();
  const role = async () => {
    const { role } = await info(replica);
    if (role !== "master" && Date.now() - requestedAt > FAILOVER_REQUEST_MS) {
      requestedAt = Date.now();
      await request();
    }
    return role;
  };
  await until(`${replica.url} is a master`, role, (seen) => seen === "master");
}

async function untilAgreed(among: readonly RedisServer[], nodes: readonly RedisServer[]): Promise<void> {
  const opinions = () =>
    Promise.all(among.map(async (node) => ({ ...(await healthOf(node)), view: viewText(await viewOf(node, nodes)) })));
  await until("the cluster's nodes agree that it is whole", opinions, (all) => {
    const views = new Set(all.map(({ view }) => view));
    return views.size === 1 && all.every(({ state, link }) => state === "ok" && link !== "down");
  });
}

async function healthOf(node: RedisServer): Promise<{ state: string | undefined; link: string | undefined }> {
  const { cluster_state: state } = linesByName(await command(asClusterMaker(node), "CLUSTER", "INFO"));
  const { master_link_status: link } = await info(asClusterMaker(node));
  return { state, link };
}

/** A node as another one sees it. */
interface NodeSeen {
  readonly node: RedisServer;
  readonly id: string;
  /** The id of the master that it follows; "-" for a master. */
  readonly masterId: string;
  /** The node that was asked holds it to be down, or hears so from the others. */
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

/** Returns the same text for the same view, whichever node was asked. */
function viewText(view: readonly NodeSeen[]): string {
  return view
    .map(({ id, masterId, isDown, slots }) => `${id} ${masterId} ${isDown} ${slots.join(" ")}`)
    .sort()
    .join("\n");
}

function slotRange(text: string): [number, number] {
  const [first = Number.NaN, last = first] = text.split("-").map(Number);
  return [first, last];
}
