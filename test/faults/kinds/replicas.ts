/**
 * Faults of a master with two replicas: lag, promotion, split brain, taking back, nodes that freeze. And failovers of a Redis Cluster.
 * Guarantees: G3, G4 (docs/guarantees.md).
 */
import { setTimeout as delay } from "node:timers/promises";
import type { DisposableRedisServer } from "../../redis/redis-server.js";
import { ClusterWorld } from "../cluster-world.js";
import { type RedisWorld, redisFault } from "../redis-world.js";
import { type Fault, type FaultSettings, faultOf } from "../run-fault.js";

/** A port on which no server listens: a replica that follows it lags. */
const UNUSED_PORT = 1;

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
      const { master, replicas } = await rolesIn(world);
      const [lagging, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
      await follow(world, lagging, { port: UNUSED_PORT });
      await world.work();
      await master.kill("SIGKILL");
      await promote(world, lagging);
      await follow(world, other, lagging);
      await world.untilSeen("epoch_changed");
      await master.start();
      await follow(world, master, lagging);
    },
  ),
  withReplicas(
    "the master alone on its side, the other side goes on",
    { expected: ["quorum_missing"] },
    async (world) => {
      const { master, replicas } = await rolesIn(world);
      const [next, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
      await promote(world, next);
      await follow(world, other, next);
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
      const { master, replicas } = await rolesIn(world);
      const [next, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
      await promote(world, next);
      await follow(world, other, next);
      await world.untilLeasing();
      await follow(world, next, master);
      await follow(world, other, master);
    },
  ),
  withReplicas("flapping", { expected: ["epoch_changed"] }, async (world) => {
    for (let time = 0; time < 3; time++) {
      const { master, replicas } = await rolesIn(world);
      const [next, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
      await promote(world, next);
      for (const server of [master, other]) await follow(world, server, next);
      await delay(world.random() * 200);
    }
  }),
  withReplicas(
    "the master frozen, another promoted, the master thawed",
    { expected: ["epoch_changed"] },
    async (world) => {
      const { master, replicas } = await rolesIn(world);
      const [next, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
      await master.kill("SIGSTOP");
      await promote(world, next);
      await follow(world, other, next);
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
      const { master, replicas } = await rolesIn(world);
      const [victim, other] = replicas as [DisposableRedisServer, DisposableRedisServer];
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
      await promote(world, victim);
      await follow(world, other, victim);
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
      const [replica] = await cluster.replicasOf(await world.master());
      await cluster.failover(replica as (typeof cluster.nodes)[number], force);
      await cluster.untilAgreed();
      await world.untilSeen("epoch_changed");
    },
  ),
);

interface Roles {
  readonly master: DisposableRedisServer;
  readonly replicas: readonly DisposableRedisServer[];
}

async function rolesIn(world: RedisWorld): Promise<Roles> {
  await world.untilReplicatedSomewhere();
  const roles = await Promise.all(world.servers.map(async (server) => ({ server, role: await roleOf(world, server) })));
  const masters = roles.filter(({ role }) => role === "master").map(({ server }) => server);
  if (masters.length !== 1) throw new Error(`${masters.length} masters at the beginning of a fault`);
  const [master] = masters as [DisposableRedisServer];
  return { master, replicas: world.servers.filter((server) => server !== master) };
}

async function roleOf(world: RedisWorld, server: DisposableRedisServer): Promise<string> {
  return await world.on(server, async (redis) => String(((await redis.call("ROLE")) as unknown[])[0]));
}

async function promote(world: RedisWorld, server: DisposableRedisServer): Promise<void> {
  await world.on(server, (redis) => redis.replicaof("NO", "ONE"));
}

async function follow(
  world: RedisWorld,
  server: DisposableRedisServer,
  master: { readonly port: number },
): Promise<void> {
  await world.on(server, (redis) => redis.replicaof("127.0.0.1", master.port));
}
