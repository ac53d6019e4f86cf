/** Connections over real sockets: how many there may be, what a stop waits for, and what pages of other sites may do. */
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { EventHub } from "../src/events/events.js";
import { Connections } from "../src/http/connections.js";
import { ProcessAlarms } from "../src/status/alarms.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { makeToken, newToken } from "../src/tokens/tokens-file.js";
import { gatedMethod } from "./gated-store.js";
import { keptLog } from "./leasing-crowd.js";
import { opened, type Place, sendBytes } from "./raw-client.js";
import { leaseRequest, served } from "./served.js";

const BODY = JSON.stringify(leaseRequest());
const JSON_BODY = { "content-type": "application/json", "content-length": String(BODY.length) };
const LEASE = `${head("POST", "/v1/namespaces/main/leases", JSON_BODY)}${BODY}`;
const HEALTH = head("GET", "/healthz");

function head(method: string, path: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ host: "localhost", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Open as long as the test. */
async function openedForTest(place: Place): Promise<Socket> {
  const socket = await opened(place);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Resolves to what came first. */
async function responseTo(socket: Socket, bytes: string): Promise<string> {
  if (!socket.readable) return "closed";
  const response = new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(String(data)));
    socket.once("end", () => resolve("closed")).once("close", () => resolve("closed"));
  });
  socket.write(bytes);
  return await response;
}

describe("the number of connections", () => {
  const importer = makeToken({ role: "lease", namespaces: ["main"] }, new Set(), 1);
  const AUTHORIZATION = { authorization: `Bearer ${importer.token}` };
  const TOKEN_LEASE = `${head("POST", "/v1/namespaces/main/leases", { ...JSON_BODY, ...AUTHORIZATION })}${BODY}`;
  const COUNT_MAX = 16;
  const GRANTED = /^HTTP\/1\.1 201/;

  async function servedWithTokens() {
    const { log, events: logged } = keptLog();
    const events = new EventHub(log);
    const alarms = new ProcessAlarms();
    events.subscribe(alarms.take);
    const authenticator = new TokenAuthenticator([importer.record]);
    const { place } = await served({ events, authenticator, maxConnections: COUNT_MAX });
    const full = () => logged.filter(({ event }) => event === "connections_full");
    return { place, full, alarms: () => alarms.all().map(({ name }) => name) };
  }

  /** Opens connections one after the other, sends the same on each, and leaves them open and idle. */
  async function idleAfter(bytes: string, count: number, place: Place): Promise<readonly Socket[]> {
    const sockets: Socket[] = [];
    for (let left = count; left > 0; left--) {
      const socket = await openedForTest(place);
      await responseTo(socket, bytes);
      sockets.push(socket);
    }
    return sockets;
  }

  const WRONG = head("GET", "/v1/namespaces", { authorization: `Bearer ${newToken()}` });

  test.each([
    ["public requests", HEALTH],
    ["requests that are rejected", WRONG],
  ])("a peer without a token that keeps all connections open by %s keeps no importer out", async (_, request) => {
    const { place, full, alarms } = await servedWithTokens();
    await idleAfter(request, 3 * COUNT_MAX, place);
    for (const localAddress of ["127.0.0.1", "127.0.0.2"]) {
      const socket = await openedForTest({ ...place, localAddress });
      expect(await responseTo(socket, TOKEN_LEASE), localAddress).toMatch(GRANTED);
    }
    const reason = expect.stringMatching(/^9 connections have shown no accepted token, 9 of them from 127\.0\.0\.1/);
    const fields = { remoteAddress: "127.0.0.1", connectionCount: 8, connectionCountMax: COUNT_MAX, reason };
    expect(full()).toEqual([{ event: "connections_full", fields }]);
    expect(alarms()).toEqual(["connections_full"]);
  });

  test("connections on which an importer was granted a lease stay open while a peer without a token opens others", async () => {
    const { place } = await servedWithTokens();
    const importers = await idleAfter(TOKEN_LEASE, COUNT_MAX - 4, place);
    await idleAfter(HEALTH, 2 * COUNT_MAX, place);
    for (const socket of importers) expect(await responseTo(socket, TOKEN_LEASE)).toMatch(GRANTED);
  });

  test("the peer with most connections loses its own, and others without a token none", async () => {
    const { place } = await servedWithTokens();
    const [console] = await idleAfter(HEALTH, 1, { ...place, localAddress: "127.0.0.2" });
    await idleAfter(HEALTH, 2 * COUNT_MAX, place);
    expect(await responseTo(console as Socket, HEALTH)).toMatch(/^HTTP\/1\.1 200/);
  });

  test("a connection beyond the limit is closed where all were granted access, is logged once, and one that closes makes room", async () => {
    const { place, full, alarms } = await servedWithTokens();
    const importers = await idleAfter(TOKEN_LEASE, COUNT_MAX, place);
    for (let tries = 0; tries < 2; tries++)
      expect(await sendBytes(place, [TOKEN_LEASE])).toMatchObject({ text: "", isClosed: true });
    for (const socket of importers) expect(await responseTo(socket, TOKEN_LEASE)).toMatch(GRANTED);
    expect(full()).toHaveLength(1);
    expect(full()[0]?.fields).toMatchObject({ reason: expect.stringContaining("--max-connections") });
    expect(alarms()).toEqual(["connections_full"]);
    importers[0]?.destroy();
    const last = head("GET", "/healthz", { connection: "close" });
    await expect.poll(async () => (await sendBytes(place, [last])).statuses).toEqual([200]);
  });

  test("closed connections are logged again when a minute has passed without any", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { log, events } = keptLog();
    const connections = new Connections({ countMax: 1, log });
    const drop = () => connections.noteDropped("192.0.2.1");
    drop();
    vi.advanceTimersByTime(59_000);
    drop();
    vi.advanceTimersByTime(59_000);
    expect(events.map(({ event }) => event)).toEqual(["connections_full"]);
    vi.advanceTimersByTime(1_000);
    expect(events.at(-1)).toEqual({ event: "connections_free", fields: { closedCount: 2 } });
    drop();
    expect(events.map(({ event }) => event)).toEqual(["connections_full", "connections_free", "connections_full"]);
    connections.end();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a connection is announced to be kept for 5 s, and for 72 s from the first request that needs a token and has it", async () => {
    const { place } = await servedWithTokens();
    const socket = await openedForTest(place);
    for (const request of [HEALTH, WRONG])
      expect(await responseTo(socket, request)).toMatch(/^keep-alive: timeout=5\r$/im);
    for (const request of [TOKEN_LEASE, HEALTH])
      expect(await responseTo(socket, request)).toMatch(/^keep-alive: timeout=72, max=\d+\r$/im);
  });

  test("without tokens a connection that leased is kept as long as one with a token", async () => {
    const { place } = await served();
    expect(await responseTo(await openedForTest(place), LEASE)).toMatch(/^keep-alive: timeout=72/im);
  });
});

