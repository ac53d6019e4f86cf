/** The contract of a store, as far as it lets go of leases that stand in an archive: only those, and never what the guard looks at. */
import { isDeepStrictEqual } from "node:util";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterEach, describe, expect, inject, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { sized } from "../../../test/size-of-run.js";
import { MOVED_SEAL } from "../src/guard/moved-seal.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { lastLedgerIdOf } from "../src/lease-identity.js";
import { LEDGER_CUT_LEASES_MAX, type Store } from "../src/store.js";
import { keysOf } from "../src/stores/redis-ledger.js";
import { RedisStore } from "../src/stores/redis-store.js";
import { commandsFor, NAMESPACE, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { type Play, randomScript } from "./random-scripts.js";
import { withNamespace } from "./store-in-hand.js";
import { HAS_REDIS, redisAddressForTest, STORES } from "./stores-for-test.js";

const GUARD_SCRIPTS = sized(8, 25);
const GUARD_STEPS = 40;
/** The line rises once a second, first so long after a script began: until then two clocks see the same line. */
const RISE_AFTER_MS = 500;
const SAME_LINE_MS = 350;

const toRemove: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const remove of toRemove.splice(0)) await remove();
});

describe.each(STORES)("the %s store", (_, open) => {
  /** Leases of two runs each, so that the last runs are 2, 4, 6, …; the third is reported on. */
  async function leased(leaseCount: number) {
    const { store, remove, reopen } = await open();
    toRemove.push(remove);
    const inHand = await withNamespace(store);
    for (let count = 0; count < leaseCount; count++) await inHand.lease({ runCount: 2 });
    await store.report(NAMESPACE, 6, reportCommand({ state: "closed" }));
    const leases = await ledgerOf(store);
    const cut = (archivedThrough: number, through: number, ids: readonly number[]) =>
      store.cutLedger(NAMESPACE, { storeId: inHand.storeId, archivedThrough, through, leases: named(leases, ids) });
    return { ...inHand, leases, cut, reopen };
  }

  test("lets go of the leases that it is named, and of no other, and knows up to where it is archived", async () => {
    const { store, storeId, leases, cut } = await leased(8);
    expect(await store.readArchived(NAMESPACE)).toEqual({ storeId, through: 0 });
    expect(await cut(0, 10, [2, 6, 10])).toEqual({ isCut: true, archivedThrough: 10, leaseCount: 3 });
    expect(await store.readArchived(NAMESPACE)).toEqual({ storeId, through: 10 });
    expect(await ledgerOf(store)).toEqual(leases.filter((lease) => ![2, 6, 10].includes(lastLedgerIdOf(lease))));
    for (const run of [1, 5, 10]) expect(await store.findLease(NAMESPACE, run)).toBeUndefined();
    expect(await store.findLease(NAMESPACE, 3)).toEqual(leases[1]);
    expect(await cut(10, 10, [4])).toEqual({ isCut: true, archivedThrough: 10, leaseCount: 1 });
    expect(await cut(10, 12, [2, 12])).toEqual({ isCut: true, archivedThrough: 12, leaseCount: 1 });
  });

  test("lets go of the reports, too, and keeps those on the leases beside them", async () => {
    const { store, cut } = await leased(8);
    await store.report(NAMESPACE, 8, reportCommand({ lastSequence: 4 }));
    await cut(0, 6, [6]);
    expect((await store.findLease(NAMESPACE, 8))?.progress).toMatchObject({ run: 8, lastSequence: 4 });
    await expect(store.report(NAMESPACE, 6, reportCommand())).rejects.toMatchObject({ code: "run_not_leased" });
    await store.report(NAMESPACE, 8, reportCommand({ lastSequence: 9 }));
    expect((await store.findLease(NAMESPACE, 8))?.progress).toMatchObject({ lastSequence: 9 });
  });

  test("keeps a lease that was reported on meanwhile", async () => {
    const { store, cut } = await leased(8);
    await new Promise((resolve) => setTimeout(resolve, 2));
    await store.report(NAMESPACE, 6, reportCommand({ lastSequence: 99 }));
    await store.report(NAMESPACE, 4, reportCommand());
    expect(await cut(0, 8, [2, 4, 6, 8])).toEqual({ isCut: true, archivedThrough: 8, leaseCount: 2 });
    expect((await ledgerOf(store)).map(lastLedgerIdOf)).toEqual([4, 6, 10, 12, 14, 16]);
    expect((await store.findLease(NAMESPACE, 6))?.progress).toMatchObject({ lastSequence: 99, state: "closed" });
  });

  test("changes nothing when somebody else has cut meanwhile", async () => {
    const { store, cut } = await leased(8);
    await cut(0, 4, [2]);
    const before = await ledgerOf(store);
    expect(await cut(0, 6, [4, 6])).toEqual({ isCut: false, archivedThrough: 4, leaseCount: 0 });
    expect(await cut(5, 6, [4, 6])).toEqual({ isCut: false, archivedThrough: 4, leaseCount: 0 });
    expect(await ledgerOf(store)).toEqual(before);
  });

  test("never lets go of the newest lease, which the guard looks at", async () => {
    const { store, cut, leases } = await leased(4);
    for (const through of [8, 9]) await expect(cut(0, through, [8])).rejects.toThrow(/newest lease is never cut/);
    await expect(cut(0, 4, [6])).rejects.toThrow(/broken invariant/);
    await expect(cut(5, 4, [2])).rejects.toThrow(/broken invariant/);
    const many = (count: number) => Array.from({ length: count }, () => 2);
    await expect(cut(0, 4, many(LEDGER_CUT_LEASES_MAX + 1))).rejects.toThrow(/broken invariant/);
    expect(await ledgerOf(store)).toEqual(leases);
    expect(await cut(0, 0, [])).toEqual({ isCut: true, archivedThrough: 0, leaseCount: 0 });
    expect(await cut(0, 2, many(LEDGER_CUT_LEASES_MAX))).toMatchObject({ leaseCount: 1 });
    expect(await cut(2, 7, [4, 6])).toMatchObject({ leaseCount: 2 });
    expect((await ledgerOf(store)).map(lastLedgerIdOf)).toEqual([8]);
  });

  test("cuts nothing of a namespace that it does not hold", async () => {
    const { store, storeId } = await leased(4);
    const asked = { storeId, archivedThrough: 5, through: 6, leases: [] };
    expect(await store.readArchived("other")).toEqual({ storeId: undefined, through: 0 });
    expect(await store.cutLedger("other", asked)).toEqual({ isCut: false, archivedThrough: 0, leaseCount: 0 });
  });

  test("cuts nothing of another store, and nothing that is sealed", async () => {
    const { store, commands, leases, cut } = await leased(4);
    const asked = { archivedThrough: 0, through: 2, leases: named(leases, [2]) };
    const other = storeIdFrom(1);
    await expect(store.cutLedger(NAMESPACE, { ...asked, storeId: other })).rejects.toMatchObject({
      code: "store_replaced",
    });
    await store.step(NAMESPACE, commands.seal(FORKED_SEAL));
    await expect(cut(0, 2, [2])).rejects.toMatchObject({ code: "store_forked" });
    expect(await ledgerOf(store)).toEqual(leases);
  });

  test("cuts nothing that was moved to another place", async () => {
    const { store, commands, leases, cut } = await leased(4);
    await store.step(NAMESPACE, commands.seal(MOVED_SEAL));
    await expect(cut(0, 2, [2])).rejects.toMatchObject({ code: "store_moved" });
    expect(await ledgerOf(store)).toEqual(leases);
  });

  test("takes over how much is archived before it has a record, with the leases that are left", async () => {
    const { leases } = await leased(8);
    const { store, remove } = await open();
    toRemove.push(remove);
    await store.importLeases(NAMESPACE, leases.slice(3));
    const cut = { storeId: storeIdFrom(1), archivedThrough: 0, through: 6, leases: [] };
    expect(await store.readArchived(NAMESPACE)).toEqual({ storeId: undefined, through: 0 });
    expect(await store.cutLedger(NAMESPACE, cut)).toMatchObject({ isCut: true });
    expect(await store.readArchived(NAMESPACE)).toEqual({ storeId: undefined, through: 6 });
    expect(await ledgerOf(store)).toEqual(leases.slice(3));
  });

  test("finds the first lease of a time or later among those that are left", async () => {
    const { store, leases, cut } = await leased(8);
    await cut(0, 12, [2, 4, 8, 10, 12]);
    const left = await ledgerOf(store);
    expect(left.map(lastLedgerIdOf)).toEqual([6, 14, 16]);
    for (const { leasedAtMs } of leases) {
      const expected = left.find((lease) => lease.leasedAtMs >= leasedAtMs);
      expect(await store.firstLeaseSince(NAMESPACE, leasedAtMs)).toEqual(expected);
    }
  });

  test(`decides ${GUARD_SCRIPTS} scripts of steps as a store that was never cut does`, async () => {
    let comparedCount = 0;
    await fc.assert(
      fc.asyncProperty(randomScript(GUARD_STEPS), async (script) => {
        const [whole, cut] = [await open(), await open()];
        try {
          const startMs = Date.now();
          const line = { initialisedAtMs: startMs + RISE_AFTER_MS - 90_000_000_000, rate: 1 };
          const ids = {
            main: storeIdFrom(1, line),
            end: storeIdFrom(2 ** 30 - 300, line),
            none: storeIdFrom(9),
          };
          for (const { store } of [whole, cut]) {
            for (const name of ["main", "end"] as const) await store.step(name, commandsFor(ids[name]).init());
          }
          for (const play of script.filter(isOfGuard)) {
            const expected = await refusalOr(play, whole.store, ids);
            const answer = await refusalOr(play, cut.store, ids);
            // Only on a slow machine: the line may have risen between the two.
            if (Date.now() - startMs > SAME_LINE_MS && !isDeepStrictEqual(answer, expected)) break;
            expect(answer, play.name).toEqual(expected);
            comparedCount++;
            for (const name of ["main", "end"] as const) await cutAllButNewest(cut.store, name, ids[name]);
          }
        } finally {
          await whole.remove();
          await cut.remove();
        }
      }),
      { seed: inject("seed"), numRuns: GUARD_SCRIPTS, endOnFailure: true },
    );
    expect(comparedCount).toBeGreaterThan(GUARD_SCRIPTS);
  });
});

