/**
 * The rules above every store: which leases a coordinator grants, what it sends to the store, and what it rejects.
 * Guarantees: G6 (docs/guarantees.md).
 */
import { encodeCallNumber, RUN_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { Coordinator, type CoordinatorOptions } from "../src/coordinator.js";
import { EPS_MS } from "../src/guard/clocks.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import type { Log } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { Store } from "../src/stores/store.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { leaseRequest } from "./served.js";
import { Clock, SettableStore } from "./settable-store.js";
import { stepOn } from "./steps-for-test.js";

async function coordinatorOn(store: Store, options: Partial<CoordinatorOptions> = {}) {
  const logged: { event: string; fields: object }[] = [];
  const note = (fields: object, event: string) => void logged.push({ event, fields });
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const coordinator = new Coordinator({ store, name: "test", log, ...options });
  await coordinator.initNamespace(NAMESPACE);
  return { coordinator, logged, eventNames: () => logged.map(({ event }) => event) };
}

test("a coordinator accepts a holder's last run only up to the high-water mark", async () => {
  const { coordinator, eventNames } = await coordinatorOn(new MemoryStore());
  await coordinator.lease(NAMESPACE, leaseRequest({ runCount: 5 }));
  const ahead = coordinator.lease(NAMESPACE, leaseRequest({ lastRun: 6 }));
  await expect(ahead).rejects.toMatchObject({ code: "run_above_high_water_mark" });
  expect((await coordinator.lease(NAMESPACE, leaseRequest({ lastRun: 5 }))).firstRun).toBe(6);
  expect(eventNames()).toEqual(["init", "checkpoint_created", "lease", "run_above_high_water_mark", "lease"]);
});

test("the response to a lease has the nonce and a proof that is not logged", async () => {
  const { coordinator, logged } = await coordinatorOn(new MemoryStore());
  const nonce = "nonce-of-a-request";
  const granted = await coordinator.lease(NAMESPACE, leaseRequest({ nonce }));
  expect(granted).toMatchObject({ namespace: NAMESPACE, nonce });
  expect(granted.proof).toMatch(/^[A-Za-z0-9_-]{43}$/);
  expect(JSON.stringify(logged)).not.toContain(granted.proof);
});

test.each([
  ["firstRun", [0, RUN_MAX + 1, 1.5, Number.NaN]],
  ["rate", [0, 17, 1.5, Number.NaN]],
  ["nodeCount", [0, 100, 1.5, Number.NaN]],
])("a coordinator makes no namespace with a bad %s", async (name, values) => {
  const store = new MemoryStore();
  const coordinator = new Coordinator({ store, name: "test" });
  for (const value of values) {
    await expect(coordinator.initNamespace(NAMESPACE, { [name]: value })).rejects.toThrow(RangeError);
  }
  expect(await store.listNamespaces()).toEqual([]);
});

test.each<[object, typeof RangeError | typeof TypeError]>([
  [{ runCount: 0 }, RangeError],
  [{ runCount: 65 }, RangeError],
  [{ runCount: 1.5 }, RangeError],
  [{ runCount: Number.NaN }, RangeError],
  [{ sentAtMs: -1 }, RangeError],
  [{ sentAtMs: 1.5 }, RangeError],
  [{ sentAtMs: Number.NaN }, RangeError],
  [{ sentAtMs: undefined }, RangeError],
  [{ nonce: undefined }, TypeError],
  [{ nonce: "short" }, TypeError],
  [{ holder: undefined }, TypeError],
])("a coordinator leases nothing for misuse: %o", async (own, error) => {
  const { coordinator } = await coordinatorOn(new MemoryStore());
  await expect(coordinator.lease(NAMESPACE, leaseRequest(own))).rejects.toThrow(error);
  expect((await coordinator.status(NAMESPACE)).runsUsed).toBe(0);
});

test("a coordinator rejects a malformed namespace, a late sequence, an unknown state and a negative run", async () => {
  const { coordinator } = await coordinatorOn(new MemoryStore());
  const report = { nonce: leaseRequest().nonce, lastSequence: 0, state: "open" } as const;
  await expect(coordinator.lease("Main", leaseRequest())).rejects.toThrow(TypeError);
  await expect(coordinator.report(NAMESPACE, 1, { ...report, lastSequence: 16_384 })).rejects.toThrow(RangeError);
  await expect(coordinator.report(NAMESPACE, 1, { ...report, state: "shut" as never })).rejects.toThrow(TypeError);
  await expect(coordinator.run(NAMESPACE, -1)).rejects.toThrow(RangeError);
});

describe("the report of a lease request", () => {
  const nonce = "nonce-of-the-first-lease";
  const report = { run: 1, nonce, lastSequence: 16_383, state: "exhausted" } as const;

  test("a coordinator records it as a report by a request of its own", async () => {
    const { coordinator, eventNames } = await coordinatorOn(new MemoryStore());
    await coordinator.lease(NAMESPACE, leaseRequest({ nonce }));
    await coordinator.lease(NAMESPACE, leaseRequest({ lastRun: 1, report }));
    await expect.poll(eventNames).toContain("report");
    expect(await coordinator.run(NAMESPACE, 1)).toMatchObject({ state: "exhausted", lastSequence: 16_383 });
  });

  test.each<[string, object]>([
    ["of another's lease", { nonce: "nonce-of-another" }],
    ["of a run that was never leased", { run: 9 }],
    ["of no known state", { state: "shut" }],
    ["of a run that is none", { run: undefined }],
  ])("a report %s is logged, and the lease granted", async (_, own) => {
    const { coordinator, eventNames } = await coordinatorOn(new MemoryStore());
    await coordinator.lease(NAMESPACE, leaseRequest({ nonce }));
    const wrong = { ...report, ...own } as typeof report;
    expect(await coordinator.lease(NAMESPACE, leaseRequest({ lastRun: 1, report: wrong }))).toMatchObject({
      firstRun: 2,
    });
    await expect.poll(eventNames).toContain("report_not_recorded");
    expect(await coordinator.run(NAMESPACE, 1)).toMatchObject({ state: "unreported" });
  });

  test("a lease does not wait for it", async () => {
    class Stalling extends MemoryStore {
      override setProgress = () => new Promise<never>(() => {});
    }
    const { coordinator } = await coordinatorOn(new Stalling());
    await coordinator.lease(NAMESPACE, leaseRequest({ nonce }));
    expect(await coordinator.lease(NAMESPACE, leaseRequest({ lastRun: 1, report }))).toMatchObject({ firstRun: 2 });
  });
});

describe("the clock of a holder", () => {
  const timeMs = Date.now();
  const now = () => timeMs;

  test("a lease is rejected when the holder's clock is ahead by more than eps: an operator must notice", async () => {
    const { coordinator, eventNames } = await coordinatorOn(new MemoryStore({ now }), { now });
    const ahead = coordinator.lease(NAMESPACE, leaseRequest({ sentAtMs: timeMs + EPS_MS + 1 }));
    const message = expect.stringContaining(`holder's clock is ${EPS_MS + 1} ms ahead`);
    await expect(ahead).rejects.toMatchObject({ code: "clock_skew", message });
    expect(eventNames()).toEqual(["init", "clock_skew"]);
    expect((await coordinator.status(NAMESPACE)).runsUsed).toBe(0);
  });

  test("a lease is granted when the holder's clock is ahead by no more than eps, or behind as a slow request", async () => {
    const { coordinator } = await coordinatorOn(new MemoryStore({ now }), { now });
    for (const sentAtMs of [timeMs + EPS_MS, timeMs, timeMs - 3_600_000, 0]) {
      await coordinator.lease(NAMESPACE, leaseRequest({ sentAtMs }));
    }
    expect((await coordinator.status(NAMESPACE)).runsUsed).toBe(4);
  });
});

describe("a coordinator that heartbeats", () => {
  /** On a store whose past can be set. */
  async function started() {
    const clock = new Clock();
    const store = new SettableStore(clock);
    const { now, pause } = clock;
    const { coordinator } = await coordinatorOn(store, {
      now,
      pause,
      bounds: store.boundsOf({ ...SHORT_BOUNDS, heartbeatEveryMs: 5 }),
    });
    coordinator.startHeartbeat();
    /** The code that readiness fails with; undefined when it does not. */
    const readiness = () =>
      coordinator.assertReady().then(
        () => undefined,
        ({ code }) => code as string,
      );
    return { clock, store, coordinator, readiness };
  }

  test("the heartbeat leaves no gap, and completes a recovery before a request waits for it", async () => {
    const { clock, store, coordinator } = await started();
    clock.timeMs += 1_000;
    await expect.poll(async () => (await store.readNamespace(NAMESPACE)).changedAtMs).toBe(clock.timeMs);
    store.server.epoch = "second:life:0";
    await expect.poll(async () => (await store.readNamespace(NAMESPACE)).highWaterMark).toBeGreaterThan(0);
    await coordinator.stopHeartbeat();
    expect(store.stepNames()).toEqual(expect.arrayContaining(["heartbeat", "claim", "confirm"]));
    expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 0, generation: 1 });
  });

  test("the heartbeat ends when it is stopped", async () => {
    const { store, coordinator } = await started();
    await expect.poll(() => store.steps.length).toBeGreaterThan(2);
    await coordinator.stopHeartbeat();
    const stepCount = store.steps.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(store.steps.length).toBe(stepCount);
  });

  test("a stop of the heartbeat waits for the one in flight", async () => {
    const { store, coordinator } = await started();
    let isInFlight = false;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    store.before = () => {
      isInFlight = true;
      return ended;
    };
    await expect.poll(() => isInFlight).toBe(true);
    let hasStopped = false;
    const stopped = coordinator.stopHeartbeat().then(() => {
      hasStopped = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(hasStopped).toBe(false);
    end();
    await stopped;
  });

  test("the heartbeat continues through rejections, and the coordinator is ready again when they end", async () => {
    const { store, coordinator, readiness } = await started();
    expect((await coordinator.assertReady()).namespaces).toEqual([NAMESPACE]);
    Object.assign(store.server, { role: "slave" });
    await expect.poll(readiness).toBe("store_is_replica");
    Object.assign(store.server, { role: "master" });
    await expect.poll(readiness).toBeUndefined();
    const { storeId } = await store.readNamespace(NAMESPACE);
    await stepOn(store, NAMESPACE, commandsFor(storeId).seal(FORKED_SEAL));
    await expect.poll(readiness).toBe("store_forked");
    await coordinator.stopHeartbeat();
  });
});

test("a run that is leased while it is inspected is never called skipped", async () => {
  const store = new MemoryStore();
  const { coordinator } = await coordinatorOn(store);
  await coordinator.lease(NAMESPACE, leaseRequest());
  const readNamespace = store.readNamespace.bind(store);
  store.readNamespace = async (namespace) => {
    await coordinator.lease(namespace, leaseRequest());
    return await readNamespace(namespace);
  };
  const callNumber = encodeCallNumber({ version: 0, run: 2, sequence: 0 });
  expect(await coordinator.inspect(NAMESPACE, callNumber)).toMatchObject({ verdict: "unreported", run: 2 });
});

test("the status shows an active guard, with the headroom up to the run ceiling", async () => {
  const { coordinator } = await coordinatorOn(new MemoryStore());
  await coordinator.lease(NAMESPACE, leaseRequest({ runCount: 64 }));
  const { guard } = await coordinator.status(NAMESPACE);
  expect(guard).toMatchObject({ state: "active", code: null, generation: 0, nodeCount: 1 });
  expect(guard.headroomRuns).toBeGreaterThan(60_000);
  expect(guard.headroomRuns).toBeLessThanOrEqual(65_537);
});

test("the status shows why nothing is leased, since when, and the command that fixes it", async () => {
  const store = new MemoryStore();
  const { coordinator } = await coordinatorOn(store);
  const { storeId } = await store.readNamespace(NAMESPACE);
  await stepOn(store, NAMESPACE, commandsFor(storeId).seal(FORKED_SEAL));
  const beforeMs = Date.now();
  const code = "store_forked";
  await expect(coordinator.lease(NAMESPACE, leaseRequest())).rejects.toMatchObject({ code });
  const { guard } = await coordinator.status(NAMESPACE);
  const explanation = expect.stringContaining("callnumber recover");
  expect(guard).toMatchObject({ state: "stopped", code, explanation });
  expect(guard.sinceMs).toBeGreaterThanOrEqual(beforeMs);
  await expect(coordinator.assertReady()).rejects.toMatchObject({
    code,
    message: expect.stringMatching(/^two copies of the store of namespace "main" /),
  });
});
