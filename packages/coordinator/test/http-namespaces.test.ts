/** What operators ask over HTTP about all namespaces, and what strangers may ask about one number. */
import { randomUUID } from "node:crypto";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { namespaceDescriptionSchema, namespacesResponseSchema } from "@callnumber/protocol/operator-schemas";
import { inspectResponseSchema } from "@callnumber/protocol/schemas";
import { afterEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { createServer, type Server } from "../src/http/server.js";
import { PUBLIC_READS_AT_ONCE } from "../src/limits/concurrency-limits.js";
import { MemoryStore } from "../src/stores/memory.js";
import { closedGate } from "./gated-store.js";

let server: Server | undefined;
afterEach(async () => server?.stop());

async function serving(options: { readonly publicInspect?: boolean } = {}) {
  const store = new MemoryStore();
  const coordinator = new Coordinator({ store, name: "c-1" });
  await coordinator.initNamespace("main", { firstRun: 90, rate: 4 });
  server = await createServer({ coordinator, release: "1.2.3", ...options });
  const base = await server.listen({ host: "127.0.0.1", port: 0 });
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(base + path, init);
    return { status: response.status, body: JSON.parse(await response.text()) };
  };
  const put = (path: string, body: unknown) =>
    call(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return { store, coordinator, call, put };
}

function leaseRequest(runCount: number) {
  const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
  return { runCount, nonce: randomUUID(), holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
}

describe("the list of namespaces", () => {
  const listed = async (call: (path: string) => Promise<{ body: unknown }>) =>
    namespacesResponseSchema.parse((await call("/v1/namespaces")).body);

  test("tells of each one, by name, what is left, how fast its line rises, and whether it leases", async () => {
    const { coordinator, call } = await serving();
    await coordinator.initNamespace("lists");
    await coordinator.lease("main", leaseRequest(5));
    const { namespaces, ...about } = await listed(call);
    expect(about).toEqual({ store: "memory", coordinator: "c-1", release: "1.2.3" });
    expect(namespaces).toMatchObject([
      {
        namespace: "lists",
        labels: {},
        record: { firstRun: 1, highWaterMark: 0, runsUsed: 0, ceilingRunsPerSecond: 2 },
      },
      {
        namespace: "main",
        record: {
          version: 0,
          firstRun: 90,
          highWaterMark: 94,
          runsUsed: 5,
          runsLeft: 2 ** 30 - 95,
          ceilingRunsPerSecond: 4,
        },
        guard: { state: "active", code: null },
      },
    ]);
  });

  test("holds one whose record can't be read, with the guard's words, and the others beside it", async () => {
    const { store, coordinator, call } = await serving();
    await coordinator.initNamespace("lists");
    await listed(call);
    const read = store.readNamespace.bind(store);
    store.readNamespace = async (namespace) => {
      if (namespace === "main") throw new CoordinatorError("store_corrupt", "the checksum of the record is wrong");
      return read(namespace);
    };
    expect((await listed(call)).namespaces).toMatchObject([
      { namespace: "lists", record: { firstRun: 1 }, guard: { state: "active" } },
      {
        namespace: "main",
        record: null,
        guard: { state: "stopped", code: "store_corrupt", explanation: expect.stringContaining("checksum") },
      },
    ]);
  });

  test("is refused as a whole only when the store does not answer", async () => {
    const { store, call } = await serving();
    store.listNamespaces = async () => {
      throw new CoordinatorError("store_unavailable", "gone");
    };
    expect(await call("/v1/namespaces")).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
  });
});

describe("labels", () => {
  test("are given over HTTP, instead of those before, and told in the list", async () => {
    const { call, put } = await serving();
    const given = await put("/v1/namespaces/main/labels", { labels: { archive: "lists", team: "mail" } });
    expect(given.status).toBe(200);
    expect(namespaceDescriptionSchema.parse(given.body)).toMatchObject({
      namespace: "main",
      labels: { archive: "lists", team: "mail" },
    });
    await put("/v1/namespaces/main/labels", { labels: { archive: "others" } });
    expect((await call("/v1/namespaces")).body.namespaces).toMatchObject([{ labels: { archive: "others" } }]);
  });

  test.each([
    [{ labels: { A: "x" } }],
    [{ labels: { a: "" } }],
    [{ labels: { a: "\u202e" } }],
    [{ labels: { a: "x".repeat(65) } }],
    [{ labels: Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`l${index}`, "x"])) }],
    [{ labels: { a: "x" }, rate: 3 }],
    [{}],
  ])("%j is refused, and nothing is changed", async (body) => {
    const { store, put } = await serving();
    expect(await put("/v1/namespaces/main/labels", body)).toMatchObject({
      status: 400,
      body: { code: "invalid_request" },
    });
    expect((await store.readSettings("main")).labels).toEqual({});
  });

  test("are for namespaces that were made", async () => {
    const { put } = await serving();
    expect(await put("/v1/namespaces/other/labels", { labels: {} })).toMatchObject({
      status: 404,
      body: { code: "namespace_not_found" },
    });
  });
});

