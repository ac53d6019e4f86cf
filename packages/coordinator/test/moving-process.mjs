/**
 * A process for tests to kill: moves a namespace, and kills itself before or after the step that it is told, counted over both
 * stores. Writes `ready` once both stores are open, and `moved` and what came of it at the end.
 * Argument: { sourceUrl, targetUrl, place, bounds, pageLeaseCount, kill?: { at, when: "before" | "after" } } as JSON.
 */
import { writeSync } from "node:fs";
import { NO_CHECKPOINT_FILE } from "../dist/guard/checkpoint.js";
import { moveNamespace } from "../dist/operator/move.js";
import { RedisStore } from "../dist/stores/redis/store.js";
import { SqliteStore } from "../dist/stores/sqlite/store.js";
import { parseStoreUrl } from "../dist/stores/store-url.js";

/** What changes a store. A kill between two looks is one between two changes. */
const CHANGES = new Set(["step", "importLeases"]);

const { sourceUrl, targetUrl, place, bounds, pageLeaseCount, kill } = JSON.parse(process.argv[2]);
let changes = 0;

async function open(url) {
  const address = parseStoreUrl(url);
  const store =
    address.kind === "sqlite"
      ? new SqliteStore({ path: address.path, create: true, bounds })
      : await RedisStore.open({ ...address, bounds });
  return mortal(store);
}

/** The same store, in the hands of a process that ends at the change it was told. */
function mortal(store) {
  return new Proxy(store, {
    get(_, name) {
      const value = store[name];
      if (typeof value !== "function") return value;
      if (!CHANGES.has(name)) return value.bind(store);
      return async (...parameters) => {
        const at = ++changes;
        if (kill?.at === at && kill.when === "before") die();
        try {
          return await value.apply(store, parameters);
        } finally {
          if (kill?.at === at && kill.when === "after") die();
        }
      };
    },
  });
}

function die() {
  process.kill(process.pid, "SIGKILL");
}

const [store, target] = [await open(sourceUrl), await open(targetUrl)];
writeSync(1, "ready\n");
await moveNamespace({
  store,
  namespace: "main",
  checkpointFile: NO_CHECKPOINT_FILE,
  bounds,
  nodeCount: 1,
  pageLeaseCount,
  target: { store: target, place, checkpointFile: NO_CHECKPOINT_FILE },
});
writeSync(1, `moved ${JSON.stringify({ changes })}\n`);
await store.close();
await target.close();
