/**
 * What every store must do with the step that ends a version: when it is refused, where the next version begins, and that a store which
 * forgot an advance repeats nothing. A part of the definition of a store (store-contract.ts).
 * Guarantees: G12 (docs/guarantees.md).
 */
import { RUN_COUNT, RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { BURST_RUNS, EPS_MS } from "../src/guard/bounds.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import { parseStoreId } from "../src/guard/store-id.js";
import { findLease } from "../src/ledger/read-ledger.js";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import { refusesAndKeeps } from "./step-contract.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

type Open = () => Promise<{ readonly store: Store }>;

const [OPEN, CLAIMED] = [0, 1];
/** Above this run the line of a new store has passed the end. */
const AT_THE_END = RUN_MAX - BURST_RUNS;

export function describeAdvance(open: Open): void {
  async function storeFrom(firstRun: number, rate = 1): Promise<StoreInHand> {
    const { store } = await open();
    return withNamespace(store, { storeId: storeIdFrom(firstRun, { initializedAtMs: Date.now() - 2 * EPS_MS, rate }) });
  }

  describe("advance", () => {
    test("ends the version, and the next lease is run 1 of the next one, in a new generation", async () => {
      const { store, commands, lease, read } = await storeFrom(RUN_MAX - 1);
      await lease({ runCount: 2 });
      await expect(lease()).rejects.toMatchObject({ code: "run_space_exhausted" });
      const { after, runCount } = await store.step(NAMESPACE, commands.advance(0));
      expect(runCount).toBe(0);
      expect(after).toMatchObject({ version: 1, highWaterMark: 0, generation: 1 });
      expect(await read()).toMatchObject({ version: 1, highWaterMark: 0, generation: 1, phase: OPEN });
      const floor = ledgerIdOf(0, RUN_MAX);
      expect(await lease({ floor, held: floor, runCount: 3 })).toMatchObject({ version: 1, firstRun: 1, runCount: 3 });
      expect(await findLease(store, NAMESPACE, ledgerIdOf(1, 3))).toMatchObject({ version: 1, firstRun: 1 });
      expect(await findLease(store, NAMESPACE, RUN_MAX)).toMatchObject({ version: 0, firstRun: RUN_MAX - 1 });
      expect(await findLease(store, NAMESPACE, ledgerIdOf(1, 0))).toBeUndefined();
    });

    test("lists the leases of both versions as one ledger that rises", async () => {
      const { store, commands, lease } = await storeFrom(RUN_MAX);
      await lease();
      await store.step(NAMESPACE, commands.advance(0));
      await lease({ runCount: 2 });
      const leases = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
      expect(leases.map(({ version, firstRun }) => [version, firstRun])).toEqual([
        [1, 1],
        [0, RUN_MAX],
      ]);
    });

    test("is refused while a jump could still land in the version, with the time to wait", async () => {
      const { store, commands } = await storeFrom(AT_THE_END - 3_600);
      const [early] = await Promise.allSettled([store.step(NAMESPACE, commands.advance(0))]);
      const { retryAfterMs } = (early as PromiseRejectedResult).reason as { retryAfterMs: number };
      expect(retryAfterMs).toBeGreaterThan(3_500_000);
      expect(retryAfterMs).toBeLessThanOrEqual(3_600_000);
      await refusesAndKeeps(store, commands.advance(0), { code: "version_still_active" });
    });

    test("of two that are asked for at once one is done, and the other one finds another version", async () => {
      const { store, commands } = await storeFrom(RUN_MAX);
      await store.step(NAMESPACE, commands.advance(0));
      await refusesAndKeeps(store, commands.advance(0), { reason: "conflict", generation: 1 });
      // Nor does who saw the new version advance it at once: its line has only begun.
      await refusesAndKeeps(store, commands.advance(1), { code: "version_still_active" });
      await refusesAndKeeps(store, commands.advance(2), { reason: "conflict", generation: 1 });
    });

    test.each<[string, (store: StoreInHand) => Promise<unknown>, Parameters<StoreInHand["commands"]["advance"]>[1]]>([
      ["claimed by somebody", ({ store, commands }) => store.step(NAMESPACE, commands.claim(0)), {}],
      ["below a generation that was seen", async () => {}, { generationMin: 1 }],
      ["below a run that was leased", ({ lease }) => lease(), { floor: ledgerIdOf(1, 7) }],
    ])(
      "of a store that is %s leaves it to be claimed, and it jumps onto the line of the next version",
      async (_, bring, own) => {
        const inHand = await storeFrom(AT_THE_END + 10);
        const { store, storeId, commands, jump } = inHand;
        await bring(inHand);
        const { after } = await store.step(NAMESPACE, commands.advance(0, own));
        expect(after).toMatchObject({ version: 1, highWaterMark: 0 });
        expect(after.generation).toBeGreaterThan(0);
        expect((await inHand.read()).phase).toBe(CLAIMED);
        await refusesAndKeeps(store, commands.lease(), { reason: "claimed" });
        expect(await jump()).toBeGreaterThanOrEqual(lineAtNow(storeId, 1));
      },
    );

    test("a doubt about a version whose line has ended is settled by no jump, whatever is remembered", async () => {
      const { store, commands } = await storeFrom(RUN_MAX);
      await store.step(NAMESPACE, commands.claim(0));
      for (const floor of [0, RUN_MAX, ledgerIdOf(1, 5), ledgerIdOf(2, 1)]) {
        await expect(store.step(NAMESPACE, commands.confirm(1, { floor }))).rejects.toMatchObject({
          code: expect.stringMatching(/^(?:run_space_exhausted|manual_recovery_required)$/),
        });
      }
      for (const floor of [0, RUN_MAX]) {
        await refusesAndKeeps(store, commands.recover({ floor }), { code: "run_space_exhausted" });
      }
    });

    test("once more by a store that forgot it goes on above everything that was leased before", async () => {
      // The same store a second time: a copy that was put back to a moment before the advance.
      const { store, storeId, commands, lease } = await storeFrom(RUN_MAX);
      await store.step(NAMESPACE, commands.advance(0));
      const { firstRun, runCount } = await lease({ runCount: 64 });
      const forgetful = await open();
      const again = await withNamespace(forgetful.store, { storeId });
      await again.store.step(NAMESPACE, again.commands.claim(0));
      await expect(again.store.step(NAMESPACE, again.commands.confirm(1))).rejects.toMatchObject({
        code: "run_space_exhausted",
      });
      await again.store.step(NAMESPACE, again.commands.advance(0));
      expect(await again.jump()).toBeGreaterThanOrEqual(firstRun + runCount);
    });

    test("is refused in the last version", async () => {
      // At the highest rate the line of the last version began so long ago, and has not ended.
      const initializedAtMs = Date.now() - Math.round((VERSION_MAX + 0.5) * (RUN_COUNT / 16) * 1000);
      const { store } = await open();
      const { commands, read } = inHand(store, { storeId: storeIdFrom(1, { initializedAtMs, rate: 16 }) });
      await store.step(NAMESPACE, commands.recover({ floor: ledgerIdOf(VERSION_MAX, 5) }));
      expect((await read()).version).toBe(VERSION_MAX);
      await refusesAndKeeps(store, commands.advance(VERSION_MAX), { code: "run_space_exhausted" });
    });
  });
}

function lineAtNow(storeId: string, version: number): number {
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`${storeId} is no store id`);
  return ceilingAt(id, version, Date.now());
}
