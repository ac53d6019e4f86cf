/** Connections over real sockets: how many there may be, what a stop waits for, and what pages of other sites may do. */
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { createServer, type ServerOptions } from "../src/http/server.js";
import { holder } from "./commands-for-test.js";
import { GatedStore, gatedLooks, opensGate } from "./gated-store.js";
import { opened, type Place, sendBytes } from "./raw-client.js";

async function served(options: Partial<ServerOptions> = {}) {
  const store = new GatedStore();
  const coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace("main");
  const server = await createServer({ coordinator, release: "0.0.0", ...options });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await server.stop();
    isStopped = true;
  };
  onTestFinished(stop);
  return { store, url, stop, place: { host: "127.0.0.1", port: Number(new URL(url).port) } };
}

const BODY = JSON.stringify({
  runCount: 1,
  nonce: "nonce-0123456789",
  holder,
  lastRun: null,
  receipt: null,
  sentAtMs: 0,
});
const JSON_BODY = { "content-type": "application/json", "content-length": String(BODY.length) };
const LEASE = `${head("POST", "/v1/namespaces/main/leases", JSON_BODY)}${BODY}`;

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
async function answerTo(socket: Socket, bytes: string): Promise<string> {
  const answer = new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(String(data)));
    socket.once("close", () => resolve("closed"));
  });
  socket.write(bytes);
  return await answer;
}

test("a connection beyond the limit is closed, one that is open is answered, and one that has closed makes room", async () => {
  const { place } = await served({ maxConnections: 3 });
  const sockets: Socket[] = [];
  for (let count = 0; count < 3; count++) {
    const socket = await openedForTest(place);
    expect(await answerTo(socket, head("GET", "/healthz"))).toMatch(/^HTTP\/1\.1 200/);
    sockets.push(socket);
  }
  expect(await sendBytes(place, [head("GET", "/healthz")])).toMatchObject({ text: "", isClosed: true });
  for (const socket of sockets) expect(await answerTo(socket, head("GET", "/healthz"))).toMatch(/^HTTP\/1\.1 200/);
  sockets[0]?.destroy();
  await expect
    .poll(async () => (await sendBytes(place, [head("GET", "/healthz", { connection: "close" })])).statuses)
    .toEqual([200]);
});

test("a stop closes a request that has not arrived whole and a connection without one, and waits for a lease in flight", async () => {
  const { store, place, stop } = await served();
  const open = opensGate(store);
  const answered = sendBytes(place, [LEASE]);
  await expect.poll(() => store.askedCount).toBe(1);
  const half = await openedForTest(place);
  half.write(LEASE.slice(0, -5));
  const silent = await openedForTest(place);
  await pause(50);
  const isOver = (socket: Socket) =>
    new Promise<void>((resolve) => socket.once("close", resolve).once("end", resolve).resume());
  const ends = [half, silent].map(isOver);
  const stopped = stop();
  await ends[0];
  open();
  expect((await answered).statuses).toEqual([201]);
  await Promise.all([stopped, ...ends]);
});

test("clients that ask for readiness together cost the store one look", async () => {
  const { store, place } = await served();
  const looks = gatedLooks(store);
  const sockets = await Promise.all(Array.from({ length: 30 }, () => openedForTest(place)));
  const last = await openedForTest(place);
  for (const socket of [...sockets, last]) await answerTo(socket, head("GET", "/healthz"));
  const isReady = (socket: Socket) => answerTo(socket, head("GET", "/readyz"));
  const answers = sockets.map(isReady);
  // What was there before is read before: when this is answered, all of them wait for the look.
  await answerTo(last, head("GET", "/healthz"));
  looks.open();
  for (const answer of answers) expect(await answer).toMatch(/^HTTP\/1\.1 200/);
  expect(looks.count).toBe(1);
  expect(await isReady(last)).toMatch(/^HTTP\/1\.1 200/);
  expect(looks.count).toBe(2);
});

describe("pages", () => {
  const statusOf = async (place: Place, path: string, headers: Readonly<Record<string, string>>) =>
    (await sendBytes(place, [head("GET", path, { ...headers, connection: "close" })])).statuses[0];

  test("of other sites may not ask, but a link from anywhere leads to the console", async () => {
    const { place, url } = await served();
    const visit = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    expect(await statusOf(place, "/console/", visit)).toBe(200);
    expect(await statusOf(place, "/console", visit)).toBe(200);
    expect(await statusOf(place, "/console/", { ...visit, "sec-fetch-dest": "iframe" })).toBe(403);
    expect(await statusOf(place, "/v1/namespaces", visit)).toBe(403);
    expect(await statusOf(place, "/v1/namespaces", { "sec-fetch-site": "same-site" })).toBe(403);
    expect(await statusOf(place, "/v1/namespaces", { "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await statusOf(place, "/v1/namespaces", { origin: "http://elsewhere.example" })).toBe(403);
    const foreign = { ...JSON_BODY, origin: "null", connection: "close" };
    const lease = head("POST", "/v1/namespaces/main/leases", foreign) + BODY;
    expect((await sendBytes(place, [lease])).statuses).toEqual([403]);
    expect(await (await fetch(`${url}/v1/namespaces/main/status`)).json()).toMatchObject({ runsUsed: 0 });
  });

  test("of the console load their scripts and styles, which bear Origin in browsers", async () => {
    const { place, url } = await served();
    const page = await (await fetch(`${url}/console/`)).text();
    const files = [...page.matchAll(/"\.\/(assets\/[^"]+)"/g)].map(([, file]) => `/console/${file}`);
    expect(files.length).toBeGreaterThan(0);
    for (const path of files) {
      expect(await statusOf(place, path, { origin: url, "sec-fetch-site": "same-origin" })).toBe(200);
      expect(await statusOf(place, path, { origin: url })).toBe(200);
      expect(await statusOf(place, path, { origin: url, "sec-fetch-site": "cross-site" })).toBe(403);
    }
  });

  test("get no header of CORS, and no redirect", async () => {
    const { url } = await served();
    for (const [method, path] of [
      ["OPTIONS", "/v1/namespaces/main/leases"],
      ["GET", "/healthz"],
      ["GET", "/console"],
    ] as const) {
      const answer = await fetch(url + path, { method, redirect: "manual" });
      await answer.body?.cancel();
      expect([...answer.headers.keys()].filter((name) => /^access-control|^location$/.test(name))).toEqual([]);
    }
  });
});

test("no response but the console's hashed files may be cached", async () => {
  const { url } = await served();
  const paths = [
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/metrics",
    "/v1/namespaces",
    "/nowhere",
    "/v1//",
    "/console",
    "/console/",
  ];
  for (const path of paths) {
    const answer = await fetch(url + path);
    const page = await answer.text();
    expect([path, answer.headers.get("cache-control")]).toEqual([path, "no-store"]);
    for (const [, file] of page.matchAll(/"\.\/(assets\/[^"]+)"/g)) {
      expect((await fetch(`${url}/console/${file}`)).headers.get("cache-control")).toMatch(/immutable/);
    }
  }
});
