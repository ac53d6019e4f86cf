/**
 * A server of the HTTP lease benchmark, as a process of its own. Its settings come as JSON in the first parameter: `kind`
 * (`node-http`, `constant`, `constant-logged`, `coordinator`), and for a coordinator `storeUrl`, `witnessFolder` and `markerFolder`. Its log goes to standard output, as
 * that of `serve` does. Whatever message comes, it answers with the CPU time that it has used.
 */
import { createServer as createBareServer } from "node:http";
import { createRequire } from "node:module";
import process from "node:process";
import { Coordinator, createServer, EventHub, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { openCheckpointFile } from "../packages/coordinator/dist/guard/checkpoint-file.js";
import { SqliteStore } from "../packages/coordinator/dist/stores/sqlite-store.js";
import { placeOf } from "../packages/coordinator/dist/stores/store-url.js";

const { pino } = createRequire(new URL("../packages/coordinator/package.json", import.meta.url))("pino");

const NAME = "bench";
const HOST = "127.0.0.1";
const { kind, storeUrl, witnessFolder, markerFolder } = JSON.parse(process.argv[2]);

const SERVERS = {
  "node-http": listenBare,
  constant: listenConstant,
  "constant-logged": listenConstantLogged,
  coordinator: listenCoordinator,
};

process.on("message", () => process.send({ cpuUsage: process.cpuUsage() }));
process.once("disconnect", () => process.exit(0));
process.send({ url: await SERVERS[kind]() });

/** The least that Node can do: the body is read and parsed, the answer serialised. */
function listenBare() {
  const server = createBareServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = JSON.stringify(constantLease(NAME, JSON.parse(Buffer.concat(parts).toString())));
      response.writeHead(201, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
      response.end(body);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, HOST, () => resolve(`http://${HOST}:${server.address().port}`));
  });
}

/** The service without rules and store. */
async function listenConstant() {
  const coordinator = { name: NAME, lease: async (namespace, request) => constantLease(namespace, request) };
  return await listen(coordinator, new EventHub(newLog()));
}

/** The line of a coordinator, of the same fields. */
async function listenConstantLogged() {
  const log = newLog();
  const lease = async (namespace, request) => {
    const answer = constantLease(namespace, request);
    const { storeId, version, firstRun, runCount, leasedAtMs, nonce } = answer;
    const { holder } = request;
    const told = { namespace, storeId, version, firstRun, runCount, leasedAtMs, nonce, holder };
    log.info({ ...told, spareRunCount: 0, durationMs: 0.123 }, "lease");
    return answer;
  };
  return await listen({ name: NAME, lease }, new EventHub(newLog()));
}

async function listenCoordinator() {
  const address = parseStoreUrl(storeUrl);
  const place = placeOf(address);
  const store = await open(address);
  const log = new EventHub(newLog());
  const checkpointFileOf = (namespace) => openCheckpointFile({ folder: witnessFolder, place, namespace });
  const coordinator = new Coordinator({ store, name: NAME, log, checkpointFileOf });
  coordinator.startHeartbeat();
  return await listen(coordinator, log);
}

async function open(address) {
  if (address.kind !== "sqlite") return (await openStore(address, { create: false })).store;
  return new SqliteStore({ path: address.path, create: false, machine: { markerFolders: [markerFolder] } });
}

async function listen(coordinator, events) {
  const server = await createServer({ coordinator, release: "benchmark", events });
  return await server.listen({ host: HOST, port: 0 });
}

/** As `serve` logs. */
function newLog() {
  return pino({ level: "info", base: { coordinator: NAME } });
}

function constantLease(namespace, { nonce }) {
  const storeId = "01234567-89ab-cdef-0123-456789abcdef.1.1793491200000.16";
  const receipt = "constant-receipt-of-a-store-that-is-not---";
  return {
    namespace,
    storeId,
    version: 0,
    firstRun: 1,
    runCount: 1,
    leasedAtMs: 1793491200000,
    nonce,
    receipt: `${receipt}-`,
  };
}
