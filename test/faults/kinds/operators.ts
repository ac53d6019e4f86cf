/**
 * What operators do, rightly and wrongly, and what a server is set to: commands in the wrong place, twice, at the same time; settings
 * that would lose or hide what the guard needs.
 * Guarantees: G3, G5, G13 (docs/guarantees.md).
 */
import { rmSync } from "node:fs";
import type { Redis } from "ioredis";
import { Coordinator } from "../../../packages/coordinator/src/coordinator.js";
import { newStoreId } from "../../../packages/coordinator/src/guard/store-id.js";
import { type Moved, moveNamespace } from "../../../packages/coordinator/src/operator/move.js";
import { STORE_USER } from "../../redis/shipped-users.js";
import { checkpointFileOf, expectRejection, recover, rejectionOf } from "../commands.js";
import { type Address, type RedisWorld, redisFault } from "../redis-world.js";
import type { Fault } from "../run-fault.js";
import { BOUNDS, NAMESPACE } from "../world.js";

/** In each store, while both lease. */
const LEASES_OF_BOTH = 12;

export const OPERATORS: readonly Fault[] = [
  redisFault("eviction that could take the record", { expected: ["store_eviction_enabled"] }, async (world) => {
    const set = (name: string, value: string) => (redis: Redis) => redis.config("SET", name, value);
    await world.on(world.server, set("maxmemory", "1gb"));
    await world.on(world.server, set("maxmemory-policy", "allkeys-lru"));
    await world.untilSeen("store_eviction_enabled");
    await world.on(world.server, set("maxmemory-policy", "noeviction"));
    await world.on(world.server, set("maxmemory", "0"));
  }),
  redisFault("the right to INFO taken away", { expected: ["store_epoch_unreadable"] }, async (world) => {
    await world.on(world.server, (redis) => redis.call("ACL", "SETUSER", STORE_USER.name, "-info"));
    await world.untilSeen("store_epoch_unreadable");
    await world.on(world.server, (redis) => redis.call("ACL", "SETUSER", STORE_USER.name, "+info"));
  }),
  redisFault(
    "an uncounted replica attached, and taken away again",
    { expected: ["unexpected_replicas", "manual_recovery_required"] },
    async (world) => {
      const replica = await world.addServer({ replicaof: `127.0.0.1 ${world.server.port}` });
      await world.untilSeen("unexpected_replicas");
      await world.removeServer(replica);
      // It may have been promoted meanwhile, for all that the server can know.
      await world.untilSeen("manual_recovery_required");
      await world.withoutCoordinators(() => recover(world));
    },
  ),
  redisFault(
    "init on a used store, and against what the checkpoint remembers",
    { expected: ["namespace_exists", "namespace_lost"] },
    async (world) => {
      await expectRejection(world, "namespace_exists", "init on a used store", init(world, false));
      await expectRejection(world, "namespace_exists", "init where a checkpoint has it, too", init(world, true));
      await world.on(world.server, (redis) => redis.del(world.key("record")));
      await expectRejection(world, "namespace_lost", "init in place of a lost record", init(world, true));
      await world.withoutCoordinators(() => recover(world));
    },
  ),
  redisFault(
    "recover on a foreign store, while coordinators lease, and twice at once",
    { expected: ["store_id_mismatch", "coordinator_still_running"] },
    async (world) => {
      await expectRejection(world, "coordinator_still_running", "recover while coordinators lease", recover(world));
      await world.killCoordinators();
      const storeId = newStoreId({ firstRun: 1, initializedAtMs: Date.now(), rate: 1 });
      await expectRejection(world, "store_id_mismatch", "recover of another store", recover(world, { storeId }));
      const both = await Promise.allSettled([recover(world), recover(world)]);
      for (const one of both) {
        if (one.status === "rejected") await rejectionOf(world, "recover at the same time", Promise.reject(one.reason));
      }
      await world.startCoordinators();
    },
  ),
  redisFault("a replica counted by recover, and no more", { expected: ["quorum_missing"] }, async (world) => {
    await world.killCoordinators();
    const replica = await world.addServer({ replicaof: `127.0.0.1 ${world.server.port}` });
    await world.untilReplicated(world.server, 1);
    await recover(world, { nodeCount: 2 });
    await world.startCoordinators();
    await world.untilLeasing();
    await replica.kill("SIGKILL");
    await world.untilSeen("quorum_missing");
    await world.killCoordinators();
    await world.removeServer(replica);
    await recover(world, { nodeCount: 1 });
    await world.startCoordinators();
  }),
  redisFault(
    "moved to another server while importers lease",
    { injectionCountMax: 1, expected: ["namespace_moved"] },
    async (world) => {
      const target = await world.addServer();
      await move(world, target);
      await world.untilSeen("namespace_moved");
      await world.killCoordinators();
      for (const coordinator of world.coordinators) await coordinator.start({ storeUrl: world.storeUrlAt(target) });
    },
  ),
  redisFault(
    "moved to another server, then the old one loses its last writes, and is moved to a third",
    { injectionCountMax: 1, expected: ["namespace_moved"] },
    async (world) => {
      const [target, third] = [await world.addServer(), await world.addServer()];
      const snapshot = await world.snapshot();
      await world.work();
      await move(world, target);
      await world.crash(() => world.restore(snapshot));
      await expectRejection(world, "namespace_moved", "move to a third server", move(world, third));
      await world.killCoordinators();
      for (const coordinator of world.coordinators) await coordinator.start({ storeUrl: world.storeUrlAt(target) });
    },
  ),
  redisFault(
    "moved to another server, then the old one loses its last writes and its checkpoints, and both lease",
    { isShort: true, injectionCountMax: 1, expected: ["namespace_moved"] },
    async (world) => {
      const target = await world.addServer();
      const snapshot = await world.snapshot();
      await world.work();
      const moved = await move(world, target);
      await world.untilSeen("namespace_moved");
      await world.crash(() => world.restore(snapshot));
      await world.withoutCoordinators(async () => {
        await expectRejection(world, "namespace_moved", "recover after a move", recover(world));
        rmSync(world.checkpointDir, { recursive: true });
      });
      await bothLease(world, target, moved);
    },
  ),
  redisFault(
    "moved to another server, then the old one is emptied and recovered as printed, and leases nothing",
    { injectionCountMax: 1, expected: ["namespace_moved"] },
    async (world) => {
      const target = await world.addServer();
      await move(world, target);
      await world.untilSeen("namespace_moved");
      await world.withoutCoordinators(async () => {
        await world.on(world.server, (redis) => redis.flushall());
        await recover(world);
      });
      await world.untilSeenAgain("namespace_moved");
      await world.killCoordinators();
      for (const coordinator of world.coordinators) await coordinator.start({ storeUrl: world.storeUrlAt(target) });
    },
  ),
];

