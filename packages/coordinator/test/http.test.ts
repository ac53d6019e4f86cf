/** The HTTP surface, over real sockets, on the memory store: what it answers, and that what it refuses moves nothing. */
import { request as httpRequest } from "node:http";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import {
  inspectResponseSchema,
  leaseSchema,
  runResponseSchema,
  runsResponseSchema,
  statusResponseSchema,
} from "@callnumber/protocol/schemas";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { FORKED_SEAL, ReceiptKey } from "../src/guard/record.js";
import { createServer, type Server } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { Outcome, StepCommand } from "../src/stores/store.js";
import { commandsFor } from "./commands-for-test.js";

const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const leaseBody = {
  runCount: 1,
  nonce: "nonce-0123456789",
  holder,
  lastRun: null,
  receipt: null,
  // Long ago, as of a request that took its time: a holder's clock may be behind.
  sentAtMs: 1_700_000_000_000,
};

/** A store whose leases wait until they are let go: for what happens while a request is in flight. */
class GatedStore extends MemoryStore {
  gate: Promise<void> = Promise.resolve();
  onAsked = () => {};
  override async step(namespace: string, command: StepCommand): Promise<Outcome> {
    if (command.step === "lease") {
      this.onAsked();
      await this.gate;
    }
    return super.step(namespace, command);
  }
}

let store: GatedStore;
let coordinator: Coordinator;
let server: Server;
let base: string;

