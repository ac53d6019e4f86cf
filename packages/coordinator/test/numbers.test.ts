/**
 * Requests for call numbers over real sockets: what they return, that no number comes twice, what they cost in runs, and which limits hold.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { COORDINATOR_HOLDER_NAME, NUMBER_COUNT_MAX, ROUTES } from "@callnumber/protocol/api";
import { decodeCallNumber, isCallNumber } from "@callnumber/protocol/codec";
import { inspectResponseSchema, numbersResponseSchema } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import { EventHub } from "../src/events/events.js";
import { LeaseLimits } from "../src/limits/lease-limits.js";
import { SILENT_LOG } from "../src/log.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { makeToken } from "../src/tokens/tokens-file.js";
import { opened } from "./raw-client.js";
import { type ServedOptions, served as servedBy } from "./served.js";

const PATH = ROUTES.numbers.replace(":namespace", "main");
const TEXT = { accept: "text/plain" };

async function served(options: ServedOptions = {}) {
  const events = new EventHub(SILENT_LOG);
  const logged: Record<string, unknown>[] = [];
  events.subscribe(({ event, fields }) => void logged.push({ event, ...fields }));
  const one = await servedBy({ events, ...options });
  const numbers = (query = "", body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    one.call("POST", PATH + query, body, headers);
  const made = async (query?: string) => (await numbers(query)).body.callNumbers as string[];
  const leases = async (namespace = "main") => (await one.coordinator.runs(namespace, { limit: 50 })).leases;
  return { ...one, numbers, made, leases, logged: (event: string) => logged.filter((line) => line["event"] === event) };
}

describe("the response", () => {
  test("a request without a body returns one number, with its namespace and store", async () => {
    const { numbers, store } = await served();
    const { status, body, headers } = await numbers();
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    const { storeId } = await store.readNamespace("main");
    expect(numbersResponseSchema.parse(body)).toMatchObject({ namespace: "main", storeId });
    expect(body.callNumbers).toHaveLength(1);
    expect(decodeCallNumber(body.callNumbers[0])).toEqual({ version: 0, run: 1, sequence: 0 });
  });

  const textFirst = ["text/plain, application/json", "application/json;q=0.5, TEXT/PLAIN;q=.6", "text/plain, */*"];
  test.each(["text/plain", "text/plain; charset=utf-8", "text/html, text/plain;q=0.9", ...textFirst])(
    "a request that accepts %s gets one number a line",
    async (accept) => {
      const { numbers } = await served();
      const { text, headers } = await numbers("?count=3", undefined, { accept });
      expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
      const lines = text.split("\n");
      expect(lines.pop()).toBe("");
      expect(lines.map(isCallNumber)).toEqual([true, true, true]);
    },
  );

  const jsonFirst = [
    "application/json, text/plain, */*",
    "text/plain;q=0.5, application/json",
    "text/plain;q=0.5, */*",
  ];
  const noText = ["text/plain;q=0", "text/plain; q=0.0, text/html"];
  test.each(["*/*", "application/json", "text/html", "x-text/plain", ...jsonFirst, ...noText])(
    "a request that accepts %s gets JSON",
    async (accept) => {
      const { numbers } = await served();
      expect((await numbers("", undefined, { accept })).body.callNumbers).toHaveLength(1);
    },
  );

  test("an error is JSON for a request that accepts text only", async () => {
    const { numbers } = await served();
    expect((await numbers("?count=0", undefined, TEXT)).body).toMatchObject({ code: "invalid_request" });
  });

  const otherForms = ["0x10", "0b1", "1e4", "1.0", "1%20", "%2B1"];
  test.each(["0", "10001", "-1", "1.5", "x", "", "1&count=2", "1&more=1", "1?count=2", ...otherForms])(
    "a count of %j is rejected, and leases nothing",
    async (count) => {
      const { numbers, store } = await served();
      expect((await numbers(`?count=${count}`)).body.code).toBe("invalid_request");
      expect(store.leaseCount).toBe(0);
    },
  );

  test.each([
    ["%", '"%"'],
    ["1e4", '"1e4"'],
    ["10001", "10001"],
    ["99999999999999999999", '"99999999999999999999"'],
    ["1&count=2", "an array"],
  ])("the error of a count of %s says what was given, and what may be", async (count, given) => {
    const { numbers } = await served();
    const message = `query: count must be a whole number from 1 to 10000, not ${given}`;
    expect((await numbers(`?count=${count}`)).body.message).toBe(message);
  });

  test("the greatest count is 10,000", async () => {
    const { made } = await served();
    const callNumbers = await made(`?count=${NUMBER_COUNT_MAX}`);
    expect([NUMBER_COUNT_MAX, new Set(callNumbers).size]).toEqual([10_000, 10_000]);
  });

  test.each<[string, string, Readonly<Record<string, string>>]>([
    ["an empty one of a form", "", { "content-type": "application/x-www-form-urlencoded" }],
    ["an empty one of JSON", "", {}],
    ["an empty object", "{}", {}],
    ["a holder alone", '{"holder":{"name":"procmail"}}', {}],
  ])("a body is accepted: %s", async (_, body, headers) => {
    const { numbers } = await served();
    expect((await numbers("", body, headers)).status).toBe(200);
  });

  test.each<[string, string, Readonly<Record<string, string>>, string]>([
    ["a form", "a=b", { "content-type": "application/x-www-form-urlencoded" }, "unsupported_media_type"],
    ["no JSON", "{", {}, "invalid_request"],
    ["a list", "[]", {}, "invalid_request"],
    ["an unknown key", '{"count":3}', {}, "invalid_request"],
    ["a holder without a name", '{"holder":{"host":"mx-1"}}', {}, "invalid_request"],
    ["a store id with a space", '{"expectedStoreId":"a b"}', {}, "invalid_request"],
    ["4,097 bytes", `{"holder":"${"x".repeat(4_084)}"}`, {}, "body_too_large"],
  ])("a body is rejected: %s", async (_, body, headers, code) => {
    const { numbers, store } = await served();
    expect((await numbers("", body, headers)).body.code).toBe(code);
    expect(store.leaseCount).toBe(0);
  });

  test("a path that is escaped gets numbers all the same", async () => {
    const { call } = await served();
    const { body } = await call("POST", "/v1/namespaces/m%61in/numbers?count=2");
    expect(body.callNumbers).toHaveLength(2);
  });

  test("a namespace that does not exist is rejected, and one that is made later is not", async () => {
    const { numbers, call, coordinator } = await served();
    const ask = () => call("POST", "/v1/namespaces/later/numbers");
    for (let count = 0; count < 3; count++) expect((await ask()).body.code).toBe("namespace_not_found");
    await coordinator.initNamespace("later");
    expect([(await ask()).status, (await numbers()).status]).toEqual([200, 200]);
  });
});