/** Starts a coordinator of the new store; resolves when importers have runs of both. */
async function bothLease(world: RedisWorld, target: Address, { storeId }: Moved): Promise<void> {
  await world.addCoordinatorAt(target);
  const stores = [storeId, world.storeId].map((id) => [id, world.received.leaseCountOf(id)] as const);
  await world.until("both stores lease", () =>
    stores.every(([id, before]) => world.received.leaseCountOf(id) >= before + LEASES_OF_BOTH),
  );
}

/** `init` as the command does it. */
async function init(world: RedisWorld, hasCheckpoint: boolean): Promise<void> {
  await world.onStore(async (store) => {
    const remembering = hasCheckpoint ? { checkpointFileOf: () => checkpointFileOf(world) } : {};
    const coordinator = new Coordinator({ store, name: "init", bounds: BOUNDS, ...remembering });
    await coordinator.initNamespace(NAMESPACE, { rate: 16 });
  });
}

/** From this world's store to another server. */
async function move(world: RedisWorld, to: Address): Promise<Moved> {
  const place = world.storeUrlAt(to);
  return await world.onStore((store) =>
    world.onStore(async (target) => {
      const [checkpointFile, targetCheckpointFile] = [checkpointFileOf(world), checkpointFileOf(world, place)];
      const common = { store, namespace: NAMESPACE, checkpointFile, bounds: BOUNDS, nodeCount: 1 };
      return await moveNamespace({ ...common, target: { store: target, place, checkpointFile: targetCheckpointFile } });
    }, place),
  );
}
