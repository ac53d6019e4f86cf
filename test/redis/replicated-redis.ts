/**
 * One master and its replicas, and what an operator or a Sentinel does to them.
 * Every step ends when INFO shows it, on the side it concerns: none trusts a time.
 */
import { command, info, until, untilInfo } from "./redis-command.js";
import { type RedisServer, type RedisServerOptions, startRedisServer } from "./test-redis.js";

/** Starts one server of several. Given where they shall not simply run on this machine: in networks of their own, under another clock. */
export type LaunchNode = (options: RedisServerOptions, index: number) => Promise<RedisServer>;

export interface ReplicatedRedisOptions {
  /** The master included. Default: 3. */
  nodeCount?: number;
  /** Lines of redis.conf for each node, before those that replication needs. Default: nothing is kept on disk. */
  config?: RedisServerOptions["config"];
  /** Default: `startRedisServer`, so that every node ends with the test file. */
  launch?: LaunchNode;
}

export interface ReplicatedRedis {
  /** As they were started; the roles change with what is done to them. */
  readonly nodes: readonly RedisServer[];
  /** The first master. */
  readonly master: RedisServer;
  /** The first replicas. */
  readonly replicas: readonly RedisServer[];
}

/** Ports below 1024 are root's, and no one has used this one for decades: connections are refused. */
const DEAD_PORT = 1;

const REPLICATION: Readonly<Record<string, string>> = {
  // By default a master waits five seconds for more replicas before it sends the first one its data.
  "repl-diskless-sync-delay": "0",
  "repl-ping-replica-period": "1",
};

/** Resolves when every replica has its link to the master, and the master sees every replica. */
export async function startReplicatedRedis({
  nodeCount = 3,
  config = {},
  launch = startRedisServer,
}: ReplicatedRedisOptions = {}): Promise<ReplicatedRedis> {
  const start = (index: number, role: Record<string, string> = {}) =>
    launch({ config: { ...config, ...REPLICATION, ...role } }, index);
  const master = await start(0);
  // In redis.conf, so that a replica that is killed comes back as what it was.
  const replicaof = `${master.host} ${master.port}`;
  const replicas = await Promise.all(
    Array.from({ length: nodeCount - 1 }, (_, index) => start(index + 1, { replicaof })),
  );
  await Promise.all(replicas.map((replica) => untilLinked(replica, master)));
  await untilInfo(master, { connected_slaves: `${replicas.length}` });
  return { nodes: [master, ...replicas], master, replicas };
}

/**
 * Makes a master of `node`, as a failover does, without notice to the others. Written into its redis.conf, so a new start keeps it.
 */
export async function promote(node: RedisServer): Promise<void> {
  await command(node, "REPLICAOF", "NO", "ONE");
  await command(node, "CONFIG", "REWRITE");
  await untilInfo(node, { role: "master" });
}

/**
 * Makes `node` a replica of `master`, for the first time or again. Written into its redis.conf, so a new start keeps it.
 * Resolves when the link is up and the node has all that the master had by then.
 */
export async function follow(node: RedisServer, master: RedisServer): Promise<void> {
  await command(node, "REPLICAOF", master.host, master.port);
  await command(node, "CONFIG", "REWRITE");
  await untilLinked(node, master);
  await untilCaughtUp(node, master);
}

/**
 * Makes a replica lag: it stays a replica and gets nothing more, until `follow` or `promote`.
 * A frozen replica would not do, since the socket's buffers go on filling and are read at once when it thaws.
 */
export async function detach(node: RedisServer): Promise<void> {
  await command(node, "REPLICAOF", "127.0.0.1", DEAD_PORT);
  await untilInfo(node, { role: "slave", master_port: `${DEAD_PORT}`, master_link_status: "down" });
}

/** Resolves when `node` is a replica of `master`, and its link is up. */
export async function untilLinked(node: RedisServer, master: RedisServer): Promise<void> {
  const { host, port } = master;
  await untilInfo(node, { role: "slave", master_host: host, master_port: `${port}`, master_link_status: "up" });
}

/** Resolves when `replica` has run all that `master` had run when this was called. */
export async function untilCaughtUp(replica: RedisServer, master: RedisServer): Promise<void> {
  const { master_replid: history, master_repl_offset: offset } = await info(master);
  await until(
    `${replica.url} has run ${master.url} up to offset ${offset}`,
    () => info(replica),
    (seen) => seen.master_replid === history && Number(seen.slave_repl_offset) >= Number(offset),
  );
}
