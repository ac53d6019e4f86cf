/** Limits over real sockets: what is rejected is neither leased nor written, and other clients are not affected. */
import { capacityResponseSchema } from "@callnumber/protocol/schemas";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Authenticator, UNRESTRICTED } from "../src/http/auth.js";
import type { ServerOptions } from "../src/http/server.js";
import { LeaseLimits, type LeaseLimitsOptions } from "../src/limits/lease-limits.js";
import { FREE_STARTS } from "../src/limits/restart-brake.js";
import { opened } from "./raw-client.js";
import { leaseRequest, served as servedBy } from "./served.js";

/** Takes the id of a token from a header. */
const authenticator: Authenticator = {
  authenticate: ({ headers }) => {
    const id = headers["x-token"];
    return typeof id === "string" ? { ...UNRESTRICTED, tokenId: id } : UNRESTRICTED;
  },
  isValid: () => true,
};

interface Asked {
  readonly token?: string;
  readonly runCount?: number;
  readonly name?: string;
  readonly pid?: number;
  readonly namespace?: string;
}

async function served(limitsOptions: LeaseLimitsOptions = {}, more: Partial<ServerOptions> = {}) {
  const clock = { nowMs: 1_000_000 };
  const limits = new LeaseLimits({ now: () => clock.nowMs, ...limitsOptions });
  const own = { startLoops: (name: string) => limits.startLoops(name) };
  const { post, ...server } = await servedBy({ own, authenticator, limits, ...more });
  let nonceCount = 0;
  const lease = async ({ token, runCount = 1, name = "letters", pid = 1, namespace = "main" }: Asked = {}) => {
    const nonce = `nonce-${String(++nonceCount).padStart(12, "0")}`;
    const request = leaseRequest({ runCount, nonce, holder: { name, host: "mail-1", pid, labels: {} } });
    const headers = token === undefined ? undefined : { "x-token": token };
    return { nonce, ...(await post(`/v1/namespaces/${namespace}/leases`, request, headers)) };
  };
  return { ...server, post, lease, clock };
}

describe("what a token may take", () => {
  const options = { token: { atOnce: 10, perSecond: 4 } };

  test("a token leases up to its quota, and is then rejected before the store is queried, with the time to wait", async () => {
    const { lease, clock, store, mark } = await served(options);
    expect((await lease({ token: "aa", runCount: 4 })).body.runCount).toBe(4);
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(6);
    const { status, headers, body } = await lease({ token: "aa", name: "another one" });
    expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    expect(body).toMatchObject({ code: "rate_limited", retryAfterMs: 250 });
    expect([await mark(), store.leaseCount]).toEqual([10, 2]);
    clock.nowMs += 249;
    expect((await lease({ token: "aa" })).body.retryAfterMs).toBe(1);
    clock.nowMs += 1;
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(1);
    expect(await mark()).toBe(11);
  });

  test("a token's quota leaves another token its own", async () => {
    const { lease } = await served(options);
    for (const token of ["aa", "bb"]) expect((await lease({ token, runCount: 64 })).body.runCount).toBe(10);
  });

  test("a token's quota returns for runs that were requested and not leased", async () => {
    const { lease } = await served(options);
    for (let index = 0; index < 20; index++) {
      expect((await lease({ token: "aa", runCount: 10, namespace: "unknown" })).body.code).toBe("namespace_not_found");
    }
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(10);
  });
});

describe("what a holder may take", () => {
  const options = { token: { atOnce: 100, perSecond: 16 }, holder: { atOnce: 10, perSecond: 4 } };

  test("all processes of a holder share one quota, and other holders of the token keep theirs", async () => {
    const { lease } = await served(options);
    expect((await lease({ token: "aa", runCount: 10, pid: 1 })).status).toBe(201);
    expect((await lease({ token: "aa", pid: 2 })).body).toMatchObject({ code: "rate_limited", retryAfterMs: 250 });
    expect((await lease({ token: "aa", name: "lists", runCount: 10 })).body.runCount).toBe(10);
  });

  test("a holder's quota can't be used up by a holder of another token with the same name", async () => {
    const { lease } = await served(options);
    for (const token of ["bb", "aa"]) expect((await lease({ token, runCount: 64 })).body.runCount).toBe(10);
  });

  test("a token's quota does not grow with invented holder names", async () => {
    const { lease, mark } = await served(options);
    const statuses: number[] = [];
    for (let index = 0; index < 120; index++) {
      statuses.push((await lease({ token: "aa", name: `invented-${index}` })).status);
    }
    expect([await mark(), statuses.filter((status) => status !== 201).length]).toEqual([100, 20]);
    expect((await lease({ token: "bb", runCount: 10 })).body.runCount).toBe(10);
  });
});

