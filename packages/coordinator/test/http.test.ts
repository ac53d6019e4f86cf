/** Leases, reports, readiness and the surface over real sockets: what is returned, and that a rejected request moves nothing. */
import { Agent, request } from "node:http";
import { leaseSchema, runResponseSchema, statusResponseSchema } from "@callnumber/protocol/schemas";
import { beforeEach, describe, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { ProofKey } from "../src/guard/lease-proof.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { commandsFor, holder, LEASE_NONCE } from "./commands-for-test.js";
import { leaseRequest, served } from "./served.js";
import { stepOn } from "./steps-for-test.js";

type Served = Awaited<ReturnType<typeof served>>;

let { store, server, url, call, get, post, lease, mark } = {} as Served;

beforeEach(async () => {
  ({ store, server, url, call, get, post, lease, mark } = await served());
});

test("a lease returns the runs with the nonce of the request, in a response that is not cached", async () => {
  const { status, body, headers } = await lease({ runCount: 3 });
  expect(status).toBe(201);
  const granted = { namespace: "main", version: 0, firstRun: 1, runCount: 3, nonce: LEASE_NONCE };
  expect(leaseSchema.parse(body)).toMatchObject(granted);
  expect(headers.get("cache-control")).toBe("no-store");
  expect((await lease()).body.firstRun).toBe(4);
});

test("a lease writes the ledger: holder, host, labels and coordinator", async () => {
  await lease({ runCount: 2 });
  const { body } = await get("/v1/namespaces/main/runs/2");
  const entry = { firstRun: 1, runCount: 2, holder, coordinator: "test" };
  expect(runResponseSchema.parse(body)).toMatchObject({
    run: 2,
    state: "unreported",
    lastSequence: null,
    lease: entry,
  });
});

test.each([
  ["an unknown key", leaseRequest({ extra: 1 }), 'has no field "extra"'],
  ["no nonce", leaseRequest({ nonce: undefined }), "nonce"],
  ["a malformed proof", leaseRequest({ proof: "short" }), "proof"],
  ["a proof without the run that it is about", leaseRequest({ proof: "p".repeat(43) }), "proof"],
  ["no holder", leaseRequest({ holder: undefined }), "holder"],
  ["spare runs as text", leaseRequest({ spareRunCount: "2" }), "spareRunCount"],
  ["null for spare runs", leaseRequest({ spareRunCount: null }), "spareRunCount"],
  ["an array", [], "must be an object, not an array"],
  ["null", null, "null"],
  ["an empty body", "", "empty"],
])("the lease route rejects %s, names the fault, and leases nothing", async (_, body, fault) => {
  const response = await post("/v1/namespaces/main/leases", body);
  const message = expect.stringMatching(new RegExp(fault, "i"));
  expect([response.status, response.body]).toMatchObject([400, { code: "invalid_request", message }]);
  expect(await mark()).toBe(0);
});

test.each(["Main", "a%2Fb", "%7Bmain%7D", "a*"])(
  "the lease route rejects the malformed namespace %s",
  async (namespace) => {
    expect(await lease({}, namespace)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  },
);

test("the lease route rejects a namespace that does not exist, and names the command", async () => {
  const message = expect.stringContaining("callnumber init --store STORE_URL --namespace other");
  expect(await lease({}, "other")).toMatchObject({ status: 404, body: { code: "namespace_not_found", message } });
});

test("the lease route checks lease proofs: with a valid one, a run above the mark is evidence of two stores", async () => {
  const { storeId, proofKey } = await store.readNamespace("main");
  expect((await lease({ lastRun: 3 })).body.code).toBe("run_above_high_water_mark");
  const forked = await lease({ lastRun: 3, proof: new ProofKey(proofKey).proofOf(storeId, 3) });
  expect([forked.status, forked.body.code, forked.headers.get("retry-after")]).toEqual([503, "store_forked", null]);
  expect(await mark()).toBe(0);
});

test("a lease above the run ceiling is rejected with the time to wait, in milliseconds and in a header in seconds", async () => {
  const { claim, confirm } = commandsFor((await store.readNamespace("main")).storeId);
  await stepOn(store, "main", claim(0));
  await stepOn(store, "main", confirm(1));
  const { status, body, headers } = await lease();
  expect([status, body.code]).toEqual([503, "run_ceiling_reached"]);
  expect(body.retryAfterMs).toBeGreaterThan(0);
  expect(headers.get("retry-after")).toBe(String(Math.ceil(body.retryAfterMs / 1000)));
  expect((await get("/readyz")).status).toBe(200);
});

describe("POST …/runs/{run}/report", () => {
  const report = { nonce: LEASE_NONCE, lastSequence: 5, state: "open" };

  test("a report changes the state of the run, and of the runs of the same lease before and after it", async () => {
    await lease({ runCount: 3 });
    expect((await post("/v1/namespaces/main/runs/2/report", report)).body).toEqual({ noted: true });
    const states = await Promise.all([1, 2, 3].map(async (run) => (await get(`/v1/namespaces/main/runs/${run}`)).body));
    expect(states.map(({ state, lastSequence }) => [state, lastSequence])).toEqual([
      ["exhausted", 16_383],
      ["open", 5],
      ["open", null],
    ]);
  });

  test.each([
    ["the nonce of another lease", "1", { nonce: "nonce-of-another" }, "holder_mismatch"],
    ["a run that was never leased", "2", {}, "run_not_leased"],
    ["a sequence above the last one", "1", { lastSequence: 16_384 }, "invalid_request"],
    ["a used-up run with a sequence before the last one", "1", { state: "exhausted" }, "invalid_request"],
    ["a negative run", "-1", {}, "invalid_request"],
    ["a run with a leading zero", "01", {}, "invalid_request"],
    ["a run above all versions", "8589934592", {}, "invalid_request"],
  ])("the report route rejects %s, and changes nothing", async (_, run, own, code) => {
    await lease();
    expect((await post(`/v1/namespaces/main/runs/${run}/report`, { ...report, ...own })).body.code).toBe(code);
    expect((await get("/v1/namespaces/main/runs/1")).body.state).toBe("unreported");
  });
});

test("the lease route takes a report of an earlier lease, and grants no lease where that is malformed", async () => {
  await lease();
  const report = { run: 1, nonce: LEASE_NONCE, lastSequence: 16_383, state: "exhausted" };
  expect((await lease({ lastRun: 1, report: { ...report, lastSequence: 1 } })).body.code).toBe("invalid_request");
  expect((await lease({ lastRun: 1, report })).body.firstRun).toBe(2);
  await expect.poll(async () => (await get("/v1/namespaces/main/runs/1")).body.state).toBe("exhausted");
});

test("readiness names the namespaces that lease, and not those without a record", async () => {
  expect((await get("/healthz")).body).toEqual({ healthy: true });
  const ready = { ready: true, namespaces: ["main"], unavailable: [] };
  expect((await get("/readyz")).body).toEqual(ready);
  store.listNamespaces = async () => ["gone", "main"];
  expect((await get("/readyz")).body).toEqual(ready);
});

test("readiness fails when there is no namespace, and when the record of the only one can't be read", async () => {
  const empty = await served({ namespaces: [] });
  expect(await empty.get("/readyz")).toMatchObject({ status: 404, body: { code: "namespace_not_found" } });
  store.readNamespace = async () => {
    throw new CoordinatorError("store_corrupt", "x");
  };
  expect((await get("/readyz")).body.code).toBe("store_corrupt");
});

test("readiness fails while the only namespace is stopped, and shows the command", async () => {
  const { storeId } = await store.readNamespace("main");
  await stepOn(store, "main", commandsFor(storeId).seal(FORKED_SEAL));
  expect((await lease()).body.code).toBe("store_forked");
  const message = expect.stringContaining("callnumber recover");
  expect(await get("/readyz")).toMatchObject({ status: 503, body: { code: "store_forked", message } });
  const { guard } = statusResponseSchema.parse((await get("/v1/namespaces/main/status")).body);
  expect(guard).toMatchObject({ state: "stopped", code: "store_forked" });
});

test("the server rejects an unknown path", async () => {
  expect(await get("/v1/namespaces/main/lease")).toMatchObject({ status: 404, body: { code: "not_found" } });
});

test.each([
  ["GET", "/v1/namespaces/main/leases", "POST"],
  ["PUT", "/v1/namespaces/main/leases", "POST"],
  ["DELETE", "/v1/namespaces/main/leases?a=b", "POST"],
  ["POST", "/v1/namespaces/main/status", "GET"],
  ["POST", "/readyz", "GET, HEAD"],
])("the server rejects %s %s, and names the right method, whatever the body holds", async (method, path, allow) => {
  const { status, body, headers } = await call(method, path, method === "GET" ? undefined : "{");
  expect([status, body.code, headers.get("allow")]).toEqual([405, "method_not_allowed", allow]);
});

test("a server that stops finishes what is in flight, rejects the rest with shutting_down, and then closes", async () => {
  // A connection that is open before.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (path: string) =>
    new Promise<object>((resolve, reject) => {
      const sent = request(url + path, { agent }, async (response) => {
        let text = "";
        for await (const chunk of response) text += chunk;
        const { statusCode: status, headers } = response;
        resolve({ status, retryAfter: headers["retry-after"], ...JSON.parse(text) });
      });
      sent.on("error", reject).end();
    });
  await ask("/healthz");
  const open = store.closeGate();
  const inFlight = lease();
  await expect.poll(() => store.leaseCount).toBe(1);
  const stopped = server.stop();
  const rejection = { status: 503, retryAfter: "1", code: "shutting_down", retryAfterMs: 1000 };
  expect(await ask("/v1/namespaces/main/status")).toMatchObject(rejection);
  open();
  expect((await inFlight).status).toBe(201);
  await stopped;
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  agent.destroy();
});
