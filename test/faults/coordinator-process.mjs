/**
 * A coordinator as a process of its own, over HTTP, with the bounds and the clock that a test sets. Its settings come as JSON in
 * the first parameter; messages from the parent move its clock, or let it lease by itself; its log goes to the parent, an event at a time.
 */
import { randomBytes } from "node:crypto";
import process from "node:process";
import { Coordinator, createServer, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { openCheckpointFile } from "../../packages/coordinator/dist/guard/checkpoint-file.js";
import { SqliteStore } from "../../packages/coordinator/dist/stores/sqlite/store.js";
import { placeOf } from "../../packages/coordinator/dist/stores/store-url.js";

const settings = JSON.parse(process.argv[2]);
const { storeUrl, name, bounds, checkpointDir, markerFolder, preflightEveryMs, overrides, port, clockOffsetMs } =
  settings;

let offsetMs = clockOffsetMs;
let leaseFor;
process.on("message", async (message) => {
  offsetMs = message.clockOffsetMs ?? offsetMs;
  if (message.leaseForMs !== undefined) report(await leaseFor(message.leaseForMs), "leased");
});
process.once("disconnect", () => process.exit(1));

const now = () => Date.now() + offsetMs;
const report = (fields, event) => process.send({ event, fields });
const log = { debug: () => {}, info: report, warn: report, error: report };

async function open() {
  const address = parseStoreUrl(storeUrl);
  if (address.kind !== "sqlite") return (await openStore(address, { create: false, now })).store;
  return new SqliteStore({ path: address.path, create: false, machine: { markerFolders: [markerFolder] } });
}

/** Counts the changes that are sent to a store, and those that it makes. */
function countTries(store) {
  const counts = { tries: 0, changes: 0 };
  const apply = store.apply.bind(store);
  store.apply = async (...words) => {
    counts.tries++;
    const answer = await apply(...words);
    if ("acknowledgedCount" in answer) counts.changes++;
    return answer;
  };
  return counts;
}

/** Leases one run after the other, without a pause and past HTTP. */
async function leaseInALoop(coordinator, counts, ms) {
  const [before, endsAtMs] = [{ ...counts }, Date.now() + ms];
  const holder = { name, host: "fault-test", pid: process.pid, labels: {} };
  const leases = [];
  let failure;
  while (Date.now() < endsAtMs && failure === undefined) {
    const nonce = randomBytes(12).toString("base64url");
    const request = { runCount: 1, nonce, holder, lastRun: null, proof: null, sentAtMs: now() };
    try {
      leases.push({ ...(await coordinator.lease("main", request)), receivedAtMs: now() });
    } catch (error) {
      failure = error.message;
    }
  }
  return { leases, tries: counts.tries - before.tries, changes: counts.changes - before.changes, failure };
}

async function serve() {
  const place = placeOf(parseStoreUrl(storeUrl));
  const checkpointFileOf = (namespace) => openCheckpointFile({ folder: checkpointDir, place, namespace });
  const store = await open();
  const counts = countTries(store);
  const coordinator = new Coordinator({
    store,
    name,
    log,
    now,
    bounds,
    preflightEveryMs,
    overrides,
    ...(checkpointDir === null ? {} : { checkpointFileOf }),
  });
  leaseFor = (ms) => leaseInALoop(coordinator, counts, ms);
  const server = createServer({ coordinator, release: "fault test" });
  const url = await server.listen({ host: "127.0.0.1", port });
  coordinator.startHeartbeat();
  report({ url }, "listening");
}

try {
  await serve();
} catch (error) {
  process.send({ event: "failed", fields: { code: error.code, reason: error.message } }, () => process.exit(1));
}