test("a holder that starts repeatedly waits and raises an alarm until one of its processes works", async () => {
  const { get, post, lease, clock, mark } = await served({ holder: { atOnce: 1_000, perSecond: 1_000 } });
  const last = { nonce: "", run: 0 };
  for (let pid = 1; pid <= FREE_STARTS; pid++) {
    const { status, nonce, body } = await lease({ pid });
    expect(status).toBe(201);
    Object.assign(last, { nonce, run: body.firstRun });
  }
  const rejection = { status: 429, body: { code: "rate_limited", retryAfterMs: 1_000 } };
  expect(await lease({ pid: 1_000 })).toMatchObject(rejection);
  expect(await mark()).toBe(FREE_STARTS);
  expect((await lease({ name: "lists" })).status).toBe(201);
  const { alarms } = capacityResponseSchema.parse((await get("/v1/namespaces/main/capacity")).body);
  const explanation = expect.stringContaining(`"letters" on mail-1 was started ${FREE_STARTS} times`);
  expect(alarms).toContainEqual({ name: "holder_restarts", severity: "warning", explanation });
  clock.nowMs += 1_000;
  expect((await lease({ pid: 1_001 })).status).toBe(201);
  expect((await lease({ pid: 1_002 })).status).toBe(429);
  const report = { nonce: last.nonce, lastSequence: 5, state: "open" };
  expect((await post(`/v1/namespaces/main/runs/${last.run}/report`, report)).status).toBe(200);
  expect((await lease({ pid: 1_003 })).status).toBe(201);
});

test("leases beyond a client's limit fail with overloaded while reads are answered; later leases succeed", async () => {
  const { lease, get, store, mark, coordinator } = await served({}, { maxConcurrentLeases: 2 });
  const { mock } = vi.spyOn(coordinator, "lease");
  const open = store.closeGate();
  const admitted = [lease({ pid: 1 }), lease({ pid: 2 })];
  await expect.poll(() => mock.calls.length).toBe(2);
  for (const { status, headers, body } of await Promise.all(Array.from({ length: 40 }, () => lease()))) {
    expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
    expect(body).toMatchObject({ code: "overloaded", retryAfterMs: 1_000 });
  }
  for (const path of ["/healthz", "/v1/namespaces/main/status", "/v1/namespaces", "/metrics"]) {
    expect((await get(path)).status, path).toBe(200);
  }
  expect([mock.calls.length, await mark()]).toEqual([2, 0]);
  open();
  for (const { status } of await Promise.all(admitted)) expect(status).toBe(201);
  expect((await lease()).status).toBe(201);
  expect(await mark()).toBe(3);
  const count = /^callnumber_rejected_requests_total{[^}]*code="overloaded"} (\d+)$/m;
  expect(count.exec((await get("/metrics")).text)?.[1]).toBe("40");
});

test("leases beyond a client's limit leave slots for the clients of another token", async () => {
  const { lease, store, coordinator } = await served({}, { maxConcurrentLeases: 2 });
  const { mock } = vi.spyOn(coordinator, "lease");
  const open = store.closeGate();
  const admitted = [lease({ token: "aa" }), lease({ token: "aa" })];
  await expect.poll(() => mock.calls.length).toBe(2);
  expect((await lease({ token: "aa" })).status).toBe(503);
  admitted.push(lease({ token: "bb" }));
  await expect.poll(() => mock.calls.length).toBe(3);
  open();
  for (const { status } of await Promise.all(admitted)) expect(status).toBe(201);
});

test("requests that wait for their bodies do not count as leases in flight", async () => {
  const { lease, place } = await served({}, { maxConcurrentLeases: 2 });
  for (let count = 0; count < 10; count++) {
    const socket = await opened(place);
    onTestFinished(() => void socket.destroy());
    const head = "POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    socket.write(`${head}\r\ncontent-length: 200\r\n\r\n{"runCount":`);
  }
  expect((await lease()).status).toBe(201);
});