beforeEach(async () => {
  store = new GatedStore();
  coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace("main");
  server = await createServer({ coordinator, release: "0.0.0" });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => server.stop());

async function call(method: string, path: string, body?: unknown) {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  const response = await fetch(base + path, init);
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
}

const post = (path: string, body: unknown) => call("POST", path, body);
const get = (path: string) => call("GET", path);
const lease = (body: unknown = leaseBody) => post("/v1/namespaces/main/leases", body);

async function mark(): Promise<number> {
  return (await store.readNamespace("main")).highWaterMark;
}

describe("lease", () => {
  test("answers the runs with the nonce of the request", async () => {
    const { status, body, headers } = await lease({ ...leaseBody, runCount: 3 });
    expect(status).toBe(201);
    expect(leaseSchema.parse(body)).toMatchObject({
      namespace: "main",
      version: 0,
      firstRun: 1,
      runCount: 3,
      nonce: leaseBody.nonce,
    });
    expect(headers.get("cache-control")).toBe("no-store");
    expect((await lease()).body.firstRun).toBe(4);
  });

  test("writes the ledger: who, where, with which labels, by which coordinator", async () => {
    await lease({ ...leaseBody, runCount: 2 });
    const { body } = await get("/v1/namespaces/main/runs/2");
    expect(runResponseSchema.parse(body)).toMatchObject({
      run: 2,
      state: "unreported",
      lastSequence: null,
      lease: { firstRun: 1, runCount: 2, holder, coordinator: "test" },
    });
  });

  test("refuses a holder that has a run beyond the mark: its store is another one", async () => {
    await lease();
    const { status, body } = await lease({ ...leaseBody, lastRun: 2 });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "run_above_high_water_mark" });
    expect(await mark()).toBe(1);
    expect((await lease({ ...leaseBody, lastRun: 1 })).status).toBe(201);
  });

  test.each([
    ["an unknown key", { ...leaseBody, extra: 1 }, "Unrecognized key"],
    ["no runs", { ...leaseBody, runCount: 0 }, "runCount"],
    ["65 runs", { ...leaseBody, runCount: 65 }, "runCount"],
    ["a number as text", { ...leaseBody, runCount: "1" }, "runCount"],
    ["no nonce", { ...leaseBody, nonce: undefined }, "nonce"],
    ["no receipt, nor that there is none", { ...leaseBody, receipt: undefined }, "receipt"],
    ["a receipt that can't be", { ...leaseBody, receipt: "short" }, "receipt"],
    ["no clock", { ...leaseBody, sentAtMs: undefined }, "sentAtMs"],
    ["a clock that can't be", { ...leaseBody, sentAtMs: -1 }, "sentAtMs"],
    ["no holder", { ...leaseBody, holder: undefined }, "holder"],
    ["a bad label", { ...leaseBody, holder: { ...holder, labels: { "": "x" } } }, "labels"],
    ["an array", [], "expected object"],
    ["null", null, "null"],
    ["nothing", "", "empty"],
  ])("refuses %s, says what is wrong, and the mark stays", async (_, body, said) => {
    const answer = await lease(body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(new RegExp(said, "i")),
    });
    expect(await mark()).toBe(0);
  });

  test("refuses a namespace that can't be", async () => {
    for (const namespace of ["Main", "a%2Fb", "%7Bmain%7D", "a*"]) {
      const answer = await post(`/v1/namespaces/${namespace}/leases`, leaseBody);
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    }
    expect(await mark()).toBe(0);
  });

  test("refuses a namespace that was not made, and names the command", async () => {
    const { status, body } = await post("/v1/namespaces/other/leases", leaseBody);
    expect(status).toBe(404);
    expect(body).toMatchObject({
      code: "namespace_not_found",
      message: expect.stringContaining("callnumber init --store STORE_URL --namespace other"),
    });
  });

  test("bears a receipt, with which a run is evidence of two stores, and without which it is none", async () => {
    const { body } = await lease({ ...leaseBody, runCount: 2 });
    const { storeId, receiptKey } = await store.readNamespace("main");
    expect(body.receipt).toBe(new ReceiptKey(receiptKey).receiptOf(storeId, 2));
    const forged = await lease({ ...leaseBody, lastRun: 3, receipt: body.receipt });
    expect([forged.status, forged.body.code]).toEqual([400, "run_above_high_water_mark"]);
    const forked = await lease({ ...leaseBody, lastRun: 3, receipt: new ReceiptKey(receiptKey).receiptOf(storeId, 3) });
    expect([forked.status, forked.body.code, forked.headers.get("retry-after")]).toEqual([503, "store_forked", null]);
    expect((await lease()).body.code).toBe("store_forked");
  });

  test("refuses a holder whose clock is ahead, for as long as it is", async () => {
    const { status, body } = await lease({ ...leaseBody, sentAtMs: Date.now() + 60_000 });
    expect([status, body.code]).toEqual([503, "clock_skew"]);
    expect(await mark()).toBe(0);
  });

  test("above the clock line waits: told in milliseconds, and in whole seconds for who reads headers", async () => {
    const { storeId } = await store.readNamespace("main");
    const { claim, confirm } = commandsFor(storeId);
    await store.step("main", claim(0));
    await store.step("main", confirm(1));
    const { status, body, headers } = await lease();
    expect([status, body.code]).toEqual([503, "run_ceiling_reached"]);
    expect(body.retryAfterMs).toBeGreaterThan(0);
    expect(headers.get("retry-after")).toBe(String(Math.ceil(body.retryAfterMs / 1000)));
    expect((await get("/readyz")).status).toBe(200);
  });
});

describe("report", () => {
  const report = { nonce: leaseBody.nonce, lastSequence: 5, state: "open" };

  test("shows in the run, and in the runs of the same lease before and after it", async () => {
    await lease({ ...leaseBody, runCount: 3 });
    expect((await post("/v1/namespaces/main/runs/2/report", report)).body).toEqual({ noted: true });
    const states = await Promise.all([1, 2, 3].map(async (run) => (await get(`/v1/namespaces/main/runs/${run}`)).body));
    expect(states.map(({ state, lastSequence }) => [state, lastSequence])).toEqual([
      ["exhausted", 16_383],
      ["open", 5],
      ["open", null],
    ]);
  });

  test("is refused without the lease's nonce, for runs of nobody, and when it makes no sense", async () => {
    await lease();
    const answers = await Promise.all([
      post("/v1/namespaces/main/runs/1/report", { ...report, nonce: "nonce-of-another" }),
      post("/v1/namespaces/main/runs/2/report", report),
      post("/v1/namespaces/main/runs/1/report", { ...report, lastSequence: 16_384 }),
      post("/v1/namespaces/main/runs/1/report", { ...report, state: "exhausted" }),
      post("/v1/namespaces/main/runs/-1/report", report),
      post("/v1/namespaces/main/runs/01/report", report),
      post("/v1/namespaces/main/runs/8589934592/report", report),
    ]);
    expect(answers.map(({ body }) => body.code)).toEqual([
      "holder_mismatch",
      "run_not_leased",
      ...Array(5).fill("invalid_request"),
    ]);
    expect((await get("/v1/namespaces/main/runs/1")).body.state).toBe("unreported");
  });
});

