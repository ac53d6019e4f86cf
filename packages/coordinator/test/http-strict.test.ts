/** The gate before all routes, over real sockets: what is refused reaches nobody, and what is right loses nothing by its neighbours. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { opened, type Place, sendBytes } from "../../../test/hostile/raw-client.js";
import { LEASES, leaseBody, NOBODY_IS_ASKED, REQUEST_HOST, request, type Target } from "../../../test/hostile/row.js";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events.js";
import type { HostNames } from "../src/http/host-names.js";
import { createServer, type Server } from "../src/http/server.js";
import type { StrictOptions } from "../src/http/strict-server.js";
import type { Log } from "../src/log.js";
import { GatedStore, gatedLooks, opensGate } from "./gated-store.js";

const HOST_NAMES: HostNames = { addresses: "loopback", names: new Set([REQUEST_HOST]) };

const toEnd: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).reverse()) await end();
});

async function served(strict: StrictOptions = {}) {
  const store = new GatedStore();
  const told: [level: string, event: string, fields: object][] = [];
  const note = (level: string) => (fields: object, event: string) => void told.push([level, event, fields]);
  const log: Log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
  const events = new EventHub(log);
  const coordinator = new Coordinator({ store, name: "test", log: events });
  await coordinator.initNamespace("main");
  const server: Server = await createServer({ coordinator, release: "0.0.0", events, strict, hostNames: HOST_NAMES });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  toEnd.push(() => server.stop());
  const target: Target = { host: "127.0.0.1", port: Number(new URL(url).port), share: 1, ...NOBODY_IS_ASKED };
  const mark = async () => (await store.readNamespace("main")).highWaterMark;
  return { store, told, target, url, mark };
}

const right = (target: Target, keepsAlive = true) => request(target, { body: leaseBody(), keepsAlive });
const health = (target: Target, keepsAlive = true) => request(target, { path: "/healthz", keepsAlive });

/** Open as long as the test. */
async function openedForTest(place: Place): Promise<Socket> {
  const socket = await opened(place);
  toEnd.push(() => socket.destroy());
  return socket.resume();
}

describe("requests on one connection", () => {
  test("a broken one takes nothing from the good one before it, which is answered first", async () => {
    const { store, target, mark } = await served();
    const open = opensGate(store);
    const answered = sendBytes(target, [right(target), 50, "garbage\r\n\r\n"]);
    await expect.poll(() => store.askedCount).toBe(1);
    await pause(150);
    open();
    expect((await answered).statuses).toEqual([201, 400]);
    expect(await mark()).toBe(1);
  });

  test("behind an answer that ends the connection no lease is taken: nobody would hear of it", async () => {
    const { target, mark } = await served();
    const broken = request(target, { body: "{", keepsAlive: true });
    const { statuses } = await sendBytes(target, [Buffer.concat([broken, right(target), right(target)])]);
    await pause(50);
    expect([statuses, await mark()]).toEqual([[400], 0]);
  });

  test("behind a refused head nothing is read, at once or later", async () => {
    const { store, target, mark } = await served();
    const refused = request(target, { path: "//", keepsAlive: true });
    await sendBytes(target, [Buffer.concat([refused, right(target)])]);
    await sendBytes(target, [refused, 20, right(target)]);
    expect([store.askedCount, await mark()]).toEqual([0, 0]);
  });

  test("are answered one after the other, each once", async () => {
    const { target, mark } = await served();
    const several = Buffer.concat([right(target), health(target), right(target), right(target, false)]);
    const { statuses } = await sendBytes(target, [several]);
    expect([statuses, await mark()]).toEqual([[201, 200, 201, 201], 3]);
  });

  test("of which more wait than any caller of ours sends end with overloaded", async () => {
    const { target } = await served();
    const look = request(target, { path: "/v1/namespaces/main/status", keepsAlive: true });
    const { statuses } = await sendBytes(target, [Buffer.concat(Array.from({ length: 400 }, () => look))]);
    expect(statuses).toEqual([...Array(16).fill(200), 503]);
  });

  test("of a stranger wait for nothing: one question at a time", async () => {
    const { target } = await served();
    const { statuses } = await sendBytes(target, [Buffer.concat(Array.from({ length: 400 }, () => health(target)))]);
    expect(statuses).toEqual([200, 503]);
    const socket = await openedForTest({ ...target, host: "127.0.0.1" });
    for (let asked = 1; asked <= 50; asked++) {
      socket.write(health(target));
      const [part] = (await once(socket, "data")) as [Buffer];
      expect(part.toString("latin1")).toMatch(/^HTTP\/1\.1 200 /);
    }
  });
});