test("a stop closes incomplete requests and idle connections, and waits for a lease in flight", async () => {
  const { store, place, server } = await served();
  const open = store.closeGate();
  const answered = sendBytes(place, [LEASE]);
  await expect.poll(() => store.leaseCount).toBe(1);
  const half = await openedForTest(place);
  half.write(LEASE.slice(0, -5));
  const silent = await openedForTest(place);
  await delay(50);
  const ends = [half, silent].map(
    (socket) => new Promise<void>((resolve) => socket.once("close", resolve).once("end", resolve).resume()),
  );
  const stopped = server.stop();
  await ends[0];
  open();
  expect((await answered).statuses).toEqual([201]);
  await Promise.all([stopped, ...ends]);
});

test("requests for readiness of the same moment cost the store one read", async () => {
  const { store, place } = await served();
  const reads = gatedMethod(store, "listNamespaces");
  const sockets = await Promise.all(Array.from({ length: 30 }, () => openedForTest(place)));
  const last = await openedForTest(place);
  for (const socket of [...sockets, last]) await responseTo(socket, HEALTH);
  const readiness = (socket: Socket) => responseTo(socket, head("GET", "/readyz"));
  const responses = sockets.map(readiness);
  // The server reads in order: when this is answered, it has read all of them.
  await responseTo(last, HEALTH);
  reads.open();
  for (const response of responses) expect(await response).toMatch(/^HTTP\/1\.1 200/);
  expect(reads.count).toBe(1);
  expect(await readiness(last)).toMatch(/^HTTP\/1\.1 200/);
  expect(reads.count).toBe(2);
});

