/**
 * Faults of a master with two replicas: lag, promotion, split brain, taking back, nodes that freeze. And failovers of a Redis Cluster.
 * Guarantees: G3, G4 (docs/guarantees.md).
 */
import { setTimeout as delay } from "node:timers/promises";
import { Cluster } from "ioredis";
import { initBackdated } from "../../backdated.js";
import { type ClusterRedis, startClusterRedis } from "../../redis/cluster-redis.js";
import { type DisposableRedisServer, launchRedisServer } from "../../redis/redis-server.js";
import { clusterStoreUrlAt, TESTER_LOGIN } from "../../redis/shipped-users.js";
import { Control, type Counter } from "../control.js";
import { type Address, type RedisWorld, redisFault, UNUSED_PORT } from "../redis-world.js";
import { type Fault, type FaultOptions, type FaultSettings, faultOf } from "../run-fault.js";
import { NAMESPACE, World } from "../world.js";

function withReplicas(name: string, settings: FaultSettings, inject: (world: RedisWorld) => Promise<void>): Fault {
  return redisFault(name, { ...settings, nodeCount: 3, coordinatorCount: 1 }, inject);
}

export const REPLICAS: readonly Fault[] = [
  withReplicas("a writable replica", { expected: ["store_is_replica"] }, async (world) => {
    const { replicas } = await rolesIn(world);
    for (const replica of replicas) await world.on(replica, (redis) => redis.config("SET", "replica-read-only", "no"));
    await world.untilSeen("store_is_replica");
    for (const replica of replicas) await world.on(replica, (redis) => redis.config("SET", "replica-read-only", "yes"));
  }),
  withReplicas(
    "a lagging replica promoted, after the master died",
    { isShort: true, expected: ["epoch_changed"] },
    async (world) => {
      const { master, next: lagging, other } = await rolesIn(world);
      await follow(world, lagging, { port: UNUSED_PORT });
      await world.work();
      await master.kill("SIGKILL");
      await failOver(world, lagging, other);
      await world.untilSeen("epoch_changed");
      await master.start();
      await follow(world, master, lagging);
    },
  ),
  withReplicas(
    "the master alone on its side, the other side goes on",
    { expected: ["quorum_missing"] },
    async (world) => {
      const { master, next, other } = await rolesIn(world);
      await failOver(world, next, other);
      await world.untilSeen("quorum_missing");
      await world.untilLeasing();
      await follow(world, master, next);
    },
  ),
  withReplicas("promotions among three nodes, then all follow one", { expected: ["epoch_changed"] }, async (world) => {
    const { master, replicas } = await rolesIn(world);
    for (const replica of replicas) {
      await promote(world, replica);
      await delay(world.random() * 100);
    }
    const chosen = [master, ...replicas][Math.floor(world.random() * 3)] as DisposableRedisServer;
    for (const server of world.servers) if (server !== chosen) await follow(world, server, chosen);
  }),
  withReplicas(
    "a failover taken back manually, the old master was never demoted",
    { expected: ["epoch_changed"] },
    async (world) => {
      const { master, next, other } = await rolesIn(world);
      await failOver(world, next, other);
      await world.untilLeasing();
      await follow(world, next, master);
      await follow(world, other, master);
    },
  ),
  withReplicas("flapping", { expected: ["epoch_changed"] }, async (world) => {
    for (let time = 0; time < 3; time++) {
      const { master, next, other } = await rolesIn(world);
      await failOver(world, next, master, other);
      await delay(world.random() * 200);
    }
  }),
  withReplicas(
    "the master frozen, another promoted, the master thawed",
    { expected: ["epoch_changed"] },
    async (world) => {
      const { master, next, other } = await rolesIn(world);
      await master.kill("SIGSTOP");
      await failOver(world, next, other);
      await world.untilLeasing();
      await master.kill("SIGCONT");
      await world.work();
      await follow(world, master, next);
    },
  ),
  withReplicas("the replicas frozen", { expected: ["quorum_missing"] }, async (world) => {
    const { replicas } = await rolesIn(world);
    for (const replica of replicas) await replica.kill("SIGSTOP");
    await world.untilSeen("quorum_missing");
    for (const replica of replicas) await replica.kill("SIGCONT");
  }),
  withReplicas(
    "demoted and promoted again while the quorum is waited for",
    { expected: ["epoch_changed"] },
    async (world) => {
      const { master, replicas } = await rolesIn(world);
      for (const replica of replicas) await replica.kill("SIGSTOP");
      await delay(100);
      await follow(world, master, { port: UNUSED_PORT });
      await promote(world, master);
      for (const replica of replicas) await replica.kill("SIGCONT");
      for (const replica of replicas) await follow(world, replica, master);
    },
  ),
  withReplicas(
    "a replica killed in its first rewrite after a full resynchronization, then promoted",
    { expected: ["epoch_changed"] },
    async (world) => {
      const { master, next: victim, other } = await rolesIn(world);
      await follow(world, victim, { port: UNUSED_PORT });
      await world.work();
      await world.on(victim, async (redis) => {
        // In full, because it has a history of its own; and slowly.
        await redis.replicaof("NO", "ONE");
        await redis.set("stray", "1");
        await redis.config("SET", "rdb-key-save-delay", "1000000");
        await redis.replicaof("127.0.0.1", master.port);
        await world.until("the replica rewrites its AOF", async () =>
          /aof_rewrite_in_progress:1/.test(await redis.info("persistence")),
        );
      });
      for (const server of [victim, master]) await server.kill("SIGKILL");
      await victim.start();
      await failOver(world, victim, other);
      await world.untilSeen("epoch_changed");
      await master.start();
      await follow(world, master, victim);
    },
  ),
];