describe("the store", () => {
  test("numbers of another store than the expected one are refused before one is used", async () => {
    const { numbers, store, leases } = await served();
    const { storeId } = await store.readNamespace("main");
    const refused = await numbers("", { expectedStoreId: `${storeId}x` });
    expect([refused.status, refused.body.code]).toEqual([409, "store_mismatch"]);
    const { callNumbers } = (await numbers("", { expectedStoreId: storeId })).body;
    expect(decodeCallNumber(callNumbers[0]).sequence).toBe(0);
    expect(await leases()).toHaveLength(1);
  });
});

describe("what it costs", () => {
  test("all requests share a run, which the ledger has under the coordinator's name, and a stop reports and closes it", async () => {
    const { made, leases, server } = await served();
    for (let count = 0; count < 20; count++) await made("?count=2");
    expect(await leases()).toMatchObject([{ runCount: 1, holder: { name: COORDINATOR_HOLDER_NAME }, progress: null }]);
    await server.stop();
    expect(await leases()).toMatchObject([{ progress: { run: 1, lastSequence: 39, state: "closed" } }]);
  });

  test("nothing is leased before the first request, and a stop without one leases nothing", async () => {
    const { server, store } = await served();
    await server.stop();
    expect(store.leaseCount).toBe(0);
  });

  test("concurrent requests get distinct numbers, and at most one spare run is leased", async () => {
    const { made, leases } = await served({ maxConcurrentLeases: 64 });
    const sizes = Array.from({ length: 60 }, (_, index) => 1 + ((index * 997) % 4_000));
    const all = (await Promise.all(sizes.map((size) => made(`?count=${size}`)))).flat();
    const sum = sizes.reduce((total, size) => total + size, 0);
    expect([all.length, new Set(all).size]).toEqual([sum, sum]);
    // Leased in the background after the last request.
    await expect.poll(async () => (await leases()).length).toBeLessThanOrEqual(Math.ceil(sum / 16_384) + 1);
  });

  test("the next run is leased when 4,096 numbers are left, and no further one", async () => {
    const { made, store } = await served();
    await made("?count=10000");
    await made("?count=2288");
    expect(store.leaseCount).toBe(1);
    await made();
    await expect.poll(() => store.leaseCount).toBe(2);
    await made("?count=4000");
    expect(store.leaseCount).toBe(2);
  });

  test("namespaces have runs and numbers of their own", async () => {
    const { call, leases } = await served({ namespaces: ["main", "lists"] });
    const of = async (namespace: string) => (await call("POST", `/v1/namespaces/${namespace}/numbers`)).body;
    const bodies = await Promise.all(["main", "lists", "main", "lists"].map(of));
    expect(bodies.map(({ namespace }) => namespace)).toEqual(["main", "lists", "main", "lists"]);
    expect(new Set(bodies.map(({ namespace, callNumbers }) => `${namespace} ${callNumbers[0]}`)).size).toBe(4);
    for (const namespace of ["main", "lists"]) expect(await leases(namespace)).toHaveLength(1);
  });
});

