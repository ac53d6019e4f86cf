/**
 * What every store must do with the steps of the guard: what each changes, that a rejection changes nothing and has its code. A part of
 * the definition of a store (store-contract.ts). The rules themselves are tested in decide.test.ts, from both sides of each limit;
 * apply.test.ts shows in random states
 * that a store writes nothing that they would refuse.
 * Guarantees: G1, G2, G12 (docs/guarantees.md).
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { BURST_RUNS, ceilingAt } from "../src/guard/ceiling.js";
import { EPS_MS } from "../src/guard/clocks.js";
import type { StepCommand } from "../src/guard/commands.js";
import { FORKED_SEAL, PHASES } from "../src/guard/record.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { findLease } from "../src/ledger/read-ledger.js";
import type { Store } from "../src/stores/store.js";
import { type Commands, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { stepOn } from "./steps-for-test.js";
import type { OpenOptions, StoreTraits } from "./store-contract.js";
import { type InHandOptions, inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

type Open = (options?: OpenOptions) => Promise<{ readonly store: Store }>;

export function describeSteps(open: Open, { sharesClock }: StoreTraits): void {
  async function storeFrom(firstRun = 1, options: InHandOptions & Partial<StoreIdFields> = {}): Promise<StoreInHand> {
    const { now, bounds, ...id } = options;
    const { store } = await open(now ? { now } : {});
    const own = { ...(now ? { now } : {}), ...(bounds ? { bounds } : {}) };
    return withNamespace(store, { storeId: storeIdFrom(firstRun, id), ...own });
  }

  /** Whose version 0 can be left: its ceiling has passed the last run. */
  const endingStoreFrom = (firstRun: number) =>
    storeFrom(firstRun, { initializedAtMs: Date.now() - 2 * EPS_MS, rate: 1 });

  const nothing = async () => {};
  const claimed = ({ step, commands }: StoreInHand) => step(commands.claim(0));

  test("every step returns the record as it left it, and on one node nothing is waited for or checked", async () => {
    const { step, storeId, commands } = await storeFrom(10);
    const { after, runCount, acknowledgedCount, check } = await step(commands.lease({ runCount: 3 }));
    expect({ runCount, acknowledgedCount, check }).toEqual({ runCount: 3, acknowledgedCount: 0, check: undefined });
    expect(after).toMatchObject({ storeId, version: 0, highWaterMark: 12, generation: 0, nodeCount: 1 });
  });

  test("a confirmation skips ahead to the ceiling of a moment later: above all that was ever leased", async () => {
    const { storeId, store, lease, read, skipAhead } = await storeFrom(1, { initializedAtMs: Date.now(), rate: 16 });
    await lease({ runCount: 64 });
    const beforeMs = Date.now();
    const mark = await skipAhead();
    expect(mark).toBeGreaterThanOrEqual(ceilingOf(storeId, beforeMs + 2 * EPS_MS));
    expect(mark).toBeLessThanOrEqual(ceilingOf(storeId, Date.now() + 2 * EPS_MS));
    expect(await read()).toMatchObject({ highWaterMark: mark, phase: PHASES.open, generation: 1 });
    for (const skipped of [65, mark]) expect(await findLease(store, NAMESPACE, skipped)).toBeUndefined();
  });

  test("the next run after a recovery is rejected with the time to wait, and then leased right above the mark", async () => {
    let waitedMs = 0;
    const { storeId, lease, skipAhead } = await storeFrom(1, {
      initializedAtMs: Date.now(),
      rate: 16,
      bounds: SHORT_BOUNDS,
      ...(sharesClock ? { now: () => Date.now() + waitedMs } : {}),
    });
    const mark = await skipAhead();
    const early = await lease({ runCount: 64 }).catch((error: unknown) => error);
    expect(early).toMatchObject({ code: "run_ceiling_reached", retryAfterMs: expect.any(Number) });
    const { retryAfterMs } = early as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(Math.ceil(2 * SHORT_BOUNDS.epsMs + 1000 / 16));
    if (sharesClock) waitedMs = retryAfterMs;
    // One more: timers may be early by the part of a millisecond.
    else await new Promise((resolve) => setTimeout(resolve, retryAfterMs + 1));
    expect(await lease()).toMatchObject({ firstRun: mark + 1, runCount: 1 });
    expect(mark + 1).toBeLessThanOrEqual(ceilingOf(storeId, Date.now() + waitedMs));
  });

  test("recover makes a record that is gone again, from a store id and a floor", async () => {
    const { store } = await open();
    const storeId = storeIdFrom(1, { initializedAtMs: Date.now() - 10_000, rate: 16 });
    const { commands, read, skipAhead } = inHand(store, { storeId });
    const proofKey = "0f".repeat(32);
    await stepOn(store, NAMESPACE, commands.recover({ floor: 90, nodeCount: 1, generationMin: 5, proofKey }));
    expect(await read()).toMatchObject({ storeId, firstRun: 1, phase: PHASES.claimed, proofKey, nodeCount: 1 });
    expect(await store.listNamespaces()).toEqual([NAMESPACE]);
    expect(await skipAhead()).toBeGreaterThan(90);
  });

  test("advance ends the version: the next lease is run 1 of the next one, in a new generation", async () => {
    const { store, commands, lease, read } = await endingStoreFrom(RUN_MAX - 1);
    await lease({ runCount: 2 });
    await expect(lease()).rejects.toMatchObject({ code: "run_space_exhausted" });
    const { after, runCount } = await stepOn(store, NAMESPACE, commands.advance(0));
    expect(runCount).toBe(0);
    expect(after).toMatchObject({ version: 1, highWaterMark: 0, generation: 1 });
    expect(await read()).toMatchObject({ version: 1, highWaterMark: 0, generation: 1, phase: PHASES.open });
    const floor = ledgerIdOf(0, RUN_MAX);
    expect(await lease({ floor, provenRun: floor, runCount: 3 })).toMatchObject({
      version: 1,
      firstRun: 1,
      runCount: 3,
    });
    expect(await findLease(store, NAMESPACE, ledgerIdOf(1, 3))).toMatchObject({ version: 1, firstRun: 1 });
    expect(await findLease(store, NAMESPACE, RUN_MAX)).toMatchObject({ version: 0, firstRun: RUN_MAX - 1 });
    expect(await findLease(store, NAMESPACE, ledgerIdOf(1, 0))).toBeUndefined();
    const leases = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
    expect(leases.map(({ version }) => version)).toEqual([1, 0]);
  });

  test.each<[string, (store: StoreInHand) => Promise<unknown>, Parameters<Commands["advance"]>[1]]>([
    ["claimed", claimed, {}],
    ["below a generation that is known", nothing, { generationMin: 1 }],
    ["below a run that was leased", ({ lease }) => lease(), { floor: ledgerIdOf(1, 7) }],
  ])(
    "advance leaves a store that is %s to be claimed, and it skips ahead to the next ceiling",
    async (_, prepare, own) => {
      const one = await endingStoreFrom(RUN_MAX - BURST_RUNS + 10);
      const { store, storeId, commands, skipAhead, read } = one;
      await prepare(one);
      const { after } = await stepOn(store, NAMESPACE, commands.advance(0, own));
      expect(after).toMatchObject({ version: 1, highWaterMark: 0 });
      expect(after.generation).toBeGreaterThan(0);
      expect((await read()).phase).toBe(PHASES.claimed);
      await refusesAndKeeps(one, commands.lease(), { reason: "claimed" });
      expect(await skipAhead()).toBeGreaterThanOrEqual(ceilingOf(storeId, Date.now(), 1));
    },
  );

  test("advance of a store that forgot one lets it continue above everything that was leased before", async () => {
    // The same store a second time: a copy that was put back to a moment before the advance.
    const { store, storeId, commands, lease } = await endingStoreFrom(RUN_MAX);
    await stepOn(store, NAMESPACE, commands.advance(0));
    const { firstRun, runCount } = await lease({ runCount: 64 });
    const again = await withNamespace((await open()).store, { storeId });
    await claimed(again);
    for (const floor of [0, RUN_MAX, ledgerIdOf(1, 5), ledgerIdOf(2, 1)]) {
      await refusesAndKeeps(again, commands.confirm(1, { floor }), { code: "run_space_exhausted" });
    }
    await stepOn(again.store, NAMESPACE, commands.advance(0));
    expect(await again.skipAhead()).toBeGreaterThanOrEqual(firstRun + runCount);
  });

  test.skipIf(sharesClock).each([1, -1])("clocks that differ by more than eps end every step (%i)", async (sign) => {
    let offsetMs = 0;
    const one = await storeFrom(1, { now: () => Date.now() + offsetMs });
    const { commands, lease } = one;
    offsetMs = sign * (EPS_MS + 1_000);
    const message = expect.stringMatching(sign < 0 ? /is \d+ ms ahead of/ : /is \d+ ms behind/);
    for (const command of everyStepOf(commands)) {
      await refusesAndKeeps(one, command, { code: "clock_skew", message });
    }
    offsetMs = 0;
    expect((await lease()).firstRun).toBe(1);
  });
}

/** Every step that finds a record, none of which is rejected by an open record of generation 0 that leased nothing. */
function everyStepOf(commands: Commands): StepCommand[] {
  const { lease, heartbeat, claim, confirm, seal, recover, advance } = commands;
  return [lease(), heartbeat(), claim(0), confirm(0), seal(FORKED_SEAL), recover(), advance(0)];
}

async function refusesAndKeeps({ store, step }: StoreInHand, command: StepCommand, expected: object): Promise<void> {
  const before = await stateOf(store);
  await expect(step(command), command.step).rejects.toMatchObject(expected);
  expect(await stateOf(store)).toEqual(before);
}

async function stateOf(store: Store): Promise<unknown> {
  const ledger = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
  return { record: await store.readNamespace(NAMESPACE), ledger };
}

function ceilingOf(storeId: string, timeMs: number, version = 0): number {
  return ceilingAt(parseStoreId(storeId) as StoreIdFields, version, timeMs);
}