/** With the master's consent, by votes alone, and without either. */
export const CLUSTER: readonly Fault[] = ([undefined, "FORCE", "TAKEOVER"] as const).map((force) =>
  faultOf(
    `CLUSTER FAILOVER ${force ?? ""}`.trim(),
    { expected: ["epoch_changed"] },
    (options) => new ClusterWorld(options),
    async (world) => {
      const { cluster } = world;
      const [replica] = await cluster.replicasOf(await cluster.masterOf(KEY));
      await cluster.failover(replica as (typeof cluster.nodes)[number], force);
      await cluster.untilAgreed();
      await world.untilSeen("epoch_changed");
    },
  ),
);

const KEY = `{${NAMESPACE}}`;
/** The master and its replica: a step counts when both have it. */
const NODE_COUNT = 2;
const COORDINATOR_COUNT = 2;

/** On three masters with a replica each: the namespace is kept by one of the masters. */
class ClusterWorld extends World {
  #cluster: ClusterRedis | undefined;

  constructor(readonly options: FaultOptions) {
    super(options);
  }

  async begin(): Promise<void> {
    this.#cluster = await startClusterRedis({
      launch: async (options) => {
        const server = await launchRedisServer(this.options.binary, options);
        this.defer(() => server.dispose());
        return server;
      },
    });
    const storeId = await this.onStore((store) => initBackdated(store, NAMESPACE, { nodeCount: NODE_COUNT }));
    for (let index = 0; index < COORDINATOR_COUNT; index++) await this.addCoordinator({ storeUrl: this.storeUrl });
    await this.startLoad(storeId, new Control(clusterCounter(this.cluster)));
  }

  get cluster(): ClusterRedis {
    if (this.#cluster === undefined) throw new Error("the cluster has not begun");
    return this.#cluster;
  }

  get storeUrl(): string {
    return clusterStoreUrlAt(this.cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(","));
  }
}

function clusterCounter({ nodes }: ClusterRedis): Counter {
  const addresses = nodes.map(({ host, port }) => ({ host, port }));
  const redisOptions = { ...TESTER_LOGIN, commandTimeout: 1_000, maxRetriesPerRequest: 0 };
  const redis = new Cluster(addresses, { redisOptions, clusterRetryStrategy: () => 20 });
  redis.on("error", () => {});
  return { next: () => redis.incr(`control${KEY}`), end: () => redis.disconnect() };
}

interface Roles {
  readonly master: DisposableRedisServer;
  readonly replicas: readonly DisposableRedisServer[];
  /** The two replicas. */
  readonly next: DisposableRedisServer;
  readonly other: DisposableRedisServer;
}

async function rolesIn(world: RedisWorld): Promise<Roles> {
  await world.untilReplicatedSomewhere();
  const roles = await Promise.all(world.servers.map(async (server) => ({ server, role: await roleOf(world, server) })));
  const masters = roles.filter(({ role }) => role === "master").map(({ server }) => server);
  if (masters.length !== 1) throw new Error(`${masters.length} masters at the beginning of a fault`);
  const [master] = masters as [DisposableRedisServer];
  const replicas = world.servers.filter((server) => server !== master);
  const [next, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
  return { master, replicas, next, other };
}

async function roleOf(world: RedisWorld, server: DisposableRedisServer): Promise<string> {
  return await world.on(server, async (redis) => String(((await redis.call("ROLE")) as unknown[])[0]));
}

/** As Sentinel does it, and only in part: the old master is not informed, unless it is one of the followers. */
async function failOver(world: RedisWorld, next: Address, ...followers: readonly Address[]): Promise<void> {
  await promote(world, next);
  for (const server of followers) await follow(world, server, next);
}

async function promote(world: RedisWorld, server: Address): Promise<void> {
  await world.on(server, (redis) => redis.replicaof("NO", "ONE"));
}

async function follow(world: RedisWorld, server: Address, master: Address): Promise<void> {
  await world.on(server, (redis) => redis.replicaof("127.0.0.1", master.port));
}
