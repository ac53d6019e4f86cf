/**
 * Which server holds a key, by what Sentinels or the nodes of a Cluster reply. All are queried at once, because they may disagree
 * or be silent. Nothing of the guard rests on the result: wherever a step is sent, it is checked there and afterwards.
 */
import { CoordinatorError } from "../../errors.js";
import { type Endpoint, endpointText } from "../endpoint.js";
import type { ClusterPlace, RedisLogin, SentinelPlace } from "./address.js";
import { type RedisCommand, RedisConnection } from "./connection.js";

/** Which server holds which key, at one moment. */
export interface Topology {
  /** @throws CoordinatorError `store_unavailable` when no server holds it. */
  endpointOf(key: string): Endpoint;
  /** All servers that hold keys. */
  readonly endpoints: readonly Endpoint[];
}

export type Discover = () => Promise<Topology>;

/** How long one silent server may delay the result, ms. */
const QUERY_TIMEOUT_MS = 1_000;

/** Reads the replies of one server, one for each command; none of them is an error. */
type Read<T> = (replies: readonly unknown[], from: Endpoint) => T;

/** Queries each server over a connection of its own. Returns what they reply, in their order, and why the others failed. */
async function queryAll<T>(
  servers: readonly Endpoint[],
  login: RedisLogin,
  commands: readonly RedisCommand[],
  read: Read<T>,
): Promise<{ readonly found: T[]; readonly failures: string }> {
  const query = async (from: Endpoint) => {
    const connection = await RedisConnection.open({ ...login, ...from }, { timeoutMs: QUERY_TIMEOUT_MS });
    try {
      const call = ([name, ...parameters]: RedisCommand) =>
        connection.send("", (redis) => redis.call(name, ...parameters));
      return read(await Promise.all(commands.map(call)), from);
    } finally {
      await connection.close();
    }
  };
  const outcomes = await Promise.allSettled(servers.map(query));
  return {
    found: outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : [])),
    failures: outcomes
      .flatMap((outcome) => (outcome.status === "rejected" ? [(outcome.reason as Error).message] : []))
      .join("; "),
  };
}

/**
 * Finds the master of a Sentinel group. The sentinel with the greatest config epoch is believed: each failover has a greater one,
 * and only a majority can make it. A sentinel that was cut off, or has just come back, still names the old master.
 * @throws CoordinatorError `store_unavailable` when no sentinel names a master.
 */
export function discoverMaster(
  place: SentinelPlace,
  { tls, tlsFiles }: Pick<RedisLogin, "tls" | "tlsFiles">,
): Discover {
  const { sentinels, masterName, sentinelUsername: username, sentinelPassword: password } = place;
  const login: RedisLogin = { tls, tlsFiles, username, password, database: 0 };
  const commands: readonly RedisCommand[] = [
    // During a failover this names the new master already, while SENTINEL MASTER still shows the old one.
    ["SENTINEL", "get-master-addr-by-name", masterName],
    ["SENTINEL", "master", masterName],
  ];
  return async () => {
    const { found, failures } = await queryAll(sentinels, login, commands, masterIn);
    const [best] = found.sort((one, other) => other.configEpoch - one.configEpoch);
    if (best !== undefined) return { endpoints: [best.master], endpointOf: () => best.master };
    throw new CoordinatorError("store_unavailable", `no sentinel names the master "${masterName}": ${failures}`);
  };
}

function masterIn([address, fields]: readonly unknown[]): { readonly master: Endpoint; readonly configEpoch: number } {
  const [host, port] = address as readonly [string, string];
  const words = fields as readonly string[];
  return { master: { host, port: Number(port) }, configEpoch: Number(words[words.indexOf("config-epoch") + 1]) };
}

/** Of the nodes that others named: one that replies is enough. */
const KNOWN_NODES_MAX = 64;

/** A Cluster as one node sees it. */
interface ClusterView {
  /** Whether the node sees the majority of the masters. */
  readonly isWhole: boolean;
  readonly epoch: number;
  /** Ranges of slots; the master first, then its replicas. */
  readonly ranges: readonly { readonly first: number; readonly last: number; readonly nodes: readonly Endpoint[] }[];
}

/**
 * Finds the masters of a Cluster. A node that sees the majority of the masters is believed, of those the one with the greatest epoch:
 * a node that was cut off still shows the old masters.
 * @throws CoordinatorError `store_unavailable` when no node replies.
 */
export function discoverCluster({ nodes }: ClusterPlace, login: RedisLogin): Discover {
  const commands: readonly RedisCommand[] = [
    ["CLUSTER", "INFO"],
    ["CLUSTER", "SLOTS"],
  ];
  let known: readonly Endpoint[] = [];
  return async () => {
    const { found, failures } = await queryAll(distinct([...nodes, ...known]), login, commands, viewIn);
    const [best] = found.sort((one, other) => Number(other.isWhole) - Number(one.isWhole) || other.epoch - one.epoch);
    if (best === undefined)
      throw new CoordinatorError("store_unavailable", `no node of the Cluster replies: ${failures}`);
    const masters = best.ranges.flatMap((range) => range.nodes.slice(0, 1));
    known = distinct([...masters, ...best.ranges.flatMap((range) => range.nodes)]).slice(0, KNOWN_NODES_MAX);
    return { endpoints: distinct(masters), endpointOf: (key) => masterOf(best, key) };
  };
}

type SlotsReply = readonly (readonly [
  first: number,
  last: number,
  ...nodes: (readonly [host: string | null, port: number])[],
])[];

function viewIn([info, slots]: readonly unknown[], from: Endpoint): ClusterView {
  // A node that does not know its own name leaves it out: its name is the one that it was reached by.
  const hostIn = (host: string | null) => (host === null || host === "" || host === "?" ? from.host : host);
  return {
    isWhole: /^cluster_state:ok/m.test(String(info)),
    epoch: Number(/^cluster_current_epoch:(\d+)/m.exec(String(info))?.[1] ?? 0),
    ranges: (slots as SlotsReply).map(([first, last, ...nodes]) => ({
      first,
      last,
      nodes: nodes.map(([host, port]) => ({ host: hostIn(host), port })),
    })),
  };
}

/** Each server once, in the order given. */
function distinct(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return [...new Map(endpoints.map((endpoint) => [endpointText(endpoint), endpoint])).values()];
}

function masterOf({ ranges }: ClusterView, key: string): Endpoint {
  const slot = slotOf(key);
  const master = ranges.find(({ first, last }) => first <= slot && slot <= last)?.nodes[0];
  if (master !== undefined) return master;
  throw new CoordinatorError("store_unavailable", `no node of the Cluster serves slot ${slot}, where ${key} lies`);
}

const SLOT_COUNT = 16_384;
const CRC16_POLYNOMIAL = 0x1021;

/** The slot of a key, as the Cluster specification computes it: CRC-16/XMODEM of the text between the first braces, when there is any. */
export function slotOf(key: string): number {
  const hashed = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ CRC16_POLYNOMIAL;
    crc &= 0xffff;
  }
  return crc % SLOT_COUNT;
}
