/**
 * `move` from a store that leases nothing because its clock or its last write is in the future: it needs no other step, and the new store begins
 * above every version that the old one may have reached under that clock.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import type { CoordinatorError } from "../src/errors.js";
import { type CheckpointFile, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { type MoveOptions, moveNamespace, planMove } from "../src/operator/move.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { coordinatorOf, leaseOf } from "./places-for-move.js";
import { Clock, SettableStore } from "./settable-store.js";
import { stepOn } from "./steps-for-test.js";
import { withNamespace } from "./store-in-hand.js";

const DAY_MS = 24 * 3_600_000;
const YEAR_MS = 365 * DAY_MS;

/** How far the clock of a store is ahead of the right one. */
interface StoreClock {
  aheadMs: number;
}

function storeWith(clock: StoreClock): Store {
  const now = () => Date.now() + clock.aheadMs;
  return Object.assign(new MemoryStore({ now }), { now });
}

function moving(
  store: Store,
  checkpointFile: CheckpointFile = NO_CHECKPOINT_FILE,
): MoveOptions & { target: { store: Store } } {
  const target = {
    store: storeWith({ aheadMs: 0 }),
    place: `memory:${randomUUID()}`,
    checkpointFile: NO_CHECKPOINT_FILE,
  };
  return { store, namespace: NAMESPACE, checkpointFile, bounds: SHORT_BOUNDS, nodeCount: 1, target };
}

/** A store of that age whose last write was made under a clock so far ahead, which is right again. */
async function afterClockAhead(aheadMs: number, { rate = 2, ageMs = YEAR_MS } = {}) {
  const clock = { aheadMs };
  const storeId = storeIdFrom(1, { initializedAtMs: Date.now() - ageMs, rate });
  const one = await withNamespace(storeWith(clock), { storeId });
  clock.aheadMs = 0;
  return one;
}

test("a move from a store whose last write is in the future needs no other step", async () => {
  const { store, read } = await afterClockAhead(9 * YEAR_MS);
  expect((await read()).changedAtMs).toBeGreaterThan(Date.now() + 8 * YEAR_MS);
  await expect(leaseOf(coordinatorOf(store))).rejects.toMatchObject({ code: "clock_moved_backward" });
  const options = moving(store);
  expect(await planMove(options)).toMatchObject({ stage: "new", firstVersion: 1 });
  expect(await moveNamespace(options)).toMatchObject({ record: { version: 1 } });
  expect(await leaseOf(coordinatorOf(options.target.store))).toMatchObject({ version: 1 });
  await expect(leaseOf(coordinatorOf(store))).rejects.toMatchObject({ code: "namespace_moved" });
  expect(await read()).toMatchObject({ phase: 2 });
});

test("a move begins above each version that the store may have reached under a clock that was ahead", async () => {
  // At this rate a version lasts two years and 47 days: there may have been three advances, and the store may have forgotten them.
  const { store, read } = await afterClockAhead(7 * YEAR_MS, { rate: 16, ageMs: 0 });
  expect(await read()).toMatchObject({ version: 0 });
  const options = moving(store);
  expect(await planMove(options)).toMatchObject({ firstVersion: 4 });
  expect(await moveNamespace(options)).toMatchObject({ record: { version: 4, firstVersion: 4 } });
});

test("a move begins above a version that only the checkpoint knows", async () => {
  const { store, storeId } = await afterClockAhead(0);
  const known = { storeId, ledgerId: ledgerIdOf(2, 5), generation: 0, nodeCount: 1 };
  const options = moving(store, { ...NO_CHECKPOINT_FILE, read: () => known, readable: () => known });
  expect(await moveNamespace(options)).toMatchObject({ record: { version: 3 } });
});

test("a move begins above the next version when the ceiling of this one has reached its end: that may be in use", async () => {
  const { store } = await withNamespace(storeWith({ aheadMs: 0 }), { storeId: storeIdFrom(RUN_MAX) });
  expect(await planMove(moving(store))).toMatchObject({ firstVersion: 2 });
});

test("a move from a store that was silent for more than 30 days asks about the clock, in its preview too, and nothing else", async () => {
  const clock = { aheadMs: 0 };
  const { store } = await withNamespace(storeWith(clock));
  clock.aheadMs = 31 * DAY_MS;
  const later = { now: () => Date.now() + clock.aheadMs };
  await expect(leaseOf(coordinatorOf(store, later))).rejects.toMatchObject({ code: "manual_recovery_required" });
  const options = { ...moving(store), ...later };
  const target = { ...options.target, store: storeWith(clock) };
  for (const act of [planMove, moveNamespace]) {
    await expect(act({ ...options, target })).rejects.toMatchObject({
      code: "manual_recovery_required",
      message: expect.stringMatching(/31 days ago.*Nothing was moved.*--confirm-clock/s),
    });
  }
  const confirmed = { ...options, target, isClockChecked: true };
  expect(await moveNamespace(confirmed)).toMatchObject({ record: { version: 1 } });
});

test.each<[string, string, () => Promise<MoveOptions>]>([
  [
    "the source is one of two copies",
    "store_forked",
    async () => {
      const { store, commands } = await afterClockAhead(0);
      await stepOn(store, NAMESPACE, commands.seal(FORKED_SEAL));
      return moving(store);
    },
  ],
  [
    "the source is a replica",
    "store_is_replica",
    async () => {
      const clock = new Clock();
      const store = Object.assign(new SettableStore(clock), { leases: async () => [] });
      await withNamespace(store);
      Object.assign(store.server, { role: "slave" });
      return moving(store);
    },
  ],
  [
    "the clock shows a time before the release",
    "clock_skew",
    async () => {
      const { store } = await afterClockAhead(0);
      const target = { ...moving(store).target, store: storeWith({ aheadMs: -50 * YEAR_MS }) };
      return { ...moving(store), target };
    },
  ],
])("a plan of a move is rejected as the move is when %s", async (_, code, prepare) => {
  const options = await prepare();
  const rejections = [];
  for (const act of [planMove, moveNamespace, planMove]) {
    const rejection = await act(options).catch(({ code: seen, message }: CoordinatorError) => `${seen}: ${message}`);
    // How far a clock is off is measured each time.
    rejections.push(String(rejection).replace(/\d+ ms/, "N ms"));
  }
  expect(rejections[0]).toMatch(new RegExp(`^${code}: `));
  expect([...new Set(rejections)]).toHaveLength(1);
});
