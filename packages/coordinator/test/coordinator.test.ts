/**
 * The rules that stand above every store: whom a coordinator leases to, what it tells the store, and what it discards.
 * Guarantees: G6 (docs/guarantees.md).
 */

import { encodeCallNumber, RUN_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { Coordinator, type CoordinatorOptions } from "../src/coordinator.js";
import { EPS_MS } from "../src/guard/bounds.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import type { Log } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import { commandsFor, holder, NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { until } from "./redis-for-test.js";
import { Clock, SettableStore } from "./settable-store.js";

const evidence = { lastRun: null, receipt: null };
const lease = (own: object = {}) => {
  const asked = { runCount: 1, nonce: "nonce-0123456789", holder, sentAtMs: Date.now() };
  return { ...asked, ...evidence, ...own };
};

async function coordinatorOn(store: MemoryStore, options: Partial<CoordinatorOptions> = {}): Promise<Coordinator> {
  const coordinator = new Coordinator({ store, name: "test", ...options });
  await coordinator.initNamespace(NAMESPACE);
  return coordinator;
}

function listening(): { log: Log; events: string[] } {
  const events: string[] = [];
  const note = (_: object, event: string) => void events.push(event);
  return { events, log: { debug: note, info: note, warn: note, error: note } };
}

describe("a coordinator", () => {
  test("counts as known what a holder has only up to the mark", async () => {
    const { log, events } = listening();
    const coordinator = await coordinatorOn(new MemoryStore(), { log });
    await coordinator.lease(NAMESPACE, lease({ runCount: 5 }));
    await expect(coordinator.lease(NAMESPACE, lease({ lastRun: 6 }))).rejects.toMatchObject({
      code: "run_above_high_water_mark",
    });
    expect((await coordinator.lease(NAMESPACE, lease({ lastRun: 5 }))).firstRun).toBe(6);
    expect(events).toEqual(["init", "pin", "lease", "run_above_high_water_mark", "lease"]);
  });

  test("answers with the nonce of the request and a receipt, and writes no receipt into its log", async () => {
    const told: object[] = [];
    const note = (fields: object) => void told.push(fields);
    const coordinator = await coordinatorOn(new MemoryStore(), {
      log: { debug: note, info: note, warn: note, error: note },
    });
    const granted = await coordinator.lease(NAMESPACE, lease({ nonce: "nonce-of-somebody" }));
    expect(granted).toMatchObject({ namespace: NAMESPACE, nonce: "nonce-of-somebody" });
    expect(granted.receipt).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(JSON.stringify(told)).not.toContain(granted.receipt);
  });

  test.each([
    ["firstRun", [0, RUN_MAX + 1, 1.5, Number.NaN]],
    ["rate", [0, 17, 1.5, Number.NaN]],
    ["nodeCount", [0, 100, 1.5, Number.NaN]],
  ])("refuses to begin with a bad %s", async (name, values) => {
    const store = new MemoryStore();
    const coordinator = new Coordinator({ store, name: "test" });
    for (const value of values) {
      await expect(coordinator.initNamespace(NAMESPACE, { [name]: value })).rejects.toThrow(RangeError);
    }
    expect(await store.listNamespaces()).toEqual([]);
  });

  test("refuses misuse before it asks the store", async () => {
    const coordinator = await coordinatorOn(new MemoryStore());
    for (const runCount of [0, 65, 1.5, Number.NaN]) {
      await expect(coordinator.lease(NAMESPACE, lease({ runCount }))).rejects.toThrow(RangeError);
    }
    for (const sentAtMs of [-1, 1.5, Number.NaN, undefined]) {
      await expect(coordinator.lease(NAMESPACE, lease({ sentAtMs }))).rejects.toThrow(RangeError);
    }
    await expect(coordinator.lease("Main", lease())).rejects.toThrow(TypeError);
    for (const bad of [{ nonce: undefined }, { nonce: "short" }, { holder: undefined }]) {
      await expect(coordinator.lease(NAMESPACE, lease(bad))).rejects.toThrow(TypeError);
    }
    const report = { nonce: lease().nonce, lastSequence: 0, state: "open" } as const;
    await expect(coordinator.report(NAMESPACE, 1, { ...report, lastSequence: 16_384 })).rejects.toThrow(RangeError);
    await expect(coordinator.report(NAMESPACE, 1, { ...report, state: "shut" as never })).rejects.toThrow(TypeError);
    await expect(coordinator.run(NAMESPACE, -1)).rejects.toThrow(RangeError);
    expect((await coordinator.status(NAMESPACE)).runsUsed).toBe(0);
  });
});

describe("the clock of a holder", () => {
  test("ahead of the coordinator's by more than eps is refused: one of them lies, and somebody must notice", async () => {
    const { log, events } = listening();
    const timeMs = Date.now();
    const now = () => timeMs;
    const coordinator = await coordinatorOn(new MemoryStore({ now }), { log, now });
    await expect(coordinator.lease(NAMESPACE, lease({ sentAtMs: timeMs + EPS_MS + 1 }))).rejects.toMatchObject({
      code: "clock_skew",
      message: expect.stringContaining(`holder's clock is ${EPS_MS + 1} ms ahead`),
    });
    expect(events).toEqual(["init", "clock_skew"]);
    expect((await coordinator.status(NAMESPACE)).runsUsed).toBe(0);
  });

  test("ahead by no more, or behind as a request that took its time, is none of its business", async () => {
    const timeMs = Date.now();
    const now = () => timeMs;
    const coordinator = await coordinatorOn(new MemoryStore({ now }), { now });
    for (const sentAtMs of [timeMs + EPS_MS, timeMs, timeMs - 3_600_000, 0]) {
      await coordinator.lease(NAMESPACE, lease({ sentAtMs }));
    }
    expect((await coordinator.status(NAMESPACE)).runsUsed).toBe(4);
  });
});

describe("a coordinator that heartbeats", () => {
  /** On a store whose past can be set. */
  async function touching() {
    const clock = new Clock();
    const store = new SettableStore(clock);
    const { now, pause } = clock;
    const bounds = { ...SHORT_BOUNDS, heartbeatEveryMs: 5 };
    const coordinator = new Coordinator({ store, name: "test", now, pause, bounds });
    await coordinator.initNamespace(NAMESPACE);
    coordinator.startHeartbeat();
    return { clock, store, coordinator };
  }

  test("leaves no silence, and settles a doubt before anybody asks for a run", async () => {
    const { clock, store, coordinator } = await touching();
    clock.timeMs += 1_000;
    await until(async () => (await store.readNamespace(NAMESPACE)).changedAtMs === clock.timeMs);
    store.server.epoch = "second:life:0";
    await until(async () => (await store.readNamespace(NAMESPACE)).highWaterMark > 0);
    await coordinator.stopHeartbeat();
    expect(store.stepNames()).toEqual(expect.arrayContaining(["heartbeat", "claim", "confirm"]));
    expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 0, generation: 1 });
  });

  test("heartbeats no more when it is told to stop", async () => {
    const { store, coordinator } = await touching();
    await until(async () => store.steps.length > 2);
    await coordinator.stopHeartbeat();
    const stepCount = store.steps.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(store.steps.length).toBe(stepCount);
  });

  test("lets a heartbeat end that is under way, before whoever stops it goes on", async () => {
    const { store, coordinator } = await touching();
    let isUnderWay = false;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    store.before = () => {
      isUnderWay = true;
      return ended;
    };
    await until(async () => isUnderWay);
    let hasStopped = false;
    const stopped = coordinator.stopHeartbeat().then(() => {
      hasStopped = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(hasStopped).toBe(false);
    end();
    await stopped;
  });

  test("goes on touching through refusals, and is ready again when they end", async () => {
    const { store, coordinator } = await touching();
    expect((await coordinator.assertReady()).namespaces).toEqual([NAMESPACE]);
    Object.assign(store.server, { role: "slave" });
    await untilRefused("store_is_replica");
    Object.assign(store.server, { role: "master" });
    await until(
      async () =>
        await coordinator.assertReady().then(
          () => true,
          () => false,
        ),
    );
    const { storeId } = await store.readNamespace(NAMESPACE);
    await store.step(NAMESPACE, commandsFor(storeId).seal(FORKED_SEAL));
    await untilRefused("store_forked");
    await coordinator.stopHeartbeat();

    async function untilRefused(code: string): Promise<void> {
      await until(
        async () =>
          await coordinator.assertReady().then(
            () => false,
            (error) => error.code === code,
          ),
      );
    }
  });
});

test("a run that is leased while somebody asks about it is never told to be skipped", async () => {
  const store = new MemoryStore();
  const coordinator = await coordinatorOn(store);
  await coordinator.lease(NAMESPACE, lease());
  const readNamespace = store.readNamespace.bind(store);
  store.readNamespace = async (namespace) => {
    await coordinator.lease(namespace, lease());
    return await readNamespace(namespace);
  };
  const callNumber = encodeCallNumber({ version: 0, run: 2, sequence: 0 });
  expect(await coordinator.inspect(NAMESPACE, callNumber)).toMatchObject({ verdict: "unreported", run: 2 });
});

describe("the status", () => {
  test("tells how the guard stands: open, with room up to the line", async () => {
    const coordinator = await coordinatorOn(new MemoryStore());
    await coordinator.lease(NAMESPACE, lease({ runCount: 64 }));
    const { guard } = await coordinator.status(NAMESPACE);
    expect(guard).toMatchObject({ state: "active", code: null, generation: 0, nodeCount: 1 });
    expect(guard.headroomRuns).toBeGreaterThan(60_000);
    expect(guard.headroomRuns).toBeLessThanOrEqual(65_537);
  });

  test("tells why nothing is leased, since when, and what to type", async () => {
    const store = new MemoryStore();
    const coordinator = await coordinatorOn(store);
    const { storeId } = await store.readNamespace(NAMESPACE);
    await store.step(NAMESPACE, commandsFor(storeId).seal(FORKED_SEAL));
    const beforeMs = Date.now();
    await expect(coordinator.lease(NAMESPACE, lease())).rejects.toMatchObject({ code: "store_forked" });
    const { guard } = await coordinator.status(NAMESPACE);
    expect(guard).toMatchObject({
      state: "stopped",
      code: "store_forked",
      explanation: expect.stringContaining("callnumber recover"),
    });
    expect(guard.sinceMs).toBeGreaterThanOrEqual(beforeMs);
    await expect(coordinator.assertReady()).rejects.toMatchObject({ code: "store_forked" });
  });
});