test("neighbors are left out of an inspection when they are not asked for, and anything else there is misuse", async () => {
  const { coordinator, call } = await serving();
  await coordinator.lease("main", leaseRequest(1));
  const path = `/v1/namespaces/main/call-numbers/${encodeCallNumber({ version: 0, run: 90, sequence: 0 })}`;
  expect(inspectResponseSchema.parse((await call(`${path}?neighbors=yes`)).body)).toMatchObject({
    neighbors: { previous: null, next: null },
  });
  expect(inspectResponseSchema.parse((await call(path)).body)).toMatchObject({ neighbors: null });
  expect((await call(`${path}?neighbors=maybe`)).status).toBe(400);
});

describe("what strangers may ask", () => {
  const pathOf = (text: string, namespace = "main") =>
    `/v1/public/namespaces/${namespace}/call-numbers/${encodeURIComponent(text)}`;
  const number = (run: number) => encodeCallNumber({ version: 0, run, sequence: 3 });

  test("is nothing, unless it is switched on: the path is as unknown as any other", async () => {
    const { call } = await serving();
    expect(await call(pathOf(number(90)))).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(JSON.stringify((await call("/openapi.json")).body)).not.toContain("public");
  });

  test("is whether a message can have a number, and nothing else: one status and one shape for all", async () => {
    const { coordinator, call } = await serving({ publicInspect: true });
    const { nonce } = await coordinator.lease("main", leaseRequest(2));
    await coordinator.report("main", 91, { nonce, lastSequence: 2, state: "closed" });
    const answers = Object.entries({
      [number(90)]: true,
      [number(91)]: false,
      [number(92)]: false,
      "2VznWE2": false,
      "'2VznWE2i'": false,
      zzzzzzzz: false,
    });
    for (const [callNumber, canExist] of answers) {
      expect(await call(pathOf(callNumber))).toEqual({ status: 200, body: { callNumber, canExist } });
    }
  });

  test("about a namespace that is not there is not found, in words that tell no command", async () => {
    const { call } = await serving({ publicInspect: true });
    const { status, body } = await call(pathOf(number(90), "other"));
    expect([status, body.code]).toEqual([404, "not_found"]);
    expect(body.message).not.toContain("callnumber");
  });

  test("is answered without reasons when the store can't be asked", async () => {
    const { store, call } = await serving({ publicInspect: true });
    store.readNamespace = async () => {
      throw new CoordinatorError("store_corrupt", "secret: redis.internal:6379");
    };
    const { status, body } = await call(pathOf(number(90)));
    expect([status, body.code]).toEqual([503, "store_unavailable"]);
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  test("may be asked so often at a time: each question asks the store", async () => {
    const { store, call } = await serving({ publicInspect: true });
    await call(pathOf(number(90)));
    const read = store.readNamespace.bind(store);
    const { opened, open } = closedGate();
    let askedCount = 0;
    store.readNamespace = async (namespace) => {
      askedCount++;
      await opened;
      return await read(namespace);
    };
    const answers = Array.from({ length: PUBLIC_READS_AT_ONCE }, () => call(pathOf(number(90))));
    await expect.poll(() => askedCount).toBe(PUBLIC_READS_AT_ONCE);
    expect(await call(pathOf(number(90)))).toMatchObject({ status: 503, body: { code: "overloaded" } });
    expect((await call("/healthz")).status).toBe(200);
    open();
    for (const answer of answers) expect((await answer).status).toBe(200);
  });
});