test.runIf(HAS_REDIS).each(["record", "ledger", "reports", "archived"] as const)(
  "the Redis store cuts nothing where the %s is of another type",
  async (name) => {
    const address = redisAddressForTest();
    const store = await RedisStore.open(address);
    const redis = new Redis(sharedRedis().url);
    toRemove.push(async () => {
      await store.close();
      redis.disconnect();
    });
    const keys = keysOf(address.keyPrefix, NAMESPACE);
    await redis.set(keys[name], "x");
    const cut = { storeId: storeIdFrom(1), archivedThrough: 0, through: 0, leases: [] };
    await expect(store.cutLedger(NAMESPACE, cut)).rejects.toMatchObject({ code: "store_corrupt" });
    expect(await redis.keys(`${address.keyPrefix}*`)).toEqual([keys[name]]);
  },
);

test.runIf(HAS_REDIS)("the Redis store keeps neither entry nor report of what it was made to let go of", async () => {
  const address = redisAddressForTest();
  const store = await RedisStore.open(address);
  const redis = new Redis(sharedRedis().url);
  toRemove.push(async () => {
    await store.close();
    redis.disconnect();
  });
  const { lease, storeId } = await withNamespace(store);
  for (let run = 1; run <= 400; run++) {
    await lease();
    await store.report(NAMESPACE, run, reportCommand({ state: "closed" }));
  }
  const leases = await ledgerOf(store);
  const ids = leases.map(lastLedgerIdOf).slice(0, 399);
  await store.cutLedger(NAMESPACE, { storeId, archivedThrough: 0, through: 399, leases: named(leases, ids) });
  const keys = keysOf(address.keyPrefix, NAMESPACE);
  expect(await redis.xlen(keys.ledger)).toBe(1);
  expect(await redis.hkeys(keys.reports)).toEqual(["3"]);
  expect((await redis.hgetBuffer(keys.reports, "3"))?.length).toBe(11);
});

