/**
 * A coordinator as a process of its own, over HTTP, with the bounds and the clock that a test sets. Its settings come as JSON in
 * the first parameter; messages from the parent move its clock; its log goes to the parent, an event at a time.
 */
import process from "node:process";
import { Coordinator, createServer, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { openCheckpointFile } from "../../packages/coordinator/dist/guard/checkpoint-file.js";
import { SqliteStore } from "../../packages/coordinator/dist/stores/sqlite/store.js";
import { placeOf } from "../../packages/coordinator/dist/stores/store-url.js";

const { storeUrl, name, bounds, checkpointDir, markerFolder, preflightEveryMs, port, clockOffsetMs } = JSON.parse(
  process.argv[2],
);

let offsetMs = clockOffsetMs;
process.on("message", (message) => {
  offsetMs = message.clockOffsetMs;
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

async function serve() {
  const place = placeOf(parseStoreUrl(storeUrl));
  const checkpointFileOf = (namespace) => openCheckpointFile({ folder: checkpointDir, place, namespace });
  const store = await open();
  const coordinator = new Coordinator({
    store,
    name,
    log,
    now,
    bounds,
    preflightEveryMs,
    ...(checkpointDir === null ? {} : { checkpointFileOf }),
  });
  const server = await createServer({ coordinator, release: "fault test" });
  const url = await server.listen({ host: "127.0.0.1", port });
  coordinator.startHeartbeat();
  report({ url }, "listening");
}

try {
  await serve();
} catch (error) {
  process.send({ event: "failed", fields: { code: error.code, reason: error.message } }, () => process.exit(1));
}
