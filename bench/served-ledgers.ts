/** Coordinator processes, each behind a ledger of its own that was filled past its store: what benches ask over HTTP and in a browser. */
import { join } from "node:path";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { folderForTest, type ServingProcess, serveProcess } from "../test/processes/command.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { fillRedis, fillSqlite } from "./filled-ledgers.js";

/** At 16 runs a second, so old that its line lies above ten million runs and a burst. */
const AGE_DAYS = 100;

/** One for each number of leases, on embedded stores. They end with the test. */
export async function servedOnSqlite(namespace: string, sizes: readonly number[]): Promise<readonly ServingProcess[]> {
  const folder = await folderForTest();
  const coordinators: ServingProcess[] = [];
  for (const size of sizes) {
    const path = join(folder, `leases-${size}.db`);
    const { store } = await openStore({ kind: "sqlite", path }, { create: true });
    await initBackdated(store, namespace, { ageDays: AGE_DAYS });
    await store.close();
    fillSqlite(path, namespace, size);
    coordinators.push(await serveProcess(`sqlite:${path}`));
  }
  return coordinators;
}

/** The same, each on a Redis of its own. */
export async function servedOnRedis(namespace: string, sizes: readonly number[]): Promise<readonly ServingProcess[]> {
  const coordinators: ServingProcess[] = [];
  for (const size of sizes) {
    const { url } = await startRedisServer();
    const redis = new Redis(url);
    onTestFinished(() => redis.disconnect());
    const { store } = await openStore(parseStoreUrl(url), { create: false });
    await initBackdated(store, namespace, { ageDays: AGE_DAYS });
    await fillRedis(redis, namespace, size);
    await store.close();
    coordinators.push(await serveProcess(url));
  }
  return coordinators;
}