describe("what is refused", () => {
  test("is answered with a constant, is the last of its connection, and is told to nobody but who debugs", async () => {
    const { target, told } = await served();
    const heads = [{ lines: ["Transfer-Encoding: chunked"] }, { host: null }, { path: "/v1//x" }];
    for (const parts of heads) {
      const { text, isClosed } = await sendBytes(target, [request(target, { ...parts, keepsAlive: true })]);
      expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(text).toMatch(/\r\ncache-control: no-store\r\n(.*\r\n)*connection: close\r\n/i);
      expect(text).toMatch(/\r\nx-content-type-options: nosniff\r\ncross-origin-resource-policy: same-origin\r\n/);
      expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).toMatchObject({ code: "invalid_request" });
      expect(isClosed).toBe(true);
    }
    await sendBytes(target, ["no request at all\r\n\r\n"]);
    const levels = told.filter(([, event]) => event === "refusal").map(([level]) => level);
    expect(levels).toEqual(Array(4).fill("debug"));
  });

  test("is counted", async () => {
    const { target, url } = await served();
    await sendBytes(target, ["GET /healthz HTTP/1.1\r\n\r\n"]);
    await sendBytes(target, [`GET /${"a".repeat(9_000)} HTTP/1.1\r\n\r\n`]);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain('callnumber_refusals_total{namespace="",code="invalid_request"} 1');
    expect(text).toContain('callnumber_refusals_total{namespace="",code="headers_too_large"} 1');
  });

  test("a request that died in its body is no line of the log", async () => {
    const { target, told } = await served();
    const socket = await openedForTest(target);
    socket.write(right(target).subarray(0, -5));
    await pause(50);
    socket.resetAndDestroy();
    await expect.poll(() => told.filter(([, event]) => event === "refusal").length).toBe(1);
    expect(told.filter(([level, event]) => event === "refusal" && level !== "debug")).toEqual([]);
  });

  test("words of a stranger come back and into the log without what moves or hides text, and cut short", async () => {
    const { target, told } = await served();
    const key = `\u001b[2J\u202E\u009b${"k".repeat(3_000)}`;
    const { text } = await sendBytes(target, [request(target, { body: leaseBody({ [key]: 1 }), keepsAlive: false })]);
    const { message } = JSON.parse(text.slice(text.indexOf("\r\n\r\n")));
    const [, , fields] = told.find(([, event]) => event === "refusal") ?? [];
    for (const words of [message, (fields as { reason: string }).reason]) {
      expect(words).toContain("\\u{1b}[2J\\u{202e}\\u{9b}kkk");
      expect(words.length).toBeLessThan(600);
    }
  });
});

describe("pages", () => {
  const ask = async (target: Target, parts: Parameters<typeof request>[1]) =>
    (await sendBytes(target, [request(target, parts)])).statuses;

  test("of other sites may not ask, unless somebody follows a link to the console", async () => {
    const { target } = await served();
    const visit = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    expect(await ask(target, { path: "/console/", lines: visit })).toEqual([200]);
    expect(await ask(target, { path: "/console", lines: visit })).toEqual([200]);
    expect(await ask(target, { path: "/console/", lines: visit.with(2, "Sec-Fetch-Dest: iframe") })).toEqual([403]);
    expect(await ask(target, { path: "/v1/namespaces", lines: visit })).toEqual([403]);
    expect(await ask(target, { path: "/v1/namespaces", lines: ["Sec-Fetch-Site: same-origin"] })).toEqual([200]);
    expect(await ask(target, { path: LEASES, body: leaseBody(), lines: ["Origin: null"] })).toEqual([403]);
    expect(await ask(target, { path: "/v1/namespaces", lines: ["Origin: http://coordinator"] })).toEqual([403]);
  });

  test("bear an Origin that whoever makes the server may allow", async () => {
    const allowsOrigin: StrictOptions["allowsOrigin"] = ({ headers }) => headers.origin === "http://ours";
    const { target } = await served({ allowsOrigin });
    expect(await ask(target, { body: leaseBody(), lines: ["Origin: http://ours"] })).toEqual([201]);
    expect(await ask(target, { body: leaseBody(), lines: ["Origin: http://others"] })).toEqual([403]);
    const split = ["Origin: http://ours", "Sec-Fetch-Site: cross-site"];
    expect(await ask(target, { body: leaseBody(), lines: split })).toEqual([403]);
  });

  test("of the console load their scripts and styles, which bear Origin in browsers", async () => {
    const { target, url } = await served();
    const page = await (await fetch(`${url}/console/`)).text();
    const files = [...page.matchAll(/"\.\/(assets\/[^"]+)"/g)].map(([, file]) => `/console/${file}`);
    expect(files.length).toBeGreaterThan(0);
    const lines = [`Origin: ${url}`, "Sec-Fetch-Site: same-origin"];
    for (const path of files) {
      expect(await ask(target, { path, lines })).toEqual([200]);
      expect(await ask(target, { path, lines: lines.with(1, "Sec-Fetch-Site: cross-site") })).toEqual([403]);
    }
  });

  test("get no header of CORS, and no redirect", async () => {
    const { url } = await served();
    for (const [method, path] of [
      ["OPTIONS", LEASES],
      ["GET", "/healthz"],
      ["GET", "/console"],
    ] as const) {
      const answer = await fetch(url + path, { method, redirect: "manual" });
      await answer.body?.cancel();
      expect([...answer.headers.keys()].filter((name) => /^access-control|^location$/.test(name))).toEqual([]);
    }
  });
});

