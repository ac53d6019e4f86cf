/**
 * What operators do, rightly and wrongly, and what a server is set to: verbs in the wrong place, twice, beside each other; settings
 * that would lose or hide what the guard needs.
 * Guarantees: G3, G5 (docs/guarantees.md).
 */
import type { Redis } from "ioredis";
import { Coordinator } from "../../../packages/coordinator/src/coordinator.js";
import { moveNamespace } from "../../../packages/coordinator/src/operator/move.js";
import type { MoveOptions } from "../../../packages/coordinator/src/operator/move-plan.js";
import type { Store } from "../../../packages/coordinator/src/store.js";
import { newStoreId } from "../../../packages/coordinator/src/store-id.js";
import { STORE_USER } from "../../redis/shipped-users.js";
import type { Fault } from "../fault.js";
import { redisFault } from "../redis-fault.js";
import type { RedisWorld } from "../redis-world.js";
import { mustRefuse, recover, refusalOf, witnessOf } from "../verbs.js";
import { BOUNDS, NAMESPACE } from "../world.js";

export const OPERATORS: readonly Fault[] = [
  redisFault({
    number: 17,
    name: "eviction that could take the record",
    expected: ["store_evicts"],
    inject: async (world) => {
      const set = (name: string, value: string) => (redis: Redis) => redis.config("SET", name, value);
      await world.on(world.server, set("maxmemory", "1gb"));
      await world.on(world.server, set("maxmemory-policy", "allkeys-lru"));
      await world.untilSeen("store_evicts");
      await world.on(world.server, set("maxmemory-policy", "noeviction"));
      await world.on(world.server, set("maxmemory", "0"));
    },
  }),
  redisFault({
    number: 17,
    name: "the right to INFO taken away",
    expected: ["store_epoch_unreadable"],
    inject: async (world) => {
      await world.on(world.server, (redis) => redis.call("ACL", "SETUSER", STORE_USER.name, "-info"));
      await world.untilSeen("store_epoch_unreadable");
      await world.on(world.server, (redis) => redis.call("ACL", "SETUSER", STORE_USER.name, "+info"));
    },
  }),
  redisFault({
    number: 27,
    name: "a replica attached that nobody told of, and taken away again",
    expected: ["store_has_more_nodes", "operator_needed"],
    inject: async (world) => {
      const replica = await world.addServer({ replicaof: `127.0.0.1 ${world.server.port}` });
      await world.untilSeen("store_has_more_nodes");
      await world.removeServer(replica);
      // It may have been promoted meanwhile, for all that the server can know.
      await world.untilSeen("operator_needed");
      await world.killCoordinators();
      await recover(world);
      await world.startCoordinators();
    },
  }),
  redisFault({
    number: 39,
    name: "init on a used store, and against what the witness remembers",
    expected: ["namespace_already_initialised", "store_emptied"],
    inject: async (world) => {
      await mustRefuse(world, "namespace_already_initialised", "init on a used store", init(world, false));
      await mustRefuse(world, "store_emptied", "init against a witness", init(world, true));
      await world.on(world.server, (redis) => redis.del(world.key("record")));
      await mustRefuse(world, "store_emptied", "init in place of a lost record", init(world, true));
      await world.killCoordinators();
      await recover(world);
      await world.startCoordinators();
    },
  }),
  redisFault({
    number: 39,
    name: "recover on a foreign store, beside coordinators that lease, and twice at once",
    expected: ["store_replaced", "coordinator_still_leases"],
    inject: async (world) => {
      await mustRefuse(world, "coordinator_still_leases", "recover beside coordinators", recover(world));
      await world.killCoordinators();
      const storeId = newStoreId({ firstRun: 1, initialisedAtMs: Date.now(), rate: 1 });
      await mustRefuse(world, "store_replaced", "recover of another store", recover(world, { storeId }));
      const both = await Promise.allSettled([recover(world), recover(world)]);
      for (const one of both) {
        if (one.status === "rejected") await refusalOf(world, "recover at the same time", Promise.reject(one.reason));
      }
      await world.startCoordinators();
    },
  }),
  redisFault({
    number: 40,
    name: "a replica counted by recover, and no more",
    expected: ["quorum_missing"],
    inject: async (world) => {
      await world.killCoordinators();
      const replica = await world.addServer({ replicaof: `127.0.0.1 ${world.server.port}` });
      await recover(world, { nodeCount: 2 });
      await world.startCoordinators();
      await world.untilLeasing();
      await replica.kill("SIGKILL");
      await world.untilSeen("quorum_missing");
      await world.killCoordinators();
      await world.removeServer(replica);
      await recover(world, { nodeCount: 1 });
      await world.startCoordinators();
    },
  }),
  redisFault({
    number: 40,
    name: "moved to another server while importers ask",
    injectionCountMax: 1,
    expected: ["store_moved"],
    inject: async (world) => {
      const target = await world.addServer();
      await world.onStore((source) =>
        world.onStore((store) => move(world, source, { store, place: world.storeUrlAt(target) }), target),
      );
      await world.untilSeen("store_moved");
      await world.killCoordinators();
      for (const coordinator of world.coordinators) await coordinator.start({ storeUrl: world.storeUrlAt(target) });
    },
  }),
];

/** `init` as the verb does it. */
async function init(world: RedisWorld, hasWitness: boolean): Promise<void> {
  await world.onStore(async (store) => {
    const remembering = hasWitness ? { witnessOf: () => witnessOf(world) } : {};
    const coordinator = new Coordinator({ store, name: "init", bounds: BOUNDS, ...remembering });
    await coordinator.initNamespace(NAMESPACE, { rate: 16 });
  });
}

async function move(
  world: RedisWorld,
  store: Store,
  target: Pick<MoveOptions["target"], "store" | "place">,
): Promise<void> {
  await moveNamespace({
    store,
    namespace: NAMESPACE,
    witness: witnessOf(world),
    bounds: BOUNDS,
    target: { ...target, witness: witnessOf(world, target.place) },
    nodeCount: 1,
  });
}
