/** Connections over real sockets: how many there may be, what a stop waits for, and what pages of other sites may do. */
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { gatedMethod } from "./gated-store.js";
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
  const response = new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(String(data)));
    socket.once("close", () => resolve("closed"));
  });
  socket.write(bytes);
  return await response;
}

test("a connection beyond the limit is closed, an open one is answered, and a closed one makes room", async () => {
  const { place } = await served({ maxConnections: 3 });
  const sockets: Socket[] = [];
  for (let count = 0; count < 3; count++) {
    const socket = await openedForTest(place);
    expect(await responseTo(socket, HEALTH)).toMatch(/^HTTP\/1\.1 200/);
    sockets.push(socket);
  }
  expect(await sendBytes(place, [HEALTH])).toMatchObject({ text: "", isClosed: true });
  for (const socket of sockets) expect(await responseTo(socket, HEALTH)).toMatch(/^HTTP\/1\.1 200/);
  sockets[0]?.destroy();
  const last = head("GET", "/healthz", { connection: "close" });
  await expect.poll(async () => (await sendBytes(place, [last])).statuses).toEqual([200]);
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
    [200, "/console", LINK],
    [403, "/console/", { ...LINK, "sec-fetch-dest": "iframe" }],
    [403, "/v1/namespaces", LINK],
    [403, "/v1/namespaces", { "sec-fetch-site": "same-site" }],
    [200, "/v1/namespaces", { "sec-fetch-site": "same-origin" }],
    [403, "/v1/namespaces", { origin: "http://elsewhere.example" }],
  ])("a page gets %i at %s with %j", async (status, path, headers) => {
    const { place } = await served();
    expect(await statusOf(place, path, headers)).toBe(status);
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
  ["GET", "/console"],
  ["GET", "/console/"],
  ["GET", "/console/favicon.svg"],
  ["OPTIONS", "/v1/namespaces/main/leases"],
])("%s %s may be loaded by pages of its own site alone, as its own type, and is not cached", async (method, path) => {
  const { url } = await served();
  const { headers, body } = await fetch(url + path, { method, redirect: "manual" });
  await body?.cancel();
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(headers.get("cache-control")).toBe("no-store");
  expect([...headers.keys()].filter((name) => UNSENT.test(name))).toEqual([]);
});
