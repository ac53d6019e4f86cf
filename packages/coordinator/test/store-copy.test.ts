/** The contract of a store for a ledger that is copied from another: whole, once, and before anything can be leased from it. */
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import { sized } from "../../../test/size-of-run.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { importLeases, recordReport } from "../src/ledger/ledger-changes.js";
import { findLease, firstLeaseSince } from "../src/ledger/read-ledger.js";
import { type Store } from "../src/stores/store.js";
import { holder, NAMESPACE } from "./commands-for-test.js";
import { randomLedger } from "./random-ledgers.js";
import { claim, init, lease, recentStoreId, recover } from "./steps-for-move.js";
import { opened } from "./store-in-hand.js";
import { STORES } from "./stores-for-test.js";

const PAIRS = STORES.flatMap(([from, openFrom]) => STORES.map(([to, openTo]) => [from, to, openFrom, openTo] as const));
const LEDGERS_FOR_EACH_PAIR = sized(3, 10);

const leases: readonly LedgerEntry[] = [
  [1, 3, "nonce-of-the-first-"],
  [4, 1, "nonce-of-the-second"],
  [70, 64, "nonce-of-the-third-"],
].map(([firstRun, runCount, nonce]) => ({
  version: 0,
  firstRun: firstRun as number,
  runCount: runCount as number,
  leasedAtMs: 1_790_000_000_000 + (firstRun as number),
  holder: holder,
  coordinator: "old",
  nonce: nonce as string,
  progress: firstRun === 4 ? { run: 4, lastSequence: 10, state: "open", reportedAtMs: 1_790_000_099_000 } : null,
}));
const [first, second, third] = leases as [LedgerEntry, LedgerEntry, LedgerEntry];

async function wholeLedger(store: Store, limit = 100): Promise<readonly LedgerEntry[]> {
  const found: LedgerEntry[] = [];
  for (;;) {
    const newest = found.at(-1);
    const from = newest === undefined ? 0 : lastLedgerIdOf(newest) + 1;
    const page = await store.leases(NAMESPACE, { from, direction: "oldest_first", limit });
    expect(page.length).toBeLessThanOrEqual(limit);
    found.push(...page);
    if (page.length < limit) return found;
  }
}

describe.each(STORES)("the %s store, as the source of a copy,", (_, open) => {
  test("a source returns the leases oldest first, with nonces and progress, a page at a time", async () => {
    const store = (await opened(open)).store;
    const storeId = recentStoreId();
    await init(store, storeId);
    for (const runCount of [1, 5, 2])
      await lease(store, storeId, { runCount, leaseNonce: `nonce-of-lease-of-${runCount}` });
    await recordReport(store, NAMESPACE, 3, { nonce: "nonce-of-lease-of-5", lastSequence: 7, state: "closed" });
    const all = await wholeLedger(store);
    expect(all.map(({ firstRun, runCount, nonce }) => [firstRun, runCount, nonce])).toEqual([
      [1, 1, "nonce-of-lease-of-1"],
      [2, 5, "nonce-of-lease-of-5"],
      [7, 2, "nonce-of-lease-of-2"],
    ]);
    expect(all).toEqual(
      [...(await store.leases(NAMESPACE, { from: 99, direction: "newest_first", limit: 10 }))].reverse(),
    );
    expect(await wholeLedger(store, 1)).toEqual(all);
    expect(await store.leases(NAMESPACE, { from: 2, direction: "oldest_first", limit: 1 })).toEqual([all[1]]);
  });

  test("a source returns no leases of a namespace that it does not have", async () => {
    expect(await wholeLedger((await opened(open)).store)).toEqual([]);
  });
});

