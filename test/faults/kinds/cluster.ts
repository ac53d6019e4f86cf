/**
 * Fail-overs of a Cluster, by hand: with the master's consent, by votes alone, by nobody's leave.
 * Guarantees: G3, G4 (docs/guarantees.md).
 */
import type { RedisServer } from "../../redis/test-redis.js";
import { ClusterWorld } from "../cluster-world.js";
import { type Fault, faultOf } from "../fault.js";

export const CLUSTER: readonly Fault[] = ([undefined, "FORCE", "TAKEOVER"] as const).map((force) =>
  faultOf(
    { number: 26, name: `CLUSTER FAILOVER ${force ?? ""}`.trim(), expected: ["epoch_changed"] },
    async (options) => {
      const world = await ClusterWorld.make(options);
      const { cluster } = world;
      return {
        world,
        inject: async () => {
          const master = await world.master();
          const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
          await cluster.failover(replica, force);
          await cluster.untilAgreed();
          await world.untilSeen("epoch_changed");
        },
      };
    },
  ),
);