test("nothing but the files of a build may be kept by anybody", async () => {
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
    const kept = answer.headers.get("cache-control");
    expect([path, kept]).toEqual([path, "no-store"]);
    for (const [, file] of page.matchAll(/"\.\/(assets\/[^"]+)"/g)) {
      expect((await fetch(`${url}/console/${file}`)).headers.get("cache-control")).toMatch(/immutable/);
    }
  }
});

describe("when there are too many connections", () => {
  const CONNECTIONS = 20;

  test("those that never leased anything go first, then those that were idle for longest", async () => {
    const { target } = await served({ connectionCountMax: CONNECTIONS });
    const silent = await Promise.all(Array.from({ length: 10 }, () => openedForTest(target)));
    const proved: Socket[] = [];
    for (let index = 0; index < 10; index++) {
      const socket = await openedForTest(target);
      socket.write(right(target));
      await new Promise((resolve) => socket.once("data", resolve));
      proved.push(socket);
    }
    const closedOf = (sockets: readonly Socket[]) =>
      sockets.filter(({ readableEnded, closed }) => readableEnded || closed).length;
    for (let index = 0; index < 10; index++) await openedForTest(target);
    await expect.poll(() => closedOf(silent)).toBe(10);
    expect(closedOf(proved)).toBe(0);
    const asking = await openedForTest(target);
    const answer = new Promise<string>((resolve) => asking.once("data", (data) => resolve(String(data))));
    asking.write(health(target));
    expect(await answer).toMatch(/^HTTP\/1\.1 200/);
    expect(closedOf(proved)).toBe(0);
  });

  test("one whose request is being answered stays; the newest goes", async () => {
    const { store, target, mark } = await served({ connectionCountMax: CONNECTIONS });
    const open = opensGate(store);
    const leases = Array.from({ length: CONNECTIONS }, () => sendBytes(target, [right(target, false)]));
    await expect.poll(() => store.askedCount).toBe(CONNECTIONS);
    // It is told why, if it reads before it sends.
    const { text } = await sendBytes(target, []);
    expect(text).toMatch(/^HTTP\/1\.1 503 (.|\r\n)*"code":"overloaded"/);
    open();
    for (const lease of leases) expect((await lease).statuses).toEqual([201]);
    expect(await mark()).toBe(CONNECTIONS);
  });

  test("strangers whose answers are not out make room, though they asked and wait", async () => {
    const { store, target } = await served({ connectionCountMax: CONNECTIONS });
    const looks = gatedLooks(store);
    const working = await openedForTest(target);
    const leased = opensGate(store);
    working.write(right(target));
    const strangers = await Promise.all(Array.from({ length: CONNECTIONS - 1 }, () => openedForTest(target)));
    for (const stranger of strangers) stranger.write(request(target, { path: "/readyz", keepsAlive: true }));
    await expect.poll(() => [looks.count, store.askedCount]).toEqual([1, 1]);
    const answer = sendBytes(target, [health(target, false)]);
    expect((await answer).statuses).toEqual([200]);
    const heard = new Promise<string>((resolve) => working.once("data", (data) => resolve(String(data))));
    leased();
    expect(await heard).toMatch(/^HTTP\/1\.1 201/);
    looks.open();
  });

  test("the address with most of those that never asked anything loses first", async () => {
    const { target } = await served({ connectionCountMax: CONNECTIONS });
    const first = await openedForTest({ ...target, host: "127.0.0.1" });
    // Another address of this machine asks at the same door.
    const crowd = await Promise.all(
      Array.from({ length: CONNECTIONS + 30 }, () => openedForTest({ ...target, from: "127.0.0.2" })),
    );
    await expect.poll(() => crowd.filter(({ closed, readableEnded }) => closed || readableEnded).length).toBe(31);
    expect(first.closed || first.readableEnded).toBe(false);
  });
});
