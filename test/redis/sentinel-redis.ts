/**
 * A master with replicas, watched by Sentinels that promote another one when it is gone.
 * The Sentinels are servers too: each can be killed, frozen and started again.
 */
import { command, info, until } from "./redis-command.js";
import { type LaunchNode, type ReplicatedRedis, startReplicatedRedis } from "./replicated-redis.js";
import { watching } from "./shipped-users.js";
import { type RedisServer, type RedisServerOptions, startRedisServer } from "./test-redis.js";

const MASTER_NAME = "archive";
const HOST_COUNT = 3;
const QUORUM = 2;
/**
 * How often a Sentinel announces itself to the others, and asks a node for its role: a replaced master that comes back is a master for
 * about five times this. A Sentinel that is started again falls back to its own 2,000 and 10,000.
 */
const PERIOD_MS = 250;

export interface SentinelRedisOptions {
  /** How long a node must be silent before a Sentinel holds it to be down. Default: 1,000; less takes a busy machine for a dead node. */
  downAfterMs?: number;
  /** Lines of redis.conf for each node, not for the Sentinels. Default: nothing is kept on disk. */
  config?: RedisServerOptions["config"];
  /** Called for node and Sentinel alike, with the same index for the two that belong on one host. Default: `startRedisServer`. */
  launch?: LaunchNode;
}

export interface SentinelRedis extends ReplicatedRedis {
  readonly sentinels: readonly RedisServer[];
  /** What a client asks the Sentinels for. */
  readonly masterName: string;
  /** `host:port` of each Sentinel, joined by commas, as store URLs list them. */
  readonly sentinelHosts: string;
  /**
   * Resolves to the master on which all the given Sentinels (default: every one) agree and which says itself that it is one.
   * @param otherThan the master that shall have been replaced.
   */
  waitForMaster(otherThan?: RedisServer, askedSentinels?: readonly RedisServer[]): Promise<RedisServer>;
  /** Kills every node and Sentinel. Without it they end with the test file. */
  end(): Promise<void>;
}

/** Three nodes and three Sentinels. Resolves when every Sentinel knows every node and every other Sentinel, so that a fail-over can begin. */
export async function startSentinelRedis({
  downAfterMs = 1_000,
  config = {},
  launch = startRedisServer,
}: SentinelRedisOptions = {}): Promise<SentinelRedis> {
  const replicated = await startReplicatedRedis({ nodeCount: HOST_COUNT, config, launch });
  const { master, nodes } = replicated;
  const watch = sentinelConfig(master, downAfterMs);
  const sentinels = await Promise.all(nodes.map((_, index) => launch({ sentinel: true, config: watch }, index)));
  for (const sentinel of sentinels) {
    await command(sentinel, "SENTINEL", "DEBUG", "PUBLISH-PERIOD", PERIOD_MS, "INFO-PERIOD", PERIOD_MS);
  }
  await Promise.all(sentinels.map(untilItKnowsAll));

  return {
    ...replicated,
    sentinels,
    masterName: MASTER_NAME,
    sentinelHosts: sentinels.map(({ host, port }) => `${host}:${port}`).join(","),
    waitForMaster: (otherThan, askedSentinels = sentinels) => agreedMaster(nodes, askedSentinels, otherThan),
    async end() {
      await Promise.all([...sentinels, ...nodes].map((server) => server.kill("SIGKILL")));
    },
  };
}

function sentinelConfig(master: RedisServer, downAfterMs: number): Record<string, string[]> {
  return {
    sentinel: [
      `monitor ${MASTER_NAME} ${master.host} ${master.port} ${QUORUM}`,
      `down-after-milliseconds ${MASTER_NAME} ${downAfterMs}`,
      // A fail-over that comes to nothing is tried again after twice this time.
      `failover-timeout ${MASTER_NAME} ${downAfterMs * 4}`,
      ...watching(MASTER_NAME),
    ],
  };
}

async function untilItKnowsAll(sentinel: RedisServer): Promise<void> {
  const wanted = { "num-slaves": HOST_COUNT - 1, "num-other-sentinels": HOST_COUNT - 1, flags: "master" };
  const facts = async () => {
    const words = (await command(sentinel, "SENTINEL", "MASTER", MASTER_NAME)) as readonly string[];
    return Object.entries(wanted).map(([name, value]) => [name, words[words.indexOf(name) + 1], `${value}`]);
  };
  const isThere = (all: (string | undefined)[][]) => all.every(([, known, value]) => known === value);
  await until(`the Sentinel ${sentinel.url} knows all`, facts, isThere);
}

async function agreedMaster(
  nodes: readonly RedisServer[],
  sentinels: readonly RedisServer[],
  otherThan: RedisServer | undefined,
): Promise<RedisServer> {
  const named = async () => {
    const addresses = sentinels.map((sentinel) =>
      command(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME),
    );
    const [address, ...others] = new Set((await Promise.all(addresses)).map((words) => String(words)));
    const node = nodes.find(({ host, port }) => `${host},${port}` === address);
    if (!node || others.length > 0 || node === otherThan) return undefined;
    return (await info(node)).role === "master" ? node : undefined;
  };
  const not = otherThan ? ` other than ${otherThan.url}` : "";
  return (await until(`the Sentinels agree on a master${not}`, named, (node) => node !== undefined)) as RedisServer;
}
