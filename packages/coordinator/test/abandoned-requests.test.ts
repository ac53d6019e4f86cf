/** Clients that left before their lease was written, over real sockets: nothing is leased for them, and all others are served. */
import type { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { gatedMethod } from "./gated-store.js";
import { opened, type Place } from "./raw-client.js";
import { leaseRequest, served } from "./served.js";

const BODY = JSON.stringify(leaseRequest());
const HEAD = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}`;
const LEASE = `POST /v1/namespaces/main/leases HTTP/1.1\r\n${HEAD}\r\n\r\n${BODY}`;

async function openedAll(place: Place, count: number): Promise<readonly Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => opened(place)));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

/** How many requests were given up, for the count of all that are over. */
const goneIn = (metrics: string) => Number(/^callnumber_requesters_gone_total (\d+)$/m.exec(metrics)?.[1]);

test("a server that was stalled leases nothing for clients that left meanwhile, and serves the one that is there", async () => {
  const { place, store, mark, lease, get } = await served();
  const impatient = await openedAll(place, 50);
  const patient = lease();
  // The server reads none of this before it is all there: this is its event loop.
  for (const socket of impatient) {
    socket.write(LEASE);
    socket.destroy();
  }
  expect((await patient).status).toBe(201);
  await expect.poll(async () => goneIn((await get("/metrics")).text) + store.leaseCount).toBe(51);
  expect([store.leaseCount, await mark()]).toEqual([1, 1]);
});

test("a client that leaves while its namespace is opened leases nothing", async () => {
  const { place, store, mark, get } = await served();
  const reads = gatedMethod(store, "readNamespace");
  const [socket] = await openedAll(place, 1);
  socket?.write(LEASE);
  await expect.poll(() => reads.count).toBe(1);
  socket?.destroy();
  // The server has seen it when it has answered later requests.
  for (let count = 0; count < 2; count++) await get("/healthz");
  reads.open();
  await expect.poll(async () => goneIn((await get("/metrics")).text) + store.leaseCount).toBe(1);
  expect([store.leaseCount, await mark()]).toEqual([0, 0]);
});

test("clients that leave while a lease before theirs is written lease nothing", async () => {
  const { place, store, mark, lease, get } = await served();
  const open = store.closeGate();
  const first = lease();
  await expect.poll(() => store.leaseCount).toBe(1);
  const sockets = await openedAll(place, 20);
  for (const socket of sockets) socket.write(LEASE);
  // The server has read their requests, and that they left, when it has answered later ones.
  for (let count = 0; count < 2; count++) await get("/healthz");
  for (const socket of sockets) socket.destroy();
  for (let count = 0; count < 2; count++) await get("/healthz");
  const last = lease();
  await get("/healthz");
  open();
  expect((await first).status).toBe(201);
  expect((await last).status).toBe(201);
  expect([store.leaseCount, await mark()]).toEqual([2, 2]);
  await expect.poll(async () => goneIn((await get("/metrics")).text)).toBe(20);
});

test("a lease with an aborted signal leases nothing", async () => {
  const { coordinator, mark } = await served();
  const reason = new Error("not needed any more");
  const lease = coordinator.lease("main", leaseRequest(), { signal: AbortSignal.abort(reason) });
  await expect(lease).rejects.toBe(reason);
  expect(await mark()).toBe(0);
});

test.each(["/v1/namespaces/m%61in/leases", "/v1/namespaces/%6dain/leases"])(
  "a lease whose path is escaped as %s is granted once",
  async (path) => {
    const { post, store, mark } = await served();
    expect((await post(path, leaseRequest())).status).toBe(201);
    expect([store.leaseCount, await mark()]).toEqual([1, 1]);
  },
);
