/**
 * A process for tests to kill: moves a namespace, or trims its ledger once, and kills itself before, during or after one of its changes,
 * counted over stores and files. Prints `ready` once the stores are open, and at the end its changes, and what failed, as JSON.
 * Argument: { storeUrl, bounds, kill?: { at, when }, move?: { targetUrl, place, pageLeaseCount, checkpointDir, lostStoreId }, trim?: { directory, aheadMs } } as JSON.
 */
import { readdirSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { NO_CHECKPOINT_FILE } from "../dist/guard/checkpoint.js";
import { openCheckpointFile } from "../dist/guard/checkpoint-file.js";
import { moveNamespace } from "../dist/operator/move.js";
import { LedgerFiles, LedgerTrimmer } from "../dist/retention/ledger-trimmer.js";
import { openStore } from "../dist/stores/open-store.js";
import { parseStoreUrl, placeOf } from "../dist/stores/store-url.js";

/** What changes something outside this process. */
const CHANGES = new Set(["apply", "appendLeases", "setRetentionDays", "trimLedger", "append"]);
/** The one change that is no promise. */
const NOTE = "note";

const { storeUrl, bounds, kill, move, trim } = JSON.parse(process.argv[2]);
const changes = [];
const failures = [];

/** The same object, in a process that ends at the change that `kill` names. */
function mortal(thing) {
  return new Proxy(thing, {
    get(_, name) {
      const value = thing[name];
      if (typeof value !== "function") return value;
      if (name === NOTE) {
        return (checkpoint) => {
          const when = changes.push(name) === kill?.at ? kill.when : undefined;
          if (when === "before") die();
          value.call(thing, checkpoint);
          if (when !== undefined) die();
        };
      }
      if (!CHANGES.has(name)) return value.bind(thing);
      return async (...parameters) => {
        const when = changes.push(name) === kill?.at ? kill.when : undefined;
        if (when === "before") die();
        const sizes = when === "during" ? sizesOfFiles() : undefined;
        try {
          return await value.apply(thing, parameters);
        } finally {
          if (when === "during") tear(sizes);
          if (when !== undefined) die();
        }
      };
    },
  });
}

function die() {
  process.kill(process.pid, "SIGKILL");
}

function sizesOfFiles() {
  return new Map(readdirSync(trim.directory).map((name) => [name, statSync(join(trim.directory, name)).size]));
}

/** Leaves only a part of what was just appended, which ends within a line. */
function tear(before) {
  for (const [name, size] of sizesOfFiles()) {
    const earlier = before.get(name) ?? 0;
    if (size > earlier) truncateSync(join(trim.directory, name), earlier + 700);
  }
}

async function open(url) {
  return (await openStore(parseStoreUrl(url), { create: true })).store;
}

function checkpointFileOf(url, folder) {
  if (folder === undefined) return NO_CHECKPOINT_FILE;
  return mortal(openCheckpointFile({ folder, place: placeOf(parseStoreUrl(url)), namespace: "main" }));
}

async function moveTo({ targetUrl, place, pageLeaseCount, checkpointDir, lostStoreId }) {
  const [store, target] = [mortal(await open(storeUrl)), mortal(await open(targetUrl))];
  const [checkpointFile, targetFile] = [storeUrl, targetUrl].map((url) => checkpointFileOf(url, checkpointDir));
  const common = { namespace: "main", checkpointFile, bounds, nodeCount: 1, pageLeaseCount };
  writeSync(1, "ready\n");
  await moveNamespace({
    ...common,
    store,
    lostStoreId,
    target: { store: target, place, checkpointFile: targetFile },
  });
  await store.close();
  await target.close();
}

async function trimInto({ directory, aheadMs }) {
  const store = await open(storeUrl);
  const now = () => Date.now() + aheadMs;
  const { readNamespace } = store;
  // Coordinators have had their heartbeats until now.
  store.readNamespace = async (name) => ({ ...(await readNamespace.call(store, name)), changedAtMs: now() });
  const log = { debug() {}, info() {}, error() {}, warn: (fields) => failures.push(fields) };
  await new LedgerTrimmer({ store: mortal(store), files: mortal(new LedgerFiles(directory)), log, now }).trimAll();
  await store.close();
}

if (move !== undefined) await moveTo(move);
else await trimInto(trim);
writeSync(1, `${JSON.stringify({ changes, failures })}\n`);
