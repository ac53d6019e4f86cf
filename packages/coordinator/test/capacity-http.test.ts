/** Capacity and history over real sockets, on the memory store: what an operator is answered, and what is refused. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { HISTORY_STEP_COUNT, HISTORY_WINDOWS_MS } from "@callnumber/protocol/operator";
import { capacityResponseSchema, historyResponseSchema } from "@callnumber/protocol/operator-schemas";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { createServer, type Server } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";

let coordinator: Coordinator;
let server: Server;
let base: string;

beforeEach(async () => {
  coordinator = new Coordinator({ store: new MemoryStore(), name: "test" });
  await coordinator.initNamespace("main", { firstRun: 11, rate: 3 });
  server = await createServer({ coordinator, release: "0.0.0" });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => server.stop());

async function get(path: string) {
  const response = await fetch(`${base}/v1/namespaces/${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function lease(name: string, pid: number, runCount = 1) {
  const nonce = `nonce-of-${name}-${String(pid).padStart(8, "0")}`;
  const holder = { name, host: "mail-1", pid, labels: {} };
  return await coordinator.lease("main", {
    runCount,
    nonce,
    holder,
    lastRun: null,
    receipt: null,
    sentAtMs: Date.now(),
  });
}

test("a namespace that nobody leased from has all its runs, and nothing to say", async () => {
  const { status, body } = await get("main/capacity");
  expect(status).toBe(200);
  expect(capacityResponseSchema.parse(body)).toMatchObject({
    namespace: "main",
    version: 0,
    highWaterMark: 10,
    runsUsed: 0,
    runsLeft: RUN_MAX - 10,
    usedShare: 0,
    ceilingRunsPerSecond: 3,
    lookedAt: { leaseCount: 0, fromMs: null },
    holders: [],
    alarms: [],
  });
});

test("what was leased is told by holder, with the alarms", async () => {
  await lease("steady", 1, 2);
  for (let pid = 1; pid <= 40; pid++) await lease("crashing", pid);
  const capacity = capacityResponseSchema.parse((await get("main/capacity")).body);
  expect(capacity).toMatchObject({ runsUsed: 42, lookedAt: { leaseCount: 41 } });
  expect(capacity.rates.map(({ runs }) => runs)).toEqual([42]);
  expect(capacity.holders).toMatchObject([
    { name: "crashing", hosts: ["mail-1"], processCount: 40, leaseCount: 40, runCount: 40, isLive: true },
    { name: "steady", processCount: 1, runCount: 2 },
  ]);
  expect(capacity.alarms).toMatchObject([{ name: "holder_share", severity: "warning" }]);
});

test("the history of each window adds up to what was leased in it", async () => {
  await lease("steady", 1, 5);
  for (const windowMs of HISTORY_WINDOWS_MS) {
    const { status, body } = await get(`main/history?windowMs=${windowMs}`);
    expect(status).toBe(200);
    const { runs, stepMs, fromMs } = historyResponseSchema.parse(body);
    expect(stepMs).toBe(windowMs / HISTORY_STEP_COUNT);
    expect(Math.abs(fromMs + windowMs - Date.now())).toBeLessThanOrEqual(2 * stepMs);
    expect(runs.reduce((sum, count) => sum + count, 0)).toBe(5);
  }
  expect((await get("main/history")).body["stepMs"]).toBe(HISTORY_WINDOWS_MS[0] / HISTORY_STEP_COUNT);
});

test("another window, and a namespace that is none, are refused", async () => {
  for (const query of ["windowMs=1", "windowMs=x", "windowMs=3600000&more=1"]) {
    expect(await get(`main/history?${query}`)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  }
  for (const path of ["other/capacity", "other/history"]) {
    expect(await get(path)).toMatchObject({ status: 404, body: { code: "namespace_not_found" } });
  }
});