describe.each(STORES)("the %s store, as the target of a copy,", (_, open) => {
  test("a target leases and lists nothing before it has a record, and rejects a new one", async () => {
    const store = (await opened(open)).store;
    await importLeases(store, NAMESPACE, leases);
    const storeId = recentStoreId();
    const refused = { code: "namespace_not_found" };
    await expect(lease(store, storeId)).rejects.toMatchObject(refused);
    await expect(store.readNamespace(NAMESPACE)).rejects.toMatchObject(refused);
    expect(await store.listNamespaces()).toEqual([]);
    await expect(init(store, storeId)).rejects.toMatchObject({ code: "store_corrupt" });
    expect(await wholeLedger(store)).toEqual(leases);
  });

  test("a target finds, lists and dates the leases once it has a record, and their holders may report", async () => {
    const store = (await opened(open)).store;
    await importLeases(store, NAMESPACE, leases);
    await recover(store, recentStoreId(), { floor: lastLedgerIdOf(third) });
    expect(await store.listNamespaces()).toEqual([NAMESPACE]);
    expect(await findLease(store, NAMESPACE, 71)).toEqual(third);
    expect(await findLease(store, NAMESPACE, 5)).toBeUndefined();
    expect(await firstLeaseSince(store, NAMESPACE, second.leasedAtMs)).toEqual(second);
    const report = { lastSequence: 20, state: "closed" } as const;
    await expect(recordReport(store, NAMESPACE, 4, { ...report, nonce: first.nonce })).rejects.toMatchObject({
      code: "holder_mismatch",
    });
    await recordReport(store, NAMESPACE, 4, { ...report, nonce: second.nonce });
    expect((await findLease(store, NAMESPACE, 4))?.progress).toMatchObject({ run: 4, ...report });
  });

  test("a target completes an import that was cut short, wherever it begins again", async () => {
    const store = (await opened(open)).store;
    await importLeases(store, NAMESPACE, []);
    for (const part of [[first], [first], [first, second], [second, third], leases]) {
      await importLeases(store, NAMESPACE, part);
      const newest = lastLedgerIdOf(part.at(-1) ?? first);
      expect(await wholeLedger(store)).toEqual(leases.filter((lease) => lastLedgerIdOf(lease) <= newest));
    }
  });

  test("a target appends leases to the ledger that they were to follow, and to no other", async () => {
    const store = (await opened(open)).store;
    expect(await store.appendLeases(NAMESPACE, 1, [first])).toBe(false);
    expect(await store.appendLeases(NAMESPACE, 0, [first, second])).toBe(true);
    for (const newest of [0, lastLedgerIdOf(first), lastLedgerIdOf(third)])
      expect(await store.appendLeases(NAMESPACE, newest, [third])).toBe(false);
    expect(await wholeLedger(store)).toEqual([first, second]);
    expect(await store.appendLeases(NAMESPACE, lastLedgerIdOf(second), [third])).toBe(true);
    expect(await wholeLedger(store)).toEqual(leases);
    await recover(store, recentStoreId(), { floor: lastLedgerIdOf(third) });
    expect(await store.appendLeases(NAMESPACE, lastLedgerIdOf(third), [{ ...third, firstRun: 200 }])).toBe(false);
    expect(await wholeLedger(store)).toEqual(leases);
  });

  test("a target takes a report of any time, as a wrong clock may have left it", async () => {
    for (const reportedAtMs of [-5, 0, 2 ** 32 * 1_000, Number.MAX_SAFE_INTEGER]) {
      const store = (await opened(open)).store;
      const progress = { run: 4, lastSequence: 10, state: "open", reportedAtMs } as const;
      await importLeases(store, NAMESPACE, [first, { ...second, progress }, third]);
      const copied = await wholeLedger(store);
      expect(copied.map((lease) => lease.progress?.lastSequence)).toEqual([undefined, 10, undefined]);
      expect(await store.setProgress(NAMESPACE, copied[1]!, { ...progress, reportedAtMs: 7 })).toBe(true);
    }
  });

  test("a target keeps what was reported to it meanwhile", async () => {
    const store = (await opened(open)).store;
    await importLeases(store, NAMESPACE, leases);
    await recover(store, recentStoreId(), { floor: lastLedgerIdOf(third) });
    await recordReport(store, NAMESPACE, 1, { nonce: first.nonce, lastSequence: 5, state: "open" });
    await importLeases(store, NAMESPACE, leases);
    expect((await findLease(store, NAMESPACE, 1))?.progress).toMatchObject({ lastSequence: 5 });
  });

  const others: readonly [what: string, lease: LedgerEntry][] = [
    ["another nonce", { ...second, nonce: "nonce-of-another-lease" }],
    ["other runs that end alike", { ...third, firstRun: 71, runCount: 63 }],
    ["another time", { ...second, leasedAtMs: 1_790_000_000_000 }],
    ["another holder", { ...second, holder: { ...holder, pid: 1 } }],
    ["another coordinator", { ...second, coordinator: "another" }],
    ["another token", { ...second, tokenId: "01234567" }],
    ["runs that overlap", { ...third, firstRun: 100 }],
    ["a lease that is missing among the others", { ...third, firstRun: 6, runCount: 1 }],
  ];

  test.each(others)("a target rejects %s, and adds no lease of the page", async (__, other) => {
    const store = (await opened(open)).store;
    await importLeases(store, NAMESPACE, leases);
    const beyond = { ...third, firstRun: 1_000 };
    await expect(importLeases(store, NAMESPACE, [other, beyond])).rejects.toMatchObject({
      code: "store_id_mismatch",
      message: expect.stringContaining(`another lease at run 0/${lastLedgerIdOf(other)}`),
    });
    expect(await wholeLedger(store)).toEqual(leases);
  });

  test("a target adds nothing to a ledger that has a record", async () => {
    const store = (await opened(open)).store;
    await importLeases(store, NAMESPACE, [first, second]);
    const storeId = recentStoreId();
    await recover(store, storeId, { floor: lastLedgerIdOf(third) });
    for (const phase of ["claimed", "claimed by a coordinator"]) {
      await importLeases(store, NAMESPACE, [first, second]);
      await expect(importLeases(store, NAMESPACE, leases), phase).rejects.toMatchObject({
        code: "namespace_exists",
      });
      await claim(store, storeId);
    }
    expect(await wholeLedger(store)).toEqual([first, second]);
  });
});

describe.each(PAIRS)("from the %s store to the %s store", (from, to, openFrom, openTo) => {
  test(`${LEDGERS_FOR_EACH_PAIR} random ledgers arrive as they were`, async () => {
    await fc.assert(
      fc.asyncProperty(randomLedger(300), fc.integer({ min: 1, max: 120 }), async (ledger, limit) => {
        const [source, target] = [await openFrom(), await openTo()];
        try {
          await importLeases(source.store, NAMESPACE, ledger);
          expect(await wholeLedger(source.store), from).toEqual(ledger);
          for (let done = 0, newest = 0; done < ledger.length; ) {
            const query = { from: newest + 1, direction: "oldest_first", limit } as const;
            const page = await source.store.leases(NAMESPACE, query);
            await importLeases(target.store, NAMESPACE, page);
            done += page.length;
            newest = lastLedgerIdOf(page.at(-1) as LedgerEntry);
          }
          expect(await wholeLedger(target.store), to).toEqual(ledger);
        } finally {
          await source.remove();
          await target.remove();
        }
      }),
      { seed: inject("seed"), numRuns: LEDGERS_FOR_EACH_PAIR, endOnFailure: true },
    );
  });
});
