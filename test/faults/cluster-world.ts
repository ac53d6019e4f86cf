/** A world on a Redis Cluster of three masters with a replica each: the namespace is kept by one of the masters. */
import { Cluster } from "ioredis";
import { initBackdated } from "../backdated.js";
import { type ClusterRedis, startClusterRedis } from "../redis/cluster-redis.js";
import type { RedisBinary } from "../redis/redis-binary.js";
import { launchRedisServer } from "../redis/redis-server.js";
import { clusterStoreUrlAt, TESTER_LOGIN } from "../redis/shipped-users.js";
import { type Control, CounterControl } from "./control.js";
import type { FaultOptions } from "./run-fault.js";
import { NAMESPACE, World } from "./world.js";

const KEY = `{${NAMESPACE}}`;
/** The master and its replica: a step counts when both have it. */
const NODE_COUNT = 2;
const COORDINATOR_COUNT = 2;

export class ClusterWorld extends World {
  #cluster: ClusterRedis | undefined;

  readonly #binary: RedisBinary;

  constructor({ binary, ...options }: FaultOptions) {
    super(options);
    this.#binary = binary;
  }

  async begin(): Promise<void> {
    const cluster = await startClusterRedis({
      launch: async (options) => {
        const server = await launchRedisServer(this.#binary, options);
        this.defer(() => server.dispose());
        return server;
      },
    });
    this.#cluster = cluster;
    const storeId = await this.onStore((store) => initBackdated(store, NAMESPACE, { nodeCount: NODE_COUNT }));
    for (let index = 0; index < COORDINATOR_COUNT; index++) await this.addCoordinator({ storeUrl: this.storeUrl });
    await this.startLoad(storeId, clusterControl(cluster));
  }

  get cluster(): ClusterRedis {
    if (this.#cluster === undefined) throw new Error("the cluster has not begun");
    return this.#cluster;
  }

  get storeUrl(): string {
    const hosts = this.cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
    return clusterStoreUrlAt(hosts);
  }

  /** The node that keeps the namespace. */
  master() {
    return this.cluster.masterOf(KEY);
  }
}

function clusterControl({ nodes }: ClusterRedis): Control {
  const redis = new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    {
      redisOptions: { ...TESTER_LOGIN, commandTimeout: 1_000, maxRetriesPerRequest: 0 },
      clusterRetryStrategy: () => 20,
    },
  );
  redis.on("error", () => {});
  return new CounterControl({ next: () => redis.incr(`control${KEY}`), end: () => redis.disconnect() });
}
