/**
 * The coordinator as its own importer, while the store forgets, advances, is moved, or contradicts it: it generates a number exactly where a client in
 * another process would, and none twice.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { createClient, type LeaseSource } from "@callnumber/client";
import { ERROR_RULES, type ErrorCode, type Lease, type LeaseRequest, ledgerIdOf } from "@callnumber/protocol/api";
import { type CallNumberParts, decodeCallNumber, RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { SILENT_LOG } from "../src/log.js";
import { NumberMaker } from "../src/numbers/number-maker.js";
import { advanceVersion, planAdvance } from "../src/operator/advance-version.js";
import { moveNamespace } from "../src/operator/move.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { newWorld, type World } from "./guard-in-hand.js";
import { coordinatorOf, memoryPlace } from "./places-for-move.js";
import { init, recentStoreId } from "./steps-for-move.js";

const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
/** For tests that let the clock run when a wait was in vain. */
const SHORT_WAIT_MS = 300;
const WAIT_MS = 10_000;
/** Two of them use up a run. */
const HALF_RUN = SEQUENCE_COUNT / 2;

function makerOf(source: LeaseSource, waitTimeoutMs = WAIT_MS): (count: number) => Promise<readonly string[]> {
  const maker = new NumberMaker({ source, log: SILENT_LOG, waitTimeoutMs });
  onTestFinished(() => maker.close());
  return async (count) => (await maker.make(NAMESPACE, count, { requester: {} })).callNumbers;
}

/** As an importer in another process has it. */
function importerOf(source: LeaseSource, waitTimeoutMs = WAIT_MS): (count: number) => Promise<readonly string[]> {
  const options = { prefetch: false, maxRunsPerLease: 1, waitTimeoutMs, hooks: { onRetry() {} } } as const;
  const client = createClient({ source, namespace: NAMESPACE, holder, ...options });
  onTestFinished(() => client.close());
  return (count) => client.take(count);
}

function coordinatorIn({ store, clock }: World): Coordinator {
  const { now, pause } = clock;
  return new Coordinator({ store, name: "test", now, pause, bounds: store.boundsOf(), random: () => 0.75 });
}

/** Asks until it is given numbers; the clock runs as long as the coordinator asks to wait. */
async function untilMade({ clock }: World, make: () => Promise<readonly string[]>): Promise<readonly string[]> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      const { code, retryAfterMs = 0 } = error as { readonly code: ErrorCode; readonly retryAfterMs?: number };
      if (ERROR_RULES[code]?.retry === "never") throw error;
      clock.timeMs += retryAfterMs;
    }
  }
}

const runsIn = (callNumbers: readonly string[]) => [...new Set(callNumbers.map(ledgerIdIn))];
const ledgerIdIn = (callNumber: string) => {
  const { version, run }: CallNumberParts = decodeCallNumber(callNumber);
  return ledgerIdOf(version, run);
};

test("after a rollback the coordinator and an importer go on alike: no number comes twice, and new runs lie above the skip", async () => {
  const world = await newWorld();
  const { store } = world;
  const coordinator = coordinatorIn(world);
  const earlier = store.backup();
  const makers = [makerOf(coordinator, SHORT_WAIT_MS), importerOf(coordinator, SHORT_WAIT_MS)] as const;
  const before = (await Promise.all(makers.map((make) => untilMade(world, () => make(HALF_RUN))))).flat();
  const { highWaterMark } = await store.readNamespace(NAMESPACE);
  store.restore(earlier);
  store.server.epoch = "second:life:0";
  const after: string[] = [];
  for (const make of makers) {
    // The rest of the run that was leased before, as every importer uses it; then a run of after the recovery.
    const rest = await make(HALF_RUN);
    expect(runsIn(rest).every((run) => run <= highWaterMark)).toBe(true);
    const fresh = await untilMade(world, () => make(HALF_RUN));
    expect(runsIn(fresh).every((run) => run > highWaterMark)).toBe(true);
    after.push(...rest, ...fresh);
  }
  // An importer of after the recovery.
  const third = importerOf(coordinator, SHORT_WAIT_MS);
  after.push(...(await untilMade(world, () => third(SEQUENCE_COUNT))));
  const all = [...before, ...after];
  expect(new Set(all).size).toBe(all.length);
});

test("a namespace that is lost while a run is held is refused when that run is used up, as for an importer", async () => {
  const world = await newWorld();
  const coordinator = coordinatorIn(world);
  const makers = [makerOf(coordinator), importerOf(coordinator)];
  const before = (await Promise.all(makers.map((make) => make(HALF_RUN)))).flat();
  world.store.restore(new Map());
  for (const make of makers) {
    before.push(...(await make(HALF_RUN)));
    await expect(make(1)).rejects.toMatchObject({ code: "namespace_lost" });
  }
  expect(new Set(before).size).toBe(2 * SEQUENCE_COUNT);
});