describe("a page", () => {
  const LINK = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
  const statusOf = async (place: Place, path: string, headers: Readonly<Record<string, string>>) =>
    (await sendBytes(place, [head("GET", path, { ...headers, connection: "close" })])).statuses[0];

  test.each<[status: number, path: string, headers: Readonly<Record<string, string>>]>([
    [200, "/console/", LINK],
    [302, "/console", LINK],
    [302, "/", LINK],
    [403, "/", { ...LINK, "sec-fetch-dest": "iframe" }],
    [403, "/console/", { ...LINK, "sec-fetch-dest": "iframe" }],
    [403, "/v1/namespaces", LINK],
    [403, "/v1/namespaces", { "sec-fetch-site": "same-site" }],
    [200, "/v1/namespaces", { "sec-fetch-site": "same-origin" }],
    [403, "/v1/namespaces", { origin: "http://elsewhere.example" }],
  ])("a page gets %i at %s with %j", async (status, path, headers) => {
    const { place } = await served();
    expect(await statusOf(place, path, headers)).toBe(status);
  });

  test.each(["/", "/console"])("a browser at %s is led to the console, also behind a path prefix", async (path) => {
    const { url } = await served();
    const response = await fetch(url + path, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "./console/"]);
    const page = await fetch(url + path);
    expect([page.status, page.url]).toEqual([200, `${url}/console/`]);
    expect(await page.text()).toContain("<title>Callnumber");
  });

  test("a page of another site can't lease", async () => {
    const { place, mark } = await served();
    const headers = { ...JSON_BODY, origin: "null", connection: "close" };
    const lease = head("POST", "/v1/namespaces/main/leases", headers) + BODY;
    expect((await sendBytes(place, [lease])).statuses).toEqual([403]);
    expect(await mark()).toBe(0);
  });

  test("a page of the console loads its scripts and styles, for which browsers send Origin", async () => {
    const { place, url, get } = await served();
    const files = [...(await get("/console/")).text.matchAll(/"\.\/(assets\/[^"]+)"/g)].map(([, file]) => file);
    expect(files.length).toBeGreaterThan(0);
    for (const path of files.map((file) => `/console/${file}`)) {
      expect(await statusOf(place, path, { origin: url, "sec-fetch-site": "same-origin" })).toBe(200);
      expect(await statusOf(place, path, { origin: url })).toBe(200);
      expect(await statusOf(place, path, { origin: url, "sec-fetch-site": "cross-site" })).toBe(403);
      // Their names change with their content.
      expect((await get(path)).headers.get("cache-control")).toMatch(/immutable/);
    }
  });

  test("a page of the console allows no frame, no form and no script but its own", async () => {
    const { get } = await served();
    const { headers } = await get("/console/", { "sec-fetch-site": "none" });
    const policy = String(headers.get("content-security-policy")).split(/; ?/);
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "script-src 'self'",
      ]),
    );
    expect(policy.join()).not.toMatch(/unsafe|data:|https?:|\*/);
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(headers.get("strict-transport-security")).toBeNull();
  });
});

/** Of CORS, of a redirect, and what a client would keep. */
const UNSENT = /^access-control|^location$|^set-cookie$/;

test.each([
  ["GET", "/healthz"],
  ["GET", "/readyz"],
  ["GET", "/openapi.json"],
  ["GET", "/metrics"],
  ["GET", "/v1/namespaces"],
  ["GET", "/v1/namespaces/main/runs"],
  ["GET", "/v1/namespaces/main/export"],
  ["GET", "/v1/events"],
  ["GET", "/nowhere"],
  ["GET", "/v1//"],
  ["GET", "/console", "location"],
  ["GET", "/", "location"],
  ["GET", "/console/"],
  ["GET", "/console/favicon.svg"],
  ["OPTIONS", "/v1/namespaces/main/leases"],
])(
  "%s %s may be loaded by pages of its own site alone, as its own type, and is not cached",
  async (method, path, ...sent) => {
    const { url } = await served();
    const { headers, body } = await fetch(url + path, { method, redirect: "manual" });
    await body?.cancel();
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(headers.get("cache-control")).toBe("no-store");
    expect([...headers.keys()].filter((name) => UNSENT.test(name))).toEqual(sent);
  },
);
