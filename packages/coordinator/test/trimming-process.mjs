/**
 * A process for tests to kill: trims the ledger of a store once, and kills itself before, during or after the deed that it is told,
 * counted over store and files. Prints the names of its deeds at the end, and what failed.
 * Argument: { storeUrl, directory, bounds, aheadMs, kill?: { at, when } } as JSON.
 */
import { readdirSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { LedgerFiles, LedgerTrimmer } from "../dist/retention/ledger-trimmer.js";
import { RedisStore } from "../dist/stores/redis/store.js";
import { SqliteStore } from "../dist/stores/sqlite/store.js";
import { parseStoreUrl } from "../dist/stores/store-url.js";

/** What changes something outside this process. */
const DEEDS = new Set(["append", "trimLedger"]);

const { storeUrl, directory, bounds, aheadMs, kill } = JSON.parse(process.argv[2]);
const now = () => Date.now() + aheadMs;
const deeds = [];

/** The same thing, in a process that ends at the deed that it was told. */
function mortal(thing) {
  return new Proxy(thing, {
    get(_, name) {
      const value = thing[name];
      if (typeof value !== "function") return value;
      if (!DEEDS.has(name)) return value.bind(thing);
      return async (...parameters) => {
        const at = deeds.push(name);
        if (kill?.at === at && kill.when === "before") die();
        const sizes = sizesOfFiles();
        try {
          return await value.apply(thing, parameters);
        } finally {
          if (kill?.at === at && kill.when === "during") tear(sizes);
          if (kill?.at === at && kill.when !== "before") die();
        }
      };
    },
  });
}

function die() {
  process.kill(process.pid, "SIGKILL");
}

function sizesOfFiles() {
  return new Map(readdirSync(directory).map((name) => [name, statSync(join(directory, name)).size]));
}

/** Leaves only a part of what was just appended, which ends within a line. */
function tear(before) {
  for (const [name, size] of sizesOfFiles()) {
    const earlier = before.get(name) ?? 0;
    if (size > earlier) truncateSync(join(directory, name), earlier + 700);
  }
}

const address = parseStoreUrl(storeUrl);
const store =
  address.kind === "sqlite"
    ? new SqliteStore({ path: address.path, create: false, bounds })
    : await RedisStore.open({ ...address, bounds });
/** Coordinators have touched it until now. */
const touched = new Proxy(store, {
  get(_, name) {
    if (name === "readNamespace")
      return async (namespace) => ({ ...(await store.readNamespace(namespace)), changedAtMs: now() });
    return typeof store[name] === "function" ? store[name].bind(store) : store[name];
  },
});
const failures = [];
const silent = { debug() {}, info() {}, error() {}, warn: (fields) => failures.push(fields) };
const files = mortal(new LedgerFiles(directory));
await new LedgerTrimmer({ store: mortal(touched), files, log: silent, now }).trimAll();
writeSync(1, `${JSON.stringify({ deeds, failures })}\n`);
await store.close();
