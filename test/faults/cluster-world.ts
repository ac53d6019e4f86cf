/** A world on a Redis Cluster of three masters with a replica each: the namespace is kept by one of the masters. */
import { Cluster } from "ioredis";
import { openStore } from "../../packages/coordinator/src/stores/open-store.js";
import type { Store } from "../../packages/coordinator/src/stores/store.js";
import { parseStoreUrl } from "../../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../backdated.js";
import { type ClusterRedis, startClusterRedis } from "../redis/cluster-redis.js";
import { launchRedisServer } from "../redis/redis-server.js";
import { asOperator, clusterStoreUrlAt, TESTER_LOGIN } from "../redis/shipped-users.js";
import { Control } from "./control.js";
import type { FaultOptions } from "./fault.js";
import { BOUNDS, begun, NAMESPACE, newFolder, World } from "./world.js";

const KEY = `{${NAMESPACE}}`;
/** The master and its replica: a step counts when both have it. */
const NODE_COUNT = 2;
const COORDINATOR_COUNT = 2;

export class ClusterWorld extends World {
  #cluster: ClusterRedis | undefined;

  private constructor(options: FaultOptions, folder: string) {
    super({ ...options, hasCheckpoint: true }, folder);
  }

  /** Resolves when every importer has got its first runs. */
  static async make(options: FaultOptions): Promise<ClusterWorld> {
    const world = new ClusterWorld(options, await newFolder());
    return await begun(world, () => world.#begin(options));
  }

  async #begin({ binary }: FaultOptions): Promise<void> {
    const cluster = await startClusterRedis({
      launch: async (options) => {
        const server = await launchRedisServer(binary, options);
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

  async onStore<T>(act: (store: Store) => Promise<T>): Promise<T> {
    const { store } = await openStore(parseStoreUrl(asOperator(this.storeUrl)), { create: false, bounds: BOUNDS });
    try {
      return await act(store);
    } finally {
      await store.close();
    }
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
  return new Control({ next: () => redis.incr(`control${KEY}`), end: () => redis.disconnect() });
}