test("numbers continue in the next version when the last run of a version is used up", async () => {
  const world = await newWorld({ firstRun: RUN_MAX });
  const make = makerOf(coordinatorIn(world), SHORT_WAIT_MS);
  const last = [...(await untilMade(world, () => make(HALF_RUN))), ...(await make(HALF_RUN))];
  await expect(make(1)).rejects.toMatchObject({ code: "run_space_exhausted" });
  const { store, clock } = world;
  const common = { store, namespace: NAMESPACE, checkpointFile: NO_CHECKPOINT_FILE, now: clock.now };
  const options = { ...common, bounds: store.boundsOf(), isForcedEarly: true, isClockChecked: false };
  await advanceVersion(options, await planAdvance(options));
  const [next = ""] = await untilMade(world, () => make(1));
  expect(decodeCallNumber(next).version).toBe(1);
  expect(new Set([...last, next]).size).toBe(SEQUENCE_COUNT + 1);
});

test("after a move the run in use is used up, and then requests fail with namespace_moved; the new store continues apart", async () => {
  const [from, to] = [await memoryPlace(), await memoryPlace()];
  const [store, target] = [await from.open(), await to.open()];
  await init(store, recentStoreId());
  const make = makerOf(coordinatorOf(store));
  const old = [...(await make(HALF_RUN))];
  const { place } = to;
  const common = { namespace: NAMESPACE, checkpointFile: NO_CHECKPOINT_FILE, bounds: SHORT_BOUNDS, nodeCount: 1 };
  await moveNamespace({ ...common, store, target: { store: target, place, checkpointFile: NO_CHECKPOINT_FILE } });
  old.push(...(await make(HALF_RUN)));
  await expect(make(1)).rejects.toMatchObject({ code: "namespace_moved" });
  const moved = await makerOf(coordinatorOf(target))(HALF_RUN);
  expect(moved.every((callNumber) => decodeCallNumber(callNumber).version === 1)).toBe(true);
  expect(new Set([...old, ...moved]).size).toBe(SEQUENCE_COUNT + HALF_RUN);
});

/** Grants runs 1, 2, …; `failure` is thrown instead while it is set. */
function scriptedSource() {
  const script = {
    failure: undefined as CoordinatorError | undefined,
    alter: (lease: Lease): Lease => lease,
    leaseCount: 0,
    async lease(namespace: string, { nonce }: LeaseRequest): Promise<Lease> {
      if (script.failure) throw script.failure;
      const firstRun = ++script.leaseCount;
      const lease = { namespace, storeId: "store", version: 0, firstRun, runCount: 1, leasedAtMs: 1, nonce };
      return script.alter({ ...lease, proof: "p".repeat(43) });
    },
    report: async () => {},
  };
  return script;
}

test.each(["run_above_high_water_mark", "store_id_mismatch", "store_forked"] as const)(
  "after %s the rest of the run is not used, and an error says so",
  async (code) => {
    const source = scriptedSource();
    const make = makerOf(source);
    await make(HALF_RUN);
    source.failure = new CoordinatorError(code, "the store is not what it was");
    await expect(make(HALF_RUN + 1)).rejects.toBe(source.failure);
    await expect(make(1)).rejects.toBe(source.failure);
  },
);

test("what an operator repairs in the store needs no restart: the next request takes a new run", async () => {
  const source = scriptedSource();
  const make = makerOf(source);
  const [before = ""] = await make(1);
  source.failure = new CoordinatorError("store_forked", "there are two copies");
  await expect(make(SEQUENCE_COUNT)).rejects.toBe(source.failure);
  source.failure = undefined;
  const [after = ""] = await make(1);
  expect([before, after].map((one) => decodeCallNumber(one).run)).toEqual([1, 2]);
});

test.each<[string, (lease: Lease) => Lease, string]>([
  ["another store", (lease) => ({ ...lease, storeId: "other" }), "store_mismatch"],
  ["a run that is not above the last one", (lease) => ({ ...lease, firstRun: 1 }), "manual_recovery_required"],
])("after a lease of %s no more numbers are made before a restart", async (_, alter, code) => {
  const source = scriptedSource();
  const make = makerOf(source);
  await make(1);
  source.alter = alter;
  await expect(make(SEQUENCE_COUNT)).rejects.toMatchObject({ code });
  source.alter = (lease) => lease;
  await expect(make(1)).rejects.toMatchObject({ code });
});

test("a source that does not answer is reported as an unavailable store, with the time to wait", async () => {
  const source = { ...scriptedSource(), lease: () => new Promise<never>(() => {}) };
  await expect(makerOf(source, 20)(1)).rejects.toMatchObject({ name: "CoordinatorError", code: "store_unavailable" });
});

test("a request that waits when the coordinator stops, and a later one, get shutting_down", async () => {
  const source = { ...scriptedSource(), lease: () => new Promise<never>(() => {}) };
  const maker = new NumberMaker({ source, log: SILENT_LOG });
  const waiting = maker.make(NAMESPACE, 1, { requester: {} });
  const rejected = expect(waiting).rejects.toMatchObject({ code: "shutting_down" });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await maker.close();
  await rejected;
  await expect(maker.make(NAMESPACE, 1, { requester: {} })).rejects.toMatchObject({ code: "shutting_down" });
});