describe("runs", () => {
  test("come newest first and page by page to the end, each once", async () => {
    for (let count = 0; count < 7; count++) await lease({ ...leaseBody, runCount: 2 });
    const seen: number[] = [];
    let path = "/v1/namespaces/main/runs?limit=3";
    for (;;) {
      const { leases, nextCursor } = runsResponseSchema.parse((await get(path)).body);
      seen.push(...leases.map(({ firstRun }) => firstRun));
      if (nextCursor === null) break;
      path = `/v1/namespaces/main/runs?limit=3&cursor=${nextCursor}`;
    }
    expect(seen).toEqual([13, 11, 9, 7, 5, 3, 1]);
  });

  test("are answered in the shape of the wire and nothing beside it, as JSON", async () => {
    for (let count = 0; count < 3; count++) await lease({ ...leaseBody, holder: { ...holder, labels: { a: "ä" } } });
    await post("/v1/namespaces/main/runs/2/report", { nonce: leaseBody.nonce, lastSequence: 5, state: "open" });
    for (const path of ["runs", "runs?limit=1", "runs?holder=nobody"]) {
      const { body, headers } = await get(`/v1/namespaces/main/${path}`);
      expect(runsResponseSchema.parse(body)).toEqual(body);
      expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    }
  });

  test("are filtered by holder and by time", async () => {
    for (const name of ["a", "b", "a", "c"]) await lease({ ...leaseBody, holder: { ...holder, name } });
    const ofA = runsResponseSchema.parse((await get("/v1/namespaces/main/runs?holder=a")).body);
    expect(ofA.leases.map(({ firstRun }) => firstRun)).toEqual([3, 1]);
    const { leasedAtMs } = (await get("/v1/namespaces/main/runs/4")).body.lease;
    const later = await get(`/v1/namespaces/main/runs?leasedFromMs=${leasedAtMs + 1}`);
    expect(later.body).toMatchObject({ leases: [], nextCursor: null });
    const before = runsResponseSchema.parse((await get(`/v1/namespaces/main/runs?leasedToMs=${leasedAtMs + 1}`)).body);
    expect(before.leases).toHaveLength(4);
  });

  test("of a rare holder are found by following the cursor, in pages of bounded work", async () => {
    await lease({ ...leaseBody, holder: { ...holder, name: "rare" } });
    const commands = commandsFor((await store.readNamespace("main")).storeId);
    for (let count = 0; count < 12_000; count++) {
      await store.step("main", commands.lease({ holder, leaseNonce: leaseBody.nonce }));
    }
    const first = runsResponseSchema.parse((await get("/v1/namespaces/main/runs?holder=rare")).body);
    expect(first.leases).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    const second = runsResponseSchema.parse(
      (await get(`/v1/namespaces/main/runs?holder=rare&cursor=${first.nextCursor}`)).body,
    );
    expect(second).toMatchObject({ leases: [{ firstRun: 1 }], nextCursor: null });
  });

  test("that were never leased are not found, and a bad query says which part", async () => {
    const missing = await get("/v1/namespaces/main/runs/9");
    expect([missing.status, missing.body.code]).toEqual([404, "run_not_leased"]);
    const bad = await get("/v1/namespaces/main/runs?limit=0");
    expect([bad.status, bad.body.code, bad.body.message]).toEqual([
      400,
      "invalid_request",
      expect.stringContaining("limit"),
    ]);
  });
});

