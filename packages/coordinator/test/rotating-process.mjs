/**
 * A process for tests to kill: rotates the ledger of a store once, and kills itself before, during or after the deed that it is
 * told, counted over store and disk. Writes the names of its deeds at the end, and what failed.
 * Argument: { storeUrl, folder, bounds, segmentLeases, keepLeases, kill?: { at, when } } as JSON.
 */
import { writeSync } from "node:fs";
import { NODE_DISK } from "../dist/ledger-archive/archive-disk.js";
import { LedgerArchive } from "../dist/ledger-archive/ledger-archive.js";
import { LedgerRotation } from "../dist/ledger-archive/ledger-rotation.js";
import { RedisStore } from "../dist/stores/redis-store.js";
import { SqliteStore } from "../dist/stores/sqlite-store.js";
import { parseStoreUrl } from "../dist/stores/store-url.js";

/** What changes something outside this process. */
const DEEDS = new Set(["cutLedger", "write", "rename", "remove"]);

const { storeUrl, folder, bounds, segmentLeases, keepLeases, kill } = JSON.parse(process.argv[2]);
const deeds = [];

/** The same thing, in the hands of a process that ends at the deed it was told. */
function mortal(thing) {
  return new Proxy(thing, {
    get(_, name) {
      const value = thing[name];
      if (typeof value !== "function") return value;
      if (!DEEDS.has(name)) return value.bind(thing);
      return async (...parameters) => {
        const at = deeds.push(name);
        if (kill?.at === at && kill.when === "before") die();
        if (kill?.at === at && kill.when === "during") {
          const [path, bytes] = parameters;
          await thing.write(path, bytes.subarray(0, bytes.length / 2));
          die();
        }
        try {
          return await value.apply(thing, parameters);
        } finally {
          if (kill?.at === at && kill.when !== "before") die();
        }
      };
    },
  });
}

function die() {
  process.kill(process.pid, "SIGKILL");
}

const address = parseStoreUrl(storeUrl);
const store =
  address.kind === "sqlite"
    ? new SqliteStore({ path: address.path, create: false, bounds })
    : await RedisStore.open({ ...address, bounds });
const failures = [];
const silent = { debug() {}, info() {}, error() {}, warn: (fields) => failures.push(fields) };
const rotation = new LedgerRotation({
  store: mortal(store),
  archive: new LedgerArchive(folder, mortal(NODE_DISK)),
  retention: { leaseCount: keepLeases },
  log: silent,
  now: () => Date.now() + 1,
  segmentLeases,
  partialAfterMs: -1,
  lateEveryMs: 0,
});
await rotation.rotateAll();
writeSync(1, `${JSON.stringify({ deeds, failures })}\n`);
await store.close();
