/**
 * A coordinator as a process of its own, over HTTP, with the bounds and the clock that a test asks for. Its settings come as JSON in
 * the first parameter; messages from the parent move its clock; its log goes to the parent, an event at a time.
 */
import process from "node:process";
import { Coordinator, createServer, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { openWitness } from "../../packages/coordinator/dist/guard/witness-folder.js";
import { placeOf } from "../../packages/coordinator/dist/stores/store-url.js";

const { storeUrl, name, bounds, witnessFolder, port, clockOffsetMs } = JSON.parse(process.argv[2]);

let offsetMs = clockOffsetMs;
process.on("message", (message) => {
  offsetMs = message.clockOffsetMs;
});
process.once("disconnect", () => process.exit(1));

const now = () => Date.now() + offsetMs;
const tell = (fields, event) => process.send({ event, fields });
const log = { debug: () => {}, info: tell, warn: tell, error: tell };

const { store } = await openStore(parseStoreUrl(storeUrl), { create: false, now, bounds });
const witnessOf = (namespace) =>
  openWitness({ folder: witnessFolder, place: placeOf(parseStoreUrl(storeUrl)), namespace });
const coordinator = new Coordinator({
  store,
  name,
  log,
  now,
  bounds,
  ...(witnessFolder === null ? {} : { witnessOf }),
});
const server = await createServer({ coordinator, release: "fault test" });
const url = await server.listen({ host: "127.0.0.1", port });
coordinator.startTouching();
process.send({ event: "listening", fields: { url } });