function ledgerOf(store: Store): Promise<readonly LedgerEntry[]> {
  return store.exportLeases(NAMESPACE, { afterLedgerId: 0, limit: 10_000 });
}

function named(leases: readonly LedgerEntry[], ids: readonly number[]) {
  return ids.map((lastLedgerId) => {
    const lease = leases.find((one) => lastLedgerIdOf(one) === lastLedgerId);
    return { lastLedgerId, reportedAtMs: lease?.progress?.reportedAtMs ?? null };
  });
}

async function cutAllButNewest(store: Store, name: string, storeId: string): Promise<void> {
  const { through } = await store.readArchived(name);
  const allButNewest = (await store.exportLeases(name, { afterLedgerId: 0, limit: 500 })).slice(0, -1);
  const last = allButNewest.at(-1);
  if (last === undefined) return;
  const leases = named(allButNewest, allButNewest.map(lastLedgerIdOf));
  const cut = { storeId, archivedThrough: through, through: Math.max(lastLedgerIdOf(last), through), leases };
  await store.cutLedger(name, cut).catch((error: { code?: string }) => {
    if (!["store_moved", "store_forked"].includes(error.code ?? "")) throw error;
  });
}

/** Reports and looks at the ledger differ, as they should. */
function isOfGuard({ name }: Play): boolean {
  return !/^(report|find|list|cut|archived)/.test(name);
}

async function refusalOr(play: Play, store: Store, ids: Parameters<Play["on"]>[1]): Promise<unknown> {
  const told = await play.on(store, ids).catch((error: { code?: string; generation?: number }) => {
    if (error.code === undefined) throw error;
    return { code: error.code, hasGeneration: error.generation !== undefined };
  });
  const isTime = (key: string, value: unknown) =>
    key.endsWith("AtMs") || (key === "generation" && Number(value) > 1e12);
  return JSON.parse(JSON.stringify(told ?? null, (key, value) => (isTime(key, value) ? "a time" : value)));
}
