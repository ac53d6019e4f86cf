/** Connections that are made to last, to pile up or to die at the worst moment, over real sockets: none ends the process or keeps others out. */
import type { Socket } from "node:net";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { opened, type Place, sendBytes } from "../../../test/hostile/raw-client.js";
import { leaseBody, NOBODY_IS_ASKED, REQUEST_HOST, request, type Target } from "../../../test/hostile/row.js";
import { Coordinator } from "../src/coordinator.js";
import type { HostNames } from "../src/http/host-names.js";
import { createServer, type Server } from "../src/http/server.js";
import type { StrictOptions } from "../src/http/strict-server.js";
import { GatedStore, gatedLooks, opensGate } from "./gated-store.js";

const HOST_NAMES: HostNames = { addresses: "loopback", names: new Set([REQUEST_HOST]) };

const toEnd: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).reverse()) await end();
});

async function served(strict: StrictOptions = {}) {
  const store = new GatedStore();
  const coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace("main");
  const server: Server = await createServer({ coordinator, release: "0.0.0", strict, hostNames: HOST_NAMES });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  toEnd.push(() => server.stop());
  const target: Target = { host: "127.0.0.1", port: Number(new URL(url).port), share: 1, ...NOBODY_IS_ASKED };
  return { server, store, target, url, mark: async () => (await store.readNamespace("main")).highWaterMark };
}

const lease = (target: Target) => request(target, { body: leaseBody(), keepsAlive: true });
const get = (target: Target, path: string) => request(target, { path, keepsAlive: true });
const CONNECT = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n";

/** Open as long as the test. */
async function openedForTest(place: Place): Promise<Socket> {
  const socket = await opened(place);
  toEnd.push(() => socket.destroy());
  return socket;
}

/** Resolves to what came first. */
async function answerTo(socket: Socket, bytes: Buffer | string): Promise<string> {
  if (isOver(socket)) return "closed";
  const answer = new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(String(data)));
    socket.once("end", () => resolve("closed")).once("close", () => resolve("closed"));
  });
  socket.write(bytes);
  return await answer;
}

function isOver({ closed, readableEnded }: Socket): boolean {
  return closed || readableEnded;
}

describe("behind an event stream", () => {
  test("no lease is taken on the same connection, and others take theirs", async () => {
    const { target, mark } = await served();
    const socket = await openedForTest(target);
    socket.resume().write(Buffer.concat([get(target, "/v1/events"), lease(target), lease(target)]));
    await expect.poll(() => isOver(socket)).toBe(true);
    expect((await sendBytes(target, [request(target, { body: leaseBody() })])).statuses).toEqual([201]);
    expect(await mark()).toBe(1);
  });

  test("a request for a tunnel that breaks ends nothing but its connection", async () => {
    const { target, url } = await served();
    const ended: unknown[] = [];
    const note = (error: unknown) => ended.push(error);
    process.prependListener("uncaughtException", note);
    toEnd.push(() => process.off("uncaughtException", note));
    const socket = await openedForTest(target);
    expect(await answerTo(socket, get(target, "/v1/events"))).toMatch(/^HTTP\/1\.1 200/);
    socket.write(CONNECT);
    await pause(50);
    socket.resetAndDestroy();
    await pause(100);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(ended).toEqual([]);
  });

  test("a request for a tunnel holds the connection no longer, and a lease before one is answered", async () => {
    const { target } = await served();
    const { isClosed } = await sendBytes(target, [get(target, "/v1/events"), CONNECT]);
    expect(isClosed).toBe(true);
    expect((await sendBytes(target, [lease(target), CONNECT])).statuses).toEqual([201, 405]);
  });

  const bodyOf = (byteCount: number) => `Content-Length: ${byteCount}\r\n\r\n${"[".repeat(byteCount)}`;
  const labels = `POST /v1/namespaces/main/labels HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  test.each([
    ["half a head", "POST /v1/names", true],
    ["half a body", (labels + bodyOf(100)).slice(0, -1), false],
    ["half a body that is too much to be read at once", (labels + bodyOf(40_000)).slice(0, -1), false],
    ["a refused request and half another one", `GET // HTTP/1.1\r\nHost: localhost\r\n\r\n${labels}`, false],
    ["what is no request", "garbage\r\n\r\n", false],
    ["a whole request", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", false],
  ])(
    "%s behind it ends the stream: it would wait for ever, and hide that the other end is gone",
    async (_what, bytes, ends) => {
      const { target } = await served();
      const [behind, atOnce] = [await openedForTest(target), await openedForTest(target)];
      await answerTo(behind, get(target, "/v1/events"));
      behind.write(bytes);
      atOnce.resume().write(Buffer.concat([get(target, "/v1/events"), Buffer.from(bytes)]));
      // What has not even a whole head may still be on its way.
      if (ends) for (const socket of [behind, atOnce]) socket.end();
      await expect.poll(() => [behind, atOnce].map(isOver)).toEqual([true, true]);
    },
  );

  test("half a head ends the stream when its time is over", async () => {
    const { target } = await served();
    const socket = await openedForTest(target);
    await answerTo(socket, get(target, "/v1/events"));
    socket.write("POST /v1/names");
    await expect.poll(() => isOver(socket)).toBe(true);
  });
});

