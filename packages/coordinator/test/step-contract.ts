/**
 * What every store must do with the steps of the guard: which are refused, with what code, and that a refusal changes nothing.
 * A part of the definition of a store (store-contract.ts). Which state leads to which refusal in every corner is compared with
 * random states, in scripts-and-decisions.test.ts.
 * Guarantees: G1, G2 (docs/guarantees.md).
 */
import { RUN_COUNT, RUN_MAX, VERSION_COUNT } from "@callnumber/protocol/codec";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { BURST_RUNS, EPS_MS, GAP_MS, RELEASED_AT_MS, ROOM_SHARE, SILENCE_MAX_MS } from "../src/guard/bounds.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { MOVED_SEAL } from "../src/guard/seals.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { findLease } from "../src/ledger/read-ledger.js";
import type { StepCommand, Store } from "../src/stores/store.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import type { OpenOptions, StoreTraits } from "./store-contract.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

type Open = (options?: OpenOptions) => Promise<{ readonly store: Store }>;

const PHASE = { open: 0, claimed: 1, sealed: 2 } as const;

export function describeSteps(open: Open, { sharesClock }: StoreTraits): void {
  async function storeFrom(firstRun = 1, options: OpenOptions & Partial<StoreIdFields> = {}): Promise<StoreInHand> {
    const { now, bounds, ...id } = options;
    const { store } = await open({ ...(now ? { now } : {}), ...(bounds ? { bounds } : {}) });
    return withNamespace(store, { storeId: storeIdFrom(firstRun, id) });
  }

  describe("every step", () => {
    test("answers with its nonce, the record as it left it, and a look that agrees", async () => {
      const { store, storeId, commands } = await storeFrom(10);
      const command = commands.lease({ runCount: 3 });
      const { after, runCount, acknowledgedCount, check } = await store.step(NAMESPACE, command);
      expect({ runCount, acknowledgedCount }).toEqual({ runCount: 3, acknowledgedCount: 0 });
      expect(after).toMatchObject({ nonce: command.nonce, storeId, version: 0, highWaterMark: 12, generation: 0 });
      expect(check).toEqual({ nonce: command.nonce, role: "master", epoch: after.epoch, generation: 0 });
    });

    test("is refused for another store's id, which it names", async () => {
      const { store, storeId } = await storeFrom();
      const foreign = commandsFor(storeIdFrom(1));
      for (const command of everyStepOf(foreign)) {
        await refusesAndKeeps(store, command, {
          code: "store_id_mismatch",
          message: expect.stringContaining(storeId),
        });
      }
    });

    test("is refused while it is sealed, except recover", async () => {
      const { store, commands } = await storeFrom();
      await store.step(NAMESPACE, commands.seal(FORKED_SEAL));
      const steps = everyStepOf(commands).filter(({ step }) => step !== "recover");
      expect(steps).toHaveLength(6);
      for (const command of steps) await refusesAndKeeps(store, command, { code: "store_forked" });
    });

    test("that makes a record wants a store id that can be", async () => {
      const { store } = await open();
      const { init, recover } = commandsFor("no-store-id");
      for (const command of [init(), recover()]) {
        await expect(store.step(NAMESPACE, command)).rejects.toMatchObject({ code: "internal_error" });
      }
      await expect(store.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
    });
  });

  describe("lease and heartbeat", () => {
    test("are refused when the caller saw a later generation, with the one that is there", async () => {
      const { store, commands } = await storeFrom();
      for (const command of [commands.lease({ generationMin: 1 }), commands.heartbeat({ generationMin: 1 })]) {
        await refusesAndKeeps(store, command, { reason: "generation_stale", generation: 0 });
      }
    });

    test("are refused when the caller knows of a greater run, in this version or the next", async () => {
      const { store, commands, lease } = await storeFrom();
      await lease({ runCount: 3 });
      for (const floor of [4, ledgerIdOf(1, 0)]) {
        for (const command of [commands.lease({ floor }), commands.heartbeat({ floor })]) {
          await refusesAndKeeps(store, command, { reason: "rolled_back", generation: 0 });
        }
      }
    });

    test("are refused while a claim waits to be confirmed", async () => {
      const { store, commands } = await storeFrom();
      await store.step(NAMESPACE, commands.claim(0));
      for (const command of [commands.lease(), commands.heartbeat(), commands.seal(MOVED_SEAL)]) {
        await refusesAndKeeps(store, command, { reason: "claimed", generation: 1 });
      }
    });

    test("a run that a holder proves to have and this store never leased fences: there are two copies", async () => {
      const { store, commands, lease } = await storeFrom();
      await lease({ runCount: 3 });
      await refusesAndKeeps(store, commands.lease({ held: 4 }), {
        code: "store_forked",
        message: expect.stringContaining("run 4"),
      });
      expect((await lease({ held: 3 })).firstRun).toBe(4);
    });

    test("heartbeat writes the time, and nothing else", async () => {
      const { store, commands, lease, read } = await storeFrom();
      await lease({ runCount: 3 });
      const before = await read();
      const { after, runCount } = await store.step(NAMESPACE, commands.heartbeat({ floor: 3 }));
      expect(runCount).toBe(0);
      expect(await read()).toEqual({ ...before, changedAtMs: after.changedAtMs });
      expect(after.changedAtMs).toBeGreaterThanOrEqual(before.changedAtMs);
    });

    test("a lease takes at most its share of the room under the line", async () => {
      // The line began so far below its burst that 10 shares and a half are left; that changes by one run a second.
      const headroomRuns = 10.5 * ROOM_SHARE;
      const initializedAtMs = Date.now() + (BURST_RUNS - headroomRuns) * 1000;
      const { lease } = await storeFrom(1, { initializedAtMs, rate: 1 });
      expect((await lease({ runCount: 64 })).runCount).toBe(10);
    });
  });

  describe("claim and confirm", () => {
    test("a claim raises the generation above all that are known, and moves nothing else", async () => {
      const { store, commands, lease, read } = await storeFrom();
      await lease({ runCount: 3 });
      const before = await read();
      const { after } = await store.step(NAMESPACE, commands.claim(0, { generationMin: 7 }));
      expect(await read()).toEqual({
        ...before,
        changedAtMs: after.changedAtMs,
        generation: 8,
        phase: PHASE.claimed,
      });
    });

    test("a claim on another generation than the one seen is refused, with the one that is there", async () => {
      const { store, commands } = await storeFrom();
      await store.step(NAMESPACE, commands.claim(0));
      for (const generation of [0, 2]) {
        await refusesAndKeeps(store, commands.claim(generation), { reason: "conflict", generation: 1 });
      }
    });

    test("of two claims the later one is confirmed, and the earlier one is refused", async () => {
      const { store, commands } = await storeFrom();
      await store.step(NAMESPACE, commands.claim(0));
      await store.step(NAMESPACE, commands.claim(1));
      await refusesAndKeeps(store, commands.confirm(1), { reason: "conflict", generation: 2 });
      const { after } = await store.step(NAMESPACE, commands.confirm(2));
      expect(after.generation).toBe(2);
    });

    test("without a claim nothing is confirmed", async () => {
      const { store, commands, jump } = await storeFrom();
      await refusesAndKeeps(store, commands.confirm(0), { reason: "conflict", generation: 0 });
      await jump();
      await refusesAndKeeps(store, commands.confirm(1), { reason: "conflict", generation: 1 });
    });

    test("confirming jumps onto the line of a moment later: above all that was ever leased", async () => {
      const { storeId, store, lease, read, jump } = await storeFrom(1, { initializedAtMs: Date.now(), rate: 16 });
      await lease({ runCount: 64 });
      const [line, beforeMs] = [lineOf(storeId), Date.now()];
      const mark = await jump();
      expect(mark).toBeGreaterThanOrEqual(line(beforeMs + 2 * EPS_MS));
      expect(mark).toBeLessThanOrEqual(line(Date.now() + 2 * EPS_MS));
      expect(await read()).toMatchObject({ highWaterMark: mark, phase: PHASE.open, generation: 1 });
      for (const skipped of [65, mark]) expect(await findLease(store, NAMESPACE, skipped)).toBeUndefined();
    });

    test("after a jump the next run is refused with the time to wait, and then leased, right above the mark", async () => {
      let waitedMs = 0;
      const { storeId, lease, jump } = await storeFrom(1, {
        initializedAtMs: Date.now(),
        rate: 16,
        bounds: SHORT_BOUNDS,
        ...(sharesClock ? { now: () => Date.now() + waitedMs } : {}),
      });
      const mark = await jump();
      const early = await lease({ runCount: 64 }).catch((error: unknown) => error);
      expect(early).toMatchObject({ code: "run_ceiling_reached", retryAfterMs: expect.any(Number) });
      const { retryAfterMs } = early as { retryAfterMs: number };
      expect(retryAfterMs).toBeGreaterThan(0);
      expect(retryAfterMs).toBeLessThanOrEqual(Math.ceil(2 * SHORT_BOUNDS.epsMs + 1000 / 16));
      if (sharesClock) waitedMs = retryAfterMs;
      // One more: timers may be early by the part of a millisecond.
      else await new Promise((resolve) => setTimeout(resolve, retryAfterMs + 1));
      const granted = await lease();
      expect(granted).toMatchObject({ firstRun: mark + 1, runCount: 1 });
      expect(mark + 1).toBeLessThanOrEqual(lineOf(storeId)(Date.now() + waitedMs));
    });

    test("what is known to be leased above the line is for an operator", async () => {
      const { store, commands } = await storeFrom();
      await store.step(NAMESPACE, commands.claim(0));
      for (const floor of [RUN_MAX, ledgerIdOf(1, 0)]) {
        await refusesAndKeeps(store, commands.confirm(1, { floor }), {
          code: "manual_recovery_required",
          message: expect.stringContaining("above the clock line"),
        });
      }
    });

    test("a jump ends below the last run, or is refused: nothing wraps", async () => {
      // Within a minute of `init` the line of the one ends just below the last run, that of the other has passed it.
      const initializedAtMs = Date.now();
      const below = await storeFrom(RUN_MAX - BURST_RUNS - 60, { initializedAtMs, rate: 1 });
      expect(await below.jump()).toBeLessThan(RUN_MAX);
      const beyond = await storeFrom(RUN_MAX - BURST_RUNS, { initializedAtMs, rate: 1 });
      await beyond.store.step(NAMESPACE, beyond.commands.claim(0));
      await refusesAndKeeps(beyond.store, beyond.commands.confirm(1), { code: "run_space_exhausted" });
    });
  });

  describe("seal", () => {
    test.each([
      [MOVED_SEAL, "namespace_moved"],
      [FORKED_SEAL, "store_forked"],
    ])("with %s ends leasing, and keeps mark and generation", async (seal, code) => {
      const { store, commands, lease, read } = await storeFrom();
      await lease({ runCount: 3 });
      await store.step(NAMESPACE, commands.seal(seal));
      expect(await read()).toMatchObject({ phase: PHASE.sealed, seal, highWaterMark: 3, generation: 0 });
      for (const command of [commands.lease(), commands.heartbeat(), commands.claim(0), commands.advance(0)]) {
        await refusesAndKeeps(store, command, { code });
      }
    });

    test("is refused to whom a lease is refused", async () => {
      const { store, commands } = await storeFrom();
      await refusesAndKeeps(store, commands.seal(FORKED_SEAL, { floor: 1 }), { reason: "rolled_back" });
      await refusesAndKeeps(store, commands.seal(FORKED_SEAL, { generationMin: 1 }), {
        reason: "generation_stale",
      });
    });
  });

  describe("recover", () => {
    test.each<[string, (store: StoreInHand) => Promise<unknown>]>([
      ["open", async () => {}],
      ["claimed", ({ store, commands }) => store.step(NAMESPACE, commands.claim(0))],
      ["sealed as one of two copies", ({ store, commands }) => store.step(NAMESPACE, commands.seal(FORKED_SEAL))],
    ])("puts a namespace that is %s onto the line, to be claimed", async (_, bring) => {
      const inHand = await storeFrom(1, { initializedAtMs: Date.now(), rate: 16 });
      const { store, storeId, commands, lease, read, jump } = inHand;
      await lease({ runCount: 3 });
      await bring(inHand);
      const [before, beforeMs] = [await read(), Date.now()];
      const { after } = await store.step(NAMESPACE, commands.recover({ receiptKey: "0f".repeat(32) }));
      expect(after.highWaterMark).toBeGreaterThanOrEqual(lineOf(storeId)(beforeMs + 2 * EPS_MS));
      expect(after.generation).toBeGreaterThanOrEqual(beforeMs);
      expect(await read()).toMatchObject({ phase: PHASE.claimed, receiptKey: before.receiptKey, nodeCount: 1 });
      await refusesAndKeeps(store, commands.lease(), { reason: "claimed", generation: after.generation });
      expect(await jump()).toBeGreaterThanOrEqual(after.highWaterMark);
      expect(await findLease(store, NAMESPACE, 3)).toMatchObject({ firstRun: 1, runCount: 3 });
    });

    test("makes a record anew that is gone, from the id and the floor that somebody kept", async () => {
      const { store } = await open();
      const storeId = storeIdFrom(1, { initializedAtMs: Date.now() - 10_000, rate: 16 });
      const { commands, read, jump } = inHand(store, { storeId });
      const receiptKey = "0f".repeat(32);
      await store.step(NAMESPACE, commands.recover({ floor: 90, nodeCount: 1, generationMin: 5, receiptKey }));
      expect(await read()).toMatchObject({ storeId, firstRun: 1, phase: PHASE.claimed, receiptKey, nodeCount: 1 });
      expect(await store.listNamespaces()).toEqual([NAMESPACE]);
      expect(await jump()).toBeGreaterThan(90);
    });

    test("goes on in the version of the greatest run that is known", async () => {
      // All runs of version 0 end at the first: the line of version 1 began years ago.
      const { store, commands, lease, jump, read } = await storeFrom(RUN_MAX);
      await store.step(NAMESPACE, commands.recover({ floor: ledgerIdOf(1, 5) }));
      expect(await read()).toMatchObject({ version: 1 });
      const mark = await jump();
      await expect(lease()).rejects.toMatchObject({ code: "run_ceiling_reached" });
      expect(mark).toBeLessThan(RUN_COUNT);
      await refusesAndKeeps(store, commands.heartbeat({ floor: ledgerIdOf(1, mark) + 1 }), { reason: "rolled_back" });
      await store.step(NAMESPACE, commands.heartbeat({ floor: ledgerIdOf(1, mark) }));
    });

    test("is refused for a store that moved, for runs above the line, and beyond the last version", async () => {
      const { store, commands } = await storeFrom();
      for (const floor of [RUN_MAX, ledgerIdOf(1, 0), VERSION_COUNT * RUN_COUNT]) {
        await refusesAndKeeps(store, commands.recover({ floor }), { code: "manual_recovery_required" });
      }
      await store.step(NAMESPACE, commands.seal(MOVED_SEAL));
      await refusesAndKeeps(store, commands.recover(), { code: "namespace_moved" });
    });

    test("is refused beyond the last version even when the lines of all versions were passed", async () => {
      const { store, commands } = await storeFrom(RUN_MAX, { initializedAtMs: 0, rate: 16 });
      const lastVersion = ledgerIdOf(VERSION_COUNT - 1, 1);
      await refusesAndKeeps(store, commands.recover({ floor: lastVersion }), { code: "run_space_exhausted" });
      await refusesAndKeeps(store, commands.recover({ floor: VERSION_COUNT * RUN_COUNT }), {
        code: "manual_recovery_required",
      });
    });
  });

  describe("clocks", () => {
    if (!sharesClock) {
      test.each([1, -1])("that lie apart by more than eps are refused (%i)", async (sign) => {
        let offsetMs = 0;
        const inHand = await storeFrom(1, { now: () => Date.now() + offsetMs });
        const { store, commands } = inHand;
        offsetMs = sign * (EPS_MS + 1_000);
        for (const command of everyStepOf(commands)) {
          await refusesAndKeeps(store, command, {
            code: "clock_skew",
            message: expect.stringMatching(sign < 0 ? /is \d+ ms ahead/ : /is -\d+ ms ahead/),
          });
        }
        offsetMs = 0;
        expect((await inHand.lease()).firstRun).toBe(1);
      });
      return;
    }

    /** A store with a clock to set, some time after its last write. */
    async function withClock(timeMs = Date.now()) {
      const clock = { timeMs };
      const inHand = await storeFrom(1, { now: () => clock.timeMs, initializedAtMs: timeMs });
      return { ...inHand, clock };
    }

    test("that went back by more than eps are refused until they have passed the last write", async () => {
      const { store, commands, lease, clock } = await withClock();
      clock.timeMs -= EPS_MS + 1;
      for (const command of everyStepOf(commands)) {
        await refusesAndKeeps(store, command, { code: "clock_moved_backward", retryAfterMs: 1 });
      }
      clock.timeMs += 1;
      expect((await lease()).firstRun).toBe(1);
    });

    test("that show a time before this release are refused", async () => {
      const { store } = await open({ now: () => RELEASED_AT_MS - 1 });
      const { init } = commandsFor(storeIdFrom(1));
      await expect(store.step(NAMESPACE, init())).rejects.toMatchObject({ code: "clock_skew" });
      await expect(store.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
    });

    test("a silence longer than the gap is a doubt, which a jump settles", async () => {
      const { store, commands, lease, jump, clock } = await withClock();
      clock.timeMs += GAP_MS;
      await lease();
      clock.timeMs += GAP_MS + 1;
      for (const command of [commands.lease(), commands.heartbeat(), commands.seal(MOVED_SEAL)]) {
        await refusesAndKeeps(store, command, { reason: "heartbeat_expired", generation: 0 });
      }
      expect(await jump()).toBeGreaterThan(1);
      await expect(lease()).rejects.toMatchObject({ code: "run_ceiling_reached" });
    });

    test("a silence of more than 30 days is for an operator, unless somebody vouches for the clock", async () => {
      const { store, commands, clock } = await withClock();
      clock.timeMs += SILENCE_MAX_MS + 1;
      for (const command of everyStepOf(commands)) {
        await refusesAndKeeps(store, command, {
          code: "manual_recovery_required",
          message: expect.stringContaining("silent for more than 30 days"),
        });
      }
      await refusesAndKeeps(store, commands.lease({ isSilenceAccepted: true }), { reason: "heartbeat_expired" });
      await store.step(NAMESPACE, commands.claim(0, { isSilenceAccepted: true }));
    });
  });
}

/** Every step that finds a record, none of which is refused by an open record of generation 0 that leased nothing. */
function everyStepOf(commands: StoreInHand["commands"]): StepCommand[] {
  const { lease, heartbeat, claim, confirm, seal, recover, advance } = commands;
  return [lease(), heartbeat(), claim(0), confirm(0), seal(FORKED_SEAL), recover(), advance(0)];
}

export async function refusesAndKeeps(store: Store, command: StepCommand, expected: object): Promise<void> {
  const before = await stateOf(store);
  await expect(store.step(NAMESPACE, command), command.step).rejects.toMatchObject(expected);
  expect(await stateOf(store)).toEqual(before);
}

async function stateOf(store: Store): Promise<unknown> {
  const ledger = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
  return { record: await store.readNamespace(NAMESPACE), ledger };
}

function lineOf(storeId: string): (timeMs: number) => number {
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`${storeId} is no store id`);
  return (timeMs) => ceilingAt(id, 0, timeMs);
}