describe("a client that fails", () => {
  test("a client that leaves while a run is leased uses no number, and the next request gets them", async () => {
    const { place, made, store, leases, get } = await served();
    const open = store.closeGate();
    const socket = await opened(place);
    socket.write(`POST ${PATH}?count=5000 HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    await expect.poll(() => store.leaseCount).toBe(1);
    socket.destroy();
    // The server has seen it when it has answered later requests.
    for (let count = 0; count < 2; count++) await get("/healthz");
    const next = made();
    open();
    expect(decodeCallNumber((await next)[0] as string)).toEqual({ version: 0, run: 1, sequence: 0 });
    expect(await leases()).toHaveLength(1);
  });

  test("a request that is sent again gets other numbers", async () => {
    const { made } = await served();
    const [first, second] = [await made("?count=3"), await made("?count=3")];
    expect(new Set([...first, ...second]).size).toBe(6);
  });
});

describe("a stop", () => {
  test("a stop finishes the requests in flight, rejects later ones, and then reports how far the run was used", async () => {
    const { made, numbers, store, server, leases } = await served();
    const open = store.closeGate();
    const inFlight = [made("?count=2"), made("?count=3")];
    await expect.poll(() => store.leaseCount).toBe(1);
    const stopped = server.stop();
    const late = numbers().catch(() => undefined);
    open();
    const all = (await Promise.all(inFlight)).flat();
    expect(new Set(all).size).toBe(5);
    await stopped;
    // A new connection may be closed instead.
    expect([undefined, "shutting_down"]).toContain((await late)?.body.code);
    expect(await leases()).toMatchObject([{ progress: { run: 1, lastSequence: 4, state: "closed" } }]);
  });
});

describe("limits", () => {
  test("a token pays for the share of a run that its numbers are, and is rejected before the store is asked", async () => {
    const clock = { nowMs: 1_000 };
    const limits = new LeaseLimits({ token: { atOnce: 1, perSecond: 1 }, now: () => clock.nowMs });
    const { numbers, made, store } = await served({ limits });
    expect(await made("?count=10000")).toHaveLength(10_000);
    const { status, body, headers } = await numbers("?count=6385");
    expect([status, body.code, headers.get("retry-after")]).toEqual([429, "rate_limited", "1"]);
    expect(await made("?count=6384")).toHaveLength(6_384);
    expect((await numbers()).body).toMatchObject({ code: "rate_limited", retryAfterMs: 1 });
    clock.nowMs += 1_000;
    expect(await made("?count=10000")).toHaveLength(10_000);
    expect(store.leaseCount).toBe(2);
  });

  test("a request that fails pays nothing", async () => {
    const limits = new LeaseLimits({ token: { atOnce: 1, perSecond: 1 }, now: () => 0 });
    const { call, made } = await served({ limits });
    for (let count = 0; count < 20; count++) {
      const { body } = await call("POST", "/v1/namespaces/none/numbers?count=10000");
      expect(body.code).toBe("namespace_not_found");
    }
    expect(await made("?count=10000")).toHaveLength(10_000);
  });

  test("a program that starts for each number is no crash loop", async () => {
    const limits = new LeaseLimits({ holder: { atOnce: 128, perSecond: 8 } });
    const { numbers } = await served({ limits });
    for (let count = 0; count < 150; count++) {
      expect((await numbers("", { holder: { name: "procmail", host: "mx-1" } })).status).toBe(200);
    }
    expect(limits.startLoops("main")).toEqual([]);
  });

  test("requests that wait for a run take no slot of a lease, and further ones are rejected", async () => {
    const { numbers, lease, store, get } = await served({ maxConcurrentLeases: 2 });
    const open = store.closeGate();
    const waiting = Array.from({ length: 2 }, () => numbers());
    await expect.poll(() => store.leaseCount).toBe(1);
    expect((await numbers()).body.code).toBe("overloaded");
    const leasing = lease();
    // The server has taken or refused it when it has answered later requests.
    for (let count = 0; count < 2; count++) await get("/healthz");
    open();
    expect((await leasing).status).toBe(201);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test("only the role lease gets numbers, in its namespaces", async () => {
    const [importer, reader] = (["lease", "read"] as const).map((role) =>
      makeToken({ role, namespaces: ["main"] }, new Set(), 1),
    ) as [ReturnType<typeof makeToken>, ReturnType<typeof makeToken>];
    const authenticator = new TokenAuthenticator([importer.record, reader.record]);
    const { call, numbers } = await served({ namespaces: ["main", "other"], authenticator });
    const bearer = ({ token }: { readonly token: string }) => ({ authorization: `Bearer ${token}` });
    expect((await numbers()).body.code).toBe("unauthorized");
    expect((await numbers("", undefined, bearer(reader))).body.code).toBe("forbidden");
    expect((await call("POST", "/v1/namespaces/other/numbers", undefined, bearer(importer))).body.code).toBe(
      "forbidden",
    );
    expect((await numbers("", undefined, bearer(importer))).status).toBe(200);
  });
});

describe("who it was", () => {
  const holder = { name: "procmail", host: "mx-1" };
  const inspect = async ({ get }: Pick<Awaited<ReturnType<typeof served>>, "get">, callNumber: string) =>
    inspectResponseSchema.parse((await get(`/v1/namespaces/main/call-numbers/${callNumber}`)).body);

  test("inspect names the request that a number was made for", async () => {
    const one = await served();
    await one.made();
    const [callNumber] = (await one.numbers("?count=2", { holder })).body.callNumbers;
    expect(await inspect(one, callNumber)).toMatchObject({
      verdict: "unreported",
      request: { holder, remoteAddress: "127.0.0.1", atMs: expect.any(Number) },
      explanation: expect.stringMatching(
        /^run 1 was leased to callnumber-coordinator at \S+; made for procmail \(mx-1\) from 127\.0\.0\.1, at 2\S+: whether it was stored is not known$/,
      ),
      lease: { holder: { name: COORDINATOR_HOLDER_NAME }, coordinator: "test" },
    });
  });

  test("inspect says where to look for the request of a number that an earlier process made", async () => {
    const before = await served();
    const [callNumber = ""] = await before.made();
    const after = await served({ namespaces: [], own: { store: before.store } });
    const inspected = await inspect(after, callNumber);
    expect(inspected).not.toHaveProperty("request");
    expect(inspected.explanation).toMatch(/if it was made, the event `numbers` in the coordinator.s log/);
  });

  test("a number of an importer has no request", async () => {
    const one = await served();
    await one.lease();
    const inspected = await inspect(one, "009NKUO8");
    expect(inspected).not.toHaveProperty("request");
    expect(inspected.explanation).not.toMatch(/request/);
  });

  test("log and metrics have each request, with its ranges and its holder", async () => {
    const { numbers, made, logged, get } = await served();
    await made("?count=10000");
    await numbers("?count=7000", { holder });
    expect(logged("numbers")[1]).toMatchObject({
      namespace: "main",
      count: 7_000,
      ranges: [
        { version: 0, run: 1, firstSequence: 10_000, lastSequence: 16_383 },
        { version: 0, run: 2, firstSequence: 0, lastSequence: 615 },
      ],
      holder,
      remoteAddress: "127.0.0.1",
      durationMs: expect.any(Number),
    });
    const { text } = await get("/metrics");
    expect(text).toContain('callnumber_number_requests_total{namespace="main"} 2');
    expect(text).toContain('callnumber_numbers_made_total{namespace="main"} 17000');
    expect(text).toContain('callnumber_numbers_duration_seconds_count{namespace="main"} 2');
  });
});
