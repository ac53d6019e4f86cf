/**
 * Which server holds a key, by what Sentinels or the nodes of a Cluster reply. All are queried at once, because they may disagree
 * or be silent. Nothing of the guard rests on the result: wherever a step is sent, it is checked there and afterwards.
 */
import { CoordinatorError } from "../../errors.js";
import { type ClusterPlace, type Endpoint, endpointText, type RedisLogin, type SentinelPlace } from "./address.js";
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

interface Reply {
  readonly from: Endpoint;
  /** One for each command; none of them an error. */
  readonly results: readonly unknown[];
}

/** Queries each server over a connection of its own. Returns the replies in the order of the servers, and why the others failed. */
async function queryAll(
  servers: readonly Endpoint[],
  login: RedisLogin,
  commands: readonly RedisCommand[],
): Promise<{ readonly replies: readonly Reply[]; readonly failures: readonly string[] }> {
  const outcomes = await Promise.all(
    servers.map((from) =>
      query(from, login, commands).catch((error: unknown) => {
        if (error instanceof CoordinatorError) return error.message;
        throw error;
      }),
    ),
  );
  return {
    replies: outcomes.filter((outcome) => typeof outcome !== "string"),
    failures: outcomes.filter((outcome) => typeof outcome === "string"),
  };
}

async function query(from: Endpoint, login: RedisLogin, commands: readonly RedisCommand[]): Promise<Reply> {
  const connection = await RedisConnection.open({ ...login, ...from }, { timeoutMs: QUERY_TIMEOUT_MS });
  try {
    const results = await connection.send({ namespace: "" }, (redis) =>
      Promise.all(commands.map(([name, ...parameters]) => redis.call(name, ...parameters))),
    );
    return { from, results };
  } finally {
    await connection.close();
  }
}

/** A server as another one names it; undefined for anything else. */
function endpointIn(host: unknown, port: unknown): Endpoint | undefined {
  return typeof host === "string" && Number.isInteger(Number(port)) ? { host, port: Number(port) } : undefined;
}

/** Each server once, in the order given. */
function distinct(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return [...new Map(endpoints.map((endpoint) => [endpointText(endpoint), endpoint])).values()];
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
  return async () => {
    const { replies, failures } = await queryAll(sentinels, login, [
      // During a failover this names the new master already, while SENTINEL MASTER still shows the old one.
      ["SENTINEL", "get-master-addr-by-name", masterName],
      ["SENTINEL", "master", masterName],
    ]);
    const [best] = replies.flatMap(masterIn).sort((one, other) => other.configEpoch - one.configEpoch);
    if (best !== undefined) return { endpoints: [best.master], endpointOf: () => best.master };
    throw new CoordinatorError(
      "store_unavailable",
      `no sentinel names the master "${masterName}": ${failures.join("; ")}`,
    );
  };
}

function masterIn({
  results: [address, fields],
}: Reply): { readonly master: Endpoint; readonly configEpoch: number }[] {
  if (!Array.isArray(address) || !Array.isArray(fields)) return [];
  const master = endpointIn(address[0], address[1]);
  const configEpoch: unknown = fields[fields.indexOf("config-epoch") + 1];
  if (master === undefined || typeof configEpoch !== "string" || !/^\d{1,15}$/.test(configEpoch)) return [];
  return [{ master, configEpoch: Number(configEpoch) }];
}

/** Of the nodes that others named: one that replies is enough. */
const KNOWN_NODES_MAX = 64;

/** A range of slots, its master and its replicas. */
interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: Endpoint;
  readonly replicas: readonly Endpoint[];
}

/** A Cluster as one node sees it. */
interface ClusterView {
  /** Whether the node sees the majority of the masters. */
  readonly isWhole: boolean;
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
}

/**
 * Finds the masters of a Cluster. A node that sees the majority of the masters is believed, of those the one with the greatest epoch:
 * a node that was cut off still shows the old masters.
 * @throws CoordinatorError `store_unavailable` when no node replies.
 */
