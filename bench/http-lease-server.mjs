/**
 * A server of the HTTP lease benchmark, as a process of its own. The first argument is JSON: `kind` (`node-http`, `fastify`,
 * `fastify-logged`, `coordinator`), and for a coordinator `storeUrl` and `checkpointDirectory`. The log goes to standard output, as
 * that of `serve` does. Replies to every message of its parent with the CPU time that it has used.
 */
import { createServer as createNodeServer } from "node:http";
import { createRequire } from "node:module";
import process from "node:process";
import { Coordinator, createServer, EventHub, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { ROUTES } from "@callnumber/protocol/api";
import { leaseRequestSchema, leaseSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { openCheckpointFile } from "../packages/coordinator/dist/guard/checkpoint-file.js";
import { placeOf } from "../packages/coordinator/dist/stores/store-url.js";

// What the coordinator itself uses, in the same version.
const ofCoordinator = createRequire(new URL("../packages/coordinator/package.json", import.meta.url));
const { fastify } = ofCoordinator("fastify");
const { pino } = createRequire(new URL("../packages/cli/package.json", import.meta.url))("pino");
const { z } = ofCoordinator("zod");

const NAME = "bench";
const HOST = "127.0.0.1";
const { kind, storeUrl, checkpointDirectory } = JSON.parse(process.argv[2]);

const SERVERS = {
  "node-http": listenNodeHttp,
  fastify: () => listenFastify(() => {}),
  "fastify-logged": () => listenFastify(logLease(newLog())),
  coordinator: listenCoordinator,
};

process.on("message", () => process.send({ cpuUsage: process.cpuUsage() }));
process.once("disconnect", () => process.exit(0));
process.send({ url: await SERVERS[kind]() });

/** The least that Node can do: the body is read and parsed, the response serialized. */
function listenNodeHttp() {
  const server = createNodeServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.stringify(constantLease(NAME, JSON.parse(Buffer.concat(chunks).toString())));
      response.writeHead(201, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
      response.end(body);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, HOST, () => resolve(`http://${HOST}:${server.address().port}`));
  });
}

/** What a team would write that needs this route and nothing else: no hook of ours, the same schemas. */
async function listenFastify(log) {
  const app = fastify();
  app.setValidatorCompiler(({ schema }) => (value) => {
    const { data, error } = schema.safeParse(value);
    return error === undefined ? { value: data } : { error };
  });
  const serializer = (schema) => (value) => JSON.stringify(schema.parse(value));
  app.setSerializerCompiler(({ schema }) => serializer(schema));
  const params = z.object({ namespace: namespaceSchema });
  const schema = { params, body: leaseRequestSchema, response: { 201: leaseSchema } };
  app.post(ROUTES.leases, { schema }, async (request, reply) => {
    const lease = constantLease(request.params.namespace, request.body);
    log(lease, request.body.holder);
    reply.code(201);
    return lease;
  });
  return await app.listen({ host: HOST, port: 0 });
}

/** The line that a coordinator logs for a lease, with the same fields. */
function logLease(log) {
  return ({ namespace, storeId, version, firstRun, runCount, leasedAtMs, nonce }, holder) => {
    const fields = { namespace, storeId, version, firstRun, runCount, leasedAtMs, nonce, holder };
    log.info({ ...fields, spareRunCount: 0, durationMs: 0.123 }, "lease");
  };
}

async function listenCoordinator() {
  const address = parseStoreUrl(storeUrl);
  const { store } = await openStore(address, { create: false });
  const log = new EventHub(newLog());
  const checkpointFileOf = (namespace) =>
    openCheckpointFile({ folder: checkpointDirectory, place: placeOf(address), namespace });
  const coordinator = new Coordinator({ store, name: NAME, log, checkpointFileOf });
  coordinator.startHeartbeat();
  const server = createServer({ coordinator, release: "benchmark", events: log });
  const url = await server.listen({ host: HOST, port: 0 });
  // Answered when all routes are loaded.
  await fetch(`${url}/healthz`);
  return url;
}

/** As `serve` logs. */
function newLog() {
  return pino({ level: "info", base: { coordinator: NAME } });
}

function constantLease(namespace, { nonce }) {
  return {
    namespace,
    storeId: "01234567-89ab-cdef-0123-456789abcdef.1.1793491200000.16",
    version: 0,
    firstRun: 1,
    runCount: 1,
    leasedAtMs: 1793491200000,
    nonce,
    proof: "constant-proof-of-a-store-that-is-not------",
  };
}