describe("inspect", () => {
  const inspect = async (text: string) =>
    inspectResponseSchema.parse((await get(`/v1/namespaces/main/call-numbers/${encodeURIComponent(text)}`)).body);
  const number = (run: number, sequence: number, version = 0) => encodeCallNumber({ version, run, sequence });

  beforeEach(async () => {
    await lease({ ...leaseBody, runCount: 2 });
  });

  test.each([
    ["2VznWE2", "wrong_length", null],
    ["2Vzn/E2i", "wrong_character", 4],
    ["zzzzzzzz", "beyond_greatest", null],
  ])("%j is malformed: %s", async (text, problem, position) => {
    expect(await inspect(text)).toMatchObject({ verdict: "malformed", callNumber: text, problem, position });
  });

  test("tells the five answers apart", async () => {
    expect(await inspect(number(1, 0, 1))).toMatchObject({ verdict: "other_version", version: 1 });
    expect(await inspect(number(3, 0))).toMatchObject({ verdict: "never_leased", reason: "above_mark" });
    expect(await inspect(number(0, 0))).toMatchObject({ verdict: "never_leased", reason: "below_first_run" });
    expect(await inspect(number(1, 5))).toMatchObject({
      verdict: "unreported",
      state: "unreported",
      lease: { holder },
    });
    await post("/v1/namespaces/main/runs/1/report", { nonce: leaseBody.nonce, lastSequence: 5, state: "open" });
    expect(await inspect(number(1, 5))).toMatchObject({ verdict: "reported", lastSequence: 5 });
    expect(await inspect(number(1, 6))).toMatchObject({ verdict: "unreported", state: "open" });
    await post("/v1/namespaces/main/runs/2/report", { nonce: leaseBody.nonce, lastSequence: null, state: "closed" });
    expect(await inspect(number(1, 16_383))).toMatchObject({ verdict: "reported", state: "exhausted" });
    expect(await inspect(number(2, 0))).toMatchObject({
      verdict: "unreported",
      state: "closed",
      explanation: expect.stringContaining("was not made"),
    });
  });
});

describe("status", () => {
  test("counts what is leased and left, and foretells the end", async () => {
    await coordinator.initNamespace("empty");
    const empty = statusResponseSchema.parse((await get("/v1/namespaces/empty/status")).body);
    expect(empty).toMatchObject({
      store: "memory",
      coordinator: "test",
      highWaterMark: 0,
      runsUsed: 0,
      lastLeaseAtMs: null,
    });
    expect(empty.rates.every(({ runs, exhaustedAtMs }) => runs === 0 && exhaustedAtMs === null)).toBe(true);
    await lease({ ...leaseBody, runCount: 64 });
    const used = statusResponseSchema.parse((await get("/v1/namespaces/main/status")).body);
    expect(used).toMatchObject({ highWaterMark: 64, runsUsed: 64, runsLeft: 2 ** 30 - 1 - 64 });
    expect(used.guard).toMatchObject({ state: "active", code: null, generation: 0, nodeCount: 1 });
    expect(used.callNumbersLeft).toBe((2 ** 30 - 65) * 16_384);
    // A minute is the shortest life that a rate is measured over: 64 runs a minute.
    expect(used.rates.map(({ runs }) => runs)).toEqual([64]);
    expect(used.rates[0]?.runsPerDay).toBeCloseTo(64 * 1440, 0);
    const years = ((used.rates[0]?.exhaustedAtMs ?? 0) - Date.now()) / (365 * 86_400_000);
    expect(years).toBeCloseTo((2 ** 30 - 65) / (64 * 1440 * 365), 1);
  });
});