export function discoverCluster({ nodes }: ClusterPlace, login: RedisLogin): Discover {
  let known: readonly Endpoint[] = [];
  return async () => {
    const { replies, failures } = await queryAll(distinct([...nodes, ...known]), login, [
      ["CLUSTER", "INFO"],
      ["CLUSTER", "SLOTS"],
    ]);
    const views = replies.map((reply) => viewIn(reply) ?? malformed(reply));
    const [best] = views.filter((view) => typeof view !== "string").sort(byTrust);
    if (best === undefined) {
      const reasons = [...failures, ...views.filter((view) => typeof view === "string")];
      throw new CoordinatorError("store_unavailable", `no node of the Cluster answers: ${reasons.join("; ")}`);
    }
    known = nodesIn(best.ranges).slice(0, KNOWN_NODES_MAX);
    return topologyOf(best);
  };
}

function byTrust(one: ClusterView, other: ClusterView): number {
  return Number(other.isWhole) - Number(one.isWhole) || other.epoch - one.epoch;
}

function malformed({ from }: Reply): string {
  return `Redis at ${endpointText(from)} answers CLUSTER SLOTS with what no Cluster has`;
}

/** Undefined when any part of the reply is malformed. */
function viewIn({ from, results: [info, slots] }: Reply): ClusterView | undefined {
  if (typeof info !== "string" || !Array.isArray(slots)) return undefined;
  const ranges = slots.map((range) => rangeIn(range, from)).filter((range) => range !== undefined);
  if (ranges.length < slots.length) return undefined;
  return {
    isWhole: /^cluster_state:ok/m.test(info),
    epoch: Number(/^cluster_current_epoch:(\d+)/m.exec(info)?.[1] ?? 0),
    ranges,
  };
}

function rangeIn(reply: unknown, from: Endpoint): SlotRange | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [first, last, ...nodes] = reply as readonly unknown[];
  const [master, ...replicas] = nodes.map((node) => nodeIn(node, from)).filter((node) => node !== undefined);
  if (typeof first !== "number" || typeof last !== "number") return undefined;
  if (master === undefined || replicas.length + 1 < nodes.length) return undefined;
  return { first, last, master, replicas };
}

function nodeIn(reply: unknown, from: Endpoint): Endpoint | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [host, port] = reply as readonly unknown[];
  // A node that does not know its own name leaves it out: its name is the one that it was reached by.
  const isUnnamed = host === null || host === "" || host === "?";
  return endpointIn(isUnnamed ? from.host : host, port);
}

/** Each node once; masters before replicas. */
function nodesIn(ranges: readonly SlotRange[]): readonly Endpoint[] {
  return distinct([...ranges.map(({ master }) => master), ...ranges.flatMap(({ replicas }) => replicas)]);
}

function topologyOf({ ranges }: ClusterView): Topology {
  return {
    endpoints: distinct(ranges.map(({ master }) => master)),
    endpointOf: (key) => {
      const slot = slotOf(key);
      const range = ranges.find(({ first, last }) => first <= slot && slot <= last);
      if (range !== undefined) return range.master;
      throw new CoordinatorError("store_unavailable", `no node of the Cluster serves slot ${slot}, where ${key} lies`);
    },
  };
}

const SLOT_COUNT = 16_384;
const CRC16_POLYNOMIAL = 0x1021;

/** The slot of a key, as the Cluster specification computes it: of the text between the first braces, when there is any. */
export function slotOf(key: string): number {
  const opening = key.indexOf("{");
  const closing = key.indexOf("}", opening + 1);
  const hashed = opening >= 0 && closing > opening + 1 ? key.slice(opening + 1, closing) : key;
  return crc16(Buffer.from(hashed)) % SLOT_COUNT;
}

/** CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ CRC16_POLYNOMIAL;
    }
    crc &= 0xffff;
  }
  return crc;
}
