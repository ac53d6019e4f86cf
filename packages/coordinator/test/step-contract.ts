/**
 * What every store must do with the steps of the guard: what each changes, that a rejection changes nothing and has its code. A part of
 * the definition of a store (store-contract.ts). The rules themselves are tested in decide.test.ts, from both sides of each limit;
 * apply.test.ts shows in random states
 * that a store writes nothing that they would refuse.
 * Guarantees: G1, G2, G12 (docs/guarantees.md).
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { BURST_RUNS, EPS_MS, GAP_MS } from "../src/guard/bounds.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import type { StepCommand } from "../src/guard/commands.js";
import { FORKED_SEAL, PHASES } from "../src/guard/record.js";
import { MOVED_SEAL } from "../src/guard/seals.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { findLease } from "../src/ledger/read-ledger.js";
import type { Store } from "../src/stores/store.js";
import { type Commands, commandsFor, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
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
  const sealed =
    (seal: string) =>
    ({ step, commands }: StoreInHand) =>
      step(commands.seal(seal));
  const leased = ({ lease }: StoreInHand) => lease({ runCount: 3 });

  test.each<[string, (store: StoreInHand) => Promise<unknown>, (commands: Commands) => readonly StepCommand[], object]>(
    [
      [
        "every step but recover, while it is sealed as one of two copies",
        sealed(FORKED_SEAL),
        (commands) => everyStepOf(commands).filter(({ step }) => step !== "recover"),
        { code: "store_forked" },
      ],
      ["every step, while it is sealed as moved", sealed(MOVED_SEAL), everyStepOf, { code: "namespace_moved" }],
      [
        "lease, heartbeat and seal, when the caller saw a later generation",
        nothing,
        ({ lease, heartbeat, seal }) =>
          [lease, heartbeat, seal.bind(undefined, FORKED_SEAL)].map((of) => of({ generationMin: 1 })),
        { reason: "generation_stale", generation: 0 },
      ],
      [
        "lease, heartbeat and seal, when the caller knows of a greater run, in this version or the next",
        leased,
        ({ lease, heartbeat, seal }) =>
          [4, ledgerIdOf(1, 0)].flatMap((floor) => [
            lease({ floor }),
            heartbeat({ floor }),
            seal(FORKED_SEAL, { floor }),
          ]),
        { reason: "rolled_back", generation: 0 },
      ],
      [
        "lease, heartbeat, seal and the earlier claim, after a second claim",
        async (one) => {
          await claimed(one);
          await one.step(one.commands.claim(1));
        },
        ({ lease, heartbeat, seal }) => [lease(), heartbeat(), seal(FORKED_SEAL)],
        { reason: "claimed", generation: 2 },
      ],
      [
        "a claim or confirmation of another generation than the current one",
        claimed,
        ({ claim, confirm }) => [claim(0), claim(2), confirm(0), confirm(2)],
        { reason: "conflict", generation: 1 },
      ],
      [
        "the lease of a holder with a run that this store never leased: there are two copies",
        leased,
        ({ lease }) => [lease({ provenRun: 4 })],
        { code: "store_forked", message: expect.stringContaining("run 4") },
      ],
      [
        "a recovery, when a run above the ceiling is known",
        claimed,
        ({ confirm, recover }) =>
          [RUN_MAX, ledgerIdOf(1, 0)].flatMap((floor) => [confirm(1, { floor }), recover({ floor })]),
        { code: "manual_recovery_required", message: expect.stringContaining("above the run ceiling") },
      ],
    ],
  )("a store rejects %s", async (_, prepare, steps, error) => {
    const one = await storeFrom();
    await prepare(one);
    for (const command of steps(one.commands)) await refusesAndKeeps(one, command, error);
  });

  test("every step returns the record as it left it, and on one node nothing is waited for or checked", async () => {
    const { step, storeId, commands } = await storeFrom(10);
    const { after, runCount, acknowledgedCount, check } = await step(commands.lease({ runCount: 3 }));
    expect({ runCount, acknowledgedCount, check }).toEqual({ runCount: 3, acknowledgedCount: 0, check: undefined });
    expect(after).toMatchObject({ storeId, version: 0, highWaterMark: 12, generation: 0, nodeCount: 1 });
  });

  test("every step is rejected for another store's id, with the id of this store", async () => {
    const one = await storeFrom();
    const { storeId } = one;
    const foreign = { code: "store_id_mismatch", message: expect.stringContaining(storeId) };
    for (const command of everyStepOf(commandsFor(storeIdFrom(1)))) await refusesAndKeeps(one, command, foreign);
  });

  test("a step that makes a record rejects an invalid store id", async () => {
    const { store } = await open();
    const { init, recover } = commandsFor("no-store-id");
    for (const command of [init(), recover()]) {
      await expect(stepOn(store, NAMESPACE, command)).rejects.toMatchObject({ code: "internal_error" });
    }
    await expect(store.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
  });

  test("heartbeat writes the time, and nothing else", async () => {
    const { store, commands, lease, read } = await storeFrom();
    await lease({ runCount: 3 });
    const before = await read();
    const { after, runCount } = await stepOn(store, NAMESPACE, commands.heartbeat({ floor: 3 }));
    expect(runCount).toBe(0);
    expect(await read()).toEqual({ ...before, changedAtMs: after.changedAtMs });
    expect(after.changedAtMs).toBeGreaterThanOrEqual(before.changedAtMs);
  });

  test("a claim raises the generation above all that are known, and changes nothing else", async () => {
    const { store, commands, lease, read } = await storeFrom();
    await lease({ runCount: 3 });
    const before = await read();
    const { after } = await stepOn(store, NAMESPACE, commands.claim(0, { generationMin: 7 }));
    const { changedAtMs } = after;
    expect(await read()).toEqual({ ...before, changedAtMs, generation: 8, phase: PHASES.claimed });
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

  test.each([MOVED_SEAL, FORKED_SEAL])("a seal of %s keeps high-water mark and generation", async (seal) => {
    const { store, commands, lease, read } = await storeFrom();
    await lease({ runCount: 3 });
    await stepOn(store, NAMESPACE, commands.seal(seal));
    expect(await read()).toMatchObject({ phase: PHASES.sealed, seal, highWaterMark: 3, generation: 0 });
  });

  test.each<[string, (store: StoreInHand) => Promise<unknown>]>([
    ["open", nothing],
    ["claimed", claimed],
    ["sealed as one of two copies", sealed(FORKED_SEAL)],
  ])("recover raises a namespace that is %s to the ceiling, to be claimed", async (_, prepare) => {
    const one = await storeFrom(1, { initializedAtMs: Date.now(), rate: 16 });
    const { store, storeId, commands, lease, read, skipAhead } = one;
    await lease({ runCount: 3 });
    await prepare(one);
    const [before, beforeMs] = [await read(), Date.now()];
    const { after } = await stepOn(store, NAMESPACE, commands.recover({ proofKey: "0f".repeat(32) }));
    expect(after.highWaterMark).toBeGreaterThanOrEqual(ceilingOf(storeId, beforeMs + 2 * EPS_MS));
    expect(after.generation).toBeGreaterThanOrEqual(beforeMs);
    expect(await read()).toMatchObject({ phase: PHASES.claimed, proofKey: before.proofKey, nodeCount: 1 });
    await refusesAndKeeps(one, commands.lease(), { reason: "claimed", generation: after.generation });
    expect(await skipAhead()).toBeGreaterThanOrEqual(after.highWaterMark);
    expect(await findLease(store, NAMESPACE, 3)).toMatchObject({ firstRun: 1, runCount: 3 });
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

  test("advance is rejected for another version than the current one, and before its ceiling has reached the end", async () => {
    const one = await endingStoreFrom(RUN_MAX);
    const { store, commands } = one;
    await stepOn(store, NAMESPACE, commands.advance(0));
    for (const version of [0, 2]) {
      await refusesAndKeeps(one, commands.advance(version), { reason: "conflict", generation: 1 });
    }
    const early = { code: "version_still_active", retryAfterMs: expect.any(Number) };
    await refusesAndKeeps(one, commands.advance(1), early);
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

  describe.runIf(sharesClock)("a clock", () => {
    /** A store with a clock to set, some time after its last write. */
    async function withClock(timeMs = Date.now()) {
      const clock = { timeMs };
      const one = await storeFrom(1, { now: () => clock.timeMs, initializedAtMs: timeMs });
      return { ...one, clock };
    }

    test("a clock that moved backward by more than eps ends every step until it has passed the last write", async () => {
      const one = await withClock();
      const { commands, lease, clock } = one;
      clock.timeMs -= EPS_MS + 1;
      for (const command of everyStepOf(commands)) {
        await refusesAndKeeps(one, command, { code: "clock_moved_backward", retryAfterMs: 1 });
      }
      clock.timeMs += 1;
      expect((await lease()).firstRun).toBe(1);
    });

    test("a clock that shows a heartbeat gap longer than the limit makes a recovery necessary", async () => {
      const one = await withClock();
      const { commands, lease, skipAhead, clock } = one;
      clock.timeMs += GAP_MS;
      await lease();
      clock.timeMs += GAP_MS + 1;
      for (const command of [commands.lease(), commands.heartbeat(), commands.seal(FORKED_SEAL)]) {
        await refusesAndKeeps(one, command, { reason: "heartbeat_expired", generation: 0 });
      }
      expect(await skipAhead()).toBeGreaterThan(1);
      await expect(lease()).rejects.toMatchObject({ code: "run_ceiling_reached" });
    });
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