describe("the surface", () => {
  test("health and readiness: ready only when a namespace can be served", async () => {
    expect((await get("/healthz")).body).toEqual({ healthy: true });
    expect((await get("/readyz")).body).toEqual({ ready: true, namespaces: ["main"], unavailable: [] });
    const empty = await createServer({
      coordinator: new Coordinator({ store: new MemoryStore(), name: "x" }),
      release: "0",
    });
    const address = await empty.listen({ host: "127.0.0.1", port: 0 });
    const response = await fetch(`${address}/readyz`);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([404, "namespace_not_found"]);
    await empty.stop();
    // A name may outlive its record; a record that can't be read is worse.
    store.listNamespaces = async () => ["gone", "main"];
    expect((await get("/readyz")).body).toEqual({ ready: true, namespaces: ["main"], unavailable: [] });
    store.readNamespace = async () => {
      throw new CoordinatorError("store_corrupt", "x");
    };
    expect((await get("/readyz")).body.code).toBe("store_corrupt");
  });

  test("is not ready while a namespace is stopped, and says why", async () => {
    const { storeId } = await store.readNamespace("main");
    await store.step("main", commandsFor(storeId).seal(FORKED_SEAL));
    expect((await lease()).body.code).toBe("store_forked");
    const { status, body } = await get("/readyz");
    expect([status, body.code, body.message]).toEqual([
      503,
      "store_forked",
      expect.stringContaining("callnumber recover"),
    ]);
    const { guard } = statusResponseSchema.parse((await get("/v1/namespaces/main/status")).body);
    expect(guard).toMatchObject({ state: "stopped", code: "store_forked" });
  });

  test("unknown paths and wrong methods are told apart, and the right method is named", async () => {
    const unknown = await get("/v1/namespaces/main/lease");
    expect([unknown.status, unknown.body.code]).toEqual([404, "not_found"]);
    for (const method of ["GET", "PUT", "DELETE"]) {
      const wrong = await call(method, "/v1/namespaces/main/leases");
      expect([wrong.status, wrong.body.code, wrong.headers.get("allow")]).toEqual([405, "method_not_allowed", "POST"]);
    }
    expect((await call("POST", "/v1/namespaces/main/status", {})).headers.get("allow")).toBe("GET");
    expect((await call("POST", "/readyz", {})).headers.get("allow")).toBe("GET, HEAD");
    expect(await mark()).toBe(0);
  });

  test("describes itself in OpenAPI 3.1, every route and every refusal", async () => {
    const { status, body } = await get("/openapi.json");
    expect(status).toBe(200);
    expect(body.openapi).toBe("3.1.0");
    expect(
      Object.entries(body.paths)
        .map(([path, operations]) => `${Object.keys(operations as object).join(",")} ${path}`)
        .sort(),
    ).toEqual([
      "get /healthz",
      "get /readyz",
      "get /v1/events",
      "get /v1/namespaces",
      "get /v1/namespaces/{namespace}/call-numbers/{callNumber}",
      "get /v1/namespaces/{namespace}/capacity",
      "get /v1/namespaces/{namespace}/export",
      "get /v1/namespaces/{namespace}/history",
      "get /v1/namespaces/{namespace}/runs",
      "get /v1/namespaces/{namespace}/runs/{run}",
      "get /v1/namespaces/{namespace}/status",
      "post /v1/namespaces/{namespace}/labels",
      "post /v1/namespaces/{namespace}/leases",
      "post /v1/namespaces/{namespace}/runs/{run}/report",
    ]);
    const leaseOperation = body.paths["/v1/namespaces/{namespace}/leases"].post;
    expect(Object.keys(leaseOperation.responses)).toEqual(expect.arrayContaining(["201", "4XX", "5XX"]));
    expect(leaseOperation.requestBody.content["application/json"].schema.additionalProperties).toBe(false);
  });

  test("a fault of our own answers internal_error and tells strangers nothing", async () => {
    store.listNamespaces = async () => {
      throw new Error("secret path /var/lib/x");
    };
    const { status, body } = await get("/readyz");
    expect([status, body.code]).toEqual([500, "internal_error"]);
    expect(JSON.stringify(body)).not.toContain("secret");
  });
});

describe("stopping", () => {
  test("finishes what is in flight, refuses the rest with shutting_down, and then closes", async () => {
    let open = () => {};
    store.gate = new Promise((resolve) => {
      open = resolve;
    });
    const agent = await keptConnection(base);
    const asked = new Promise<void>((resolve) => {
      store.onAsked = resolve;
    });
    const inFlight = lease();
    await asked;
    const stopped = server.stop();
    const refused = await agent.ask("/v1/namespaces/main/status");
    expect(refused.status).toBe(503);
    expect(refused.headers["retry-after"]).toBe("1");
    expect(JSON.parse(refused.text)).toMatchObject({ code: "shutting_down", retryAfterMs: 1000 });
    open();
    expect((await inFlight).status).toBe(201);
    await stopped;
    await expect(fetch(`${base}/healthz`)).rejects.toThrow();
    agent.close();
  });
});

/** One connection that is open before the server stops. */
async function keptConnection(address: string) {
  const { Agent } = await import("node:http");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (path: string) =>
    new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
      const request = httpRequest(address + path, { agent }, (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      });
      request.on("error", reject).end();
    });
  await ask("/healthz");
  return { ask, close: () => agent.destroy() };
}