test("a request that does not arrive holds up no stop, which waits for one that is being answered", async () => {
  const { server, store, target } = await served();
  const open = opensGate(store);
  const answered = sendBytes(target, [lease(target)]);
  await expect.poll(() => store.askedCount).toBe(1);
  const half = await openedForTest(target);
  half.write(lease(target).subarray(0, -5));
  await pause(50);
  const stopped = server.stop();
  await new Promise((resolve) => half.once("close", resolve).once("end", resolve).resume());
  open();
  expect((await answered).statuses).toEqual([201]);
  await stopped;
});

test("strangers who ask together whether it is ready cost the store one look", async () => {
  const { store, target } = await served();
  const looks = gatedLooks(store);
  const strangers = await Promise.all(Array.from({ length: 30 }, () => openedForTest(target)));
  const last = await openedForTest(target);
  for (const stranger of [...strangers, last]) await answerTo(stranger, get(target, "/healthz"));
  const isReady = (stranger: Socket) => answerTo(stranger, get(target, "/readyz"));
  const answers = strangers.map(isReady);
  // What was there before is read before: when this is answered, all of them wait for the look.
  await answerTo(last, get(target, "/healthz"));
  looks.open();
  for (const answer of answers) expect(await answer).toMatch(/^HTTP\/1\.1 200/);
  expect(looks.count).toBe(1);
  expect(await isReady(last)).toMatch(/^HTTP\/1\.1 200/);
  expect(looks.count).toBe(2);
});

describe("when there are too many connections", () => {
  const CONNECTIONS = 20;

  test("one who has only just come gets in, in place of the one that was idle for longest", async () => {
    const { target } = await served({ connectionCountMax: CONNECTIONS });
    const idle: Socket[] = [];
    for (let index = 0; index < CONNECTIONS; index++) {
      idle.push(await openedForTest(target));
      await answerTo(idle[index] as Socket, get(target, "/v1/namespaces"));
    }
    expect(await answerTo(await openedForTest(target), lease(target))).toMatch(/^HTTP\/1\.1 201/);
    await expect.poll(() => idle.map(isOver)).toEqual([true, ...Array(CONNECTIONS - 1).fill(false)]);
  });

  test("whoever asks only what everybody may goes before one who works", async () => {
    const { target } = await served({ connectionCountMax: CONNECTIONS });
    const working = await openedForTest(target);
    await answerTo(working, lease(target));
    for (let index = 0; index < 2 * CONNECTIONS; index++)
      await answerTo(await openedForTest(target), get(target, "/healthz"));
    expect(await answerTo(working, lease(target))).toMatch(/^HTTP\/1\.1 201/);
  });
});

describe("what is no request", () => {
  const EMPTY_LINES = "\r\n".repeat(50_000);

  test("ends a stranger's connection when much of it comes, and not that of somebody who was let in", async () => {
    const { target } = await served();
    const sockets = [await openedForTest(target), await openedForTest(target), await openedForTest(target)];
    const [stranger, asking, known] = sockets as readonly Socket[] as [Socket, Socket, Socket];
    expect(await answerTo(asking, get(target, "/healthz"))).toContain("200 OK");
    expect(await answerTo(asking, EMPTY_LINES + get(target, "/healthz"))).toContain("400 Bad Request");
    expect(await answerTo(stranger, get(target, "/healthz"))).toContain("200 OK");
    expect(await answerTo(known, get(target, "/v1/namespaces"))).toContain("200 OK");
    for (const socket of [known, stranger])
      socket
        .resume()
        .on("error", () => {})
        .write(EMPTY_LINES);
    await expect.poll(() => isOver(stranger)).toBe(true);
    expect(await answerTo(known, get(target, "/healthz"))).toContain("200 OK");
  });

  test("keeps no connection open on which nothing is asked any more", async () => {
    const { target } = await served({ idleMaxMs: 200 });
    const socket = await openedForTest(target);
    expect(await answerTo(socket, lease(target))).toContain("201 Created");
    const lines = setInterval(() => socket.writable && socket.write("\n"), 20);
    toEnd.push(() => clearInterval(lines));
    await expect.poll(() => isOver(socket)).toBe(true);
  });
});

test("who is in the middle of a body that is too long is told so, and is not cut off before", async () => {
  const { target } = await served();
  // As slow readers do: the first half fits into what the kernels keep, and the other half is sent when the answer is there.
  const half = Buffer.alloc(32_768, " ");
  const head = request(target, { body: Buffer.alloc(65_536, " ") }).subarray(0, -65_536);
  const socket = await openedForTest(target);
  const errors: Error[] = [];
  socket.on("error", (error) => errors.push(error));
  expect(await answerTo(socket, Buffer.concat([head, half]))).toMatch(/^HTTP\/1\.1 413 /);
  for (let piece = 0; piece < 8; piece++) {
    await new Promise((resolve) => socket.write(half.subarray(0, 4_096), resolve));
  }
  expect(errors).toEqual([]);
});
