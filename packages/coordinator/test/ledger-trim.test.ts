/** The contract of a store's retention: it trims exactly the leases that the caller knows, and never what the guard reads. */
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { FORKED_SEAL, NO_SEAL, PHASES } from "../src/guard/record.js";
import { MOVED_SEAL } from "../src/guard/store-id.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { importLeases, recordReport } from "../src/ledger/ledger-changes.js";
import { findLease, firstLeaseSince } from "../src/ledger/read-ledger.js";
import { LEDGER_TRIM_LEASES_MAX } from "../src/retention/ledger-trimmer.js";
import { keysOf } from "../src/stores/redis/scripts.js";
import { RedisStore } from "../src/stores/redis/store.js";
import type { Store } from "../src/stores/store.js";
import { commandsFor, holder, LEASE_NONCE, NAMESPACE, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { stepOn } from "./steps-for-test.js";
import { ledgerOf, opened, withNamespace } from "./store-in-hand.js";
import { HAS_REDIS, redisAddressForTest, STORES } from "./stores-for-test.js";

describe.each(STORES)("the %s store", (_, open) => {
  /** Leases of two runs each, so that the last runs are 2, 4, 6, …; the third is reported on. */
  async function leased(leaseCount: number) {
    const { store } = await opened(open);
    const inHand = await withNamespace(store);
    for (let count = 0; count < leaseCount; count++) await inHand.lease({ runCount: 2 });
    await recordReport(store, NAMESPACE, 6, reportCommand({ state: "closed" }));
    const leases = await ledgerOf(store);
    const { storeId } = inHand;
    const record = { storeId, phase: PHASES.open, seal: NO_SEAL };
    /** With `ids` as the leases that the caller knows; by default all. */
    const trim = (trimmedThrough: number, through: number, ids = upTo(through)) =>
      store.trimLedger(NAMESPACE, {
        record,
        trimmedThrough,
        through,
        leasedAtMs: through,
        leases: named(leases, ids),
      });
    const upTo = (ledgerId: number) => leases.map(lastLedgerIdOf).filter((id) => id > trimmed && id <= ledgerId);
    let trimmed = 0;
    const isTrimmed = async (through: number) => {
      expect(await trim(trimmed, through)).toBe(true);
      trimmed = through;
    };
    return { ...inHand, record, leases, trim, isTrimmed };
  }

  test("a store keeps all leases, unless a number of days is set", async () => {
    const { store } = await leased(3);
    expect(await store.readRetention(NAMESPACE)).toEqual({ days: 0, through: 0, leasedAtMs: 0 });
    await store.setRetentionDays(NAMESPACE, 90);
    expect(await store.readRetention(NAMESPACE)).toEqual({ days: 90, through: 0, leasedAtMs: 0 });
    await store.setRetentionDays(NAMESPACE, 0);
    expect(await store.readRetention(NAMESPACE)).toEqual({ days: 0, through: 0, leasedAtMs: 0 });
    expect(await store.readRetention("other")).toEqual({ days: 0, through: 0, leasedAtMs: 0 });
  });

  test("a trim removes the oldest leases, and stores up to where", async () => {
    const { store, leases, isTrimmed } = await leased(8);
    await store.setRetentionDays(NAMESPACE, 90);
    await isTrimmed(10);
    expect(await store.readRetention(NAMESPACE)).toEqual({ days: 90, through: 10, leasedAtMs: 10 });
    expect(await ledgerOf(store)).toEqual(leases.slice(5));
    for (const run of [1, 3, 5, 10]) expect(await findLease(store, NAMESPACE, run)).toBeUndefined();
    expect(await findLease(store, NAMESPACE, 11)).toEqual(leases[5]);
    await isTrimmed(12);
    expect(await store.readRetention(NAMESPACE)).toEqual({ days: 90, through: 12, leasedAtMs: 12 });
    await store.setRetentionDays(NAMESPACE, 0);
    expect(await store.readRetention(NAMESPACE)).toEqual({ days: 0, through: 12, leasedAtMs: 12 });
  });

  test("a trim removes the reports, too, and keeps those on the leases next to them", async () => {
    const { store, isTrimmed } = await leased(8);
    await recordReport(store, NAMESPACE, 8, reportCommand({ lastSequence: 4 }));
    await isTrimmed(6);
    expect((await findLease(store, NAMESPACE, 8))?.progress).toMatchObject({ run: 8, lastSequence: 4 });
    await expect(recordReport(store, NAMESPACE, 6, reportCommand())).rejects.toMatchObject({ code: "report_expired" });
    await recordReport(store, NAMESPACE, 8, reportCommand({ lastSequence: 9 }));
    expect((await findLease(store, NAMESPACE, 8))?.progress).toMatchObject({ lastSequence: 9 });
  });

  test("a trim removes nothing when a lease was reported on meanwhile", async () => {
    const { store, trim } = await leased(8);
    await new Promise((resolve) => setTimeout(resolve, 2));
    for (const run of [6, 4]) {
      await recordReport(store, NAMESPACE, run, reportCommand({ lastSequence: 99 }));
      const before = await ledgerOf(store);
      expect(await trim(0, 8)).toBe(false);
      expect(await ledgerOf(store)).toEqual(before);
    }
    expect(await trim(0, 2)).toBe(true);
  });

  test("a trim removes nothing when another coordinator has trimmed meanwhile", async () => {
    const { store, trim, isTrimmed } = await leased(8);
    await isTrimmed(4);
    const before = await ledgerOf(store);
    for (const known of [0, 5]) expect(await trim(known, 6)).toBe(false);
    expect(await ledgerOf(store)).toEqual(before);
    expect(await store.readRetention(NAMESPACE)).toMatchObject({ through: 4 });
  });

  test.each([[[2, 6]], [[4, 6]], [[2, 4]], [[]], [[2, 3, 6]], [[2, 4, 6, 7]]])(
    "a trim removes nothing when it holds other leases than the caller knows: %j",
    async (ids) => {
      const { store, leases, trim } = await leased(8);
      expect(await trim(0, 7, ids)).toBe(false);
      expect(await ledgerOf(store)).toEqual(leases);
      expect(await store.readRetention(NAMESPACE)).toMatchObject({ through: 0 });
    },
  );

  test("a trim never removes the newest lease, which the guard reads", async () => {
    const { store, trim, leases } = await leased(4);
    for (const through of [8, 9]) expect(await trim(0, through)).toBe(false);
    expect(await trim(0, 4, [2, 6])).toBe(false);
    expect(await trim(0, 4, [2, 2])).toBe(false);
    expect(await ledgerOf(store)).toEqual(leases);
    expect(await trim(0, 0)).toBe(true);
    expect(await trim(0, 7)).toBe(true);
    expect((await ledgerOf(store)).map(lastLedgerIdOf)).toEqual([8]);
  });

  test("a trim removes as many leases as one step may", async () => {
    const { store, isTrimmed } = await leased(LEDGER_TRIM_LEASES_MAX + 2);
    await isTrimmed(2 * LEDGER_TRIM_LEASES_MAX);
    expect(await ledgerOf(store)).toHaveLength(2);
  });

  test("a trim removes nothing of a namespace that the store does not have", async () => {
    const { store, record } = await leased(4);
    const asked = { record, trimmedThrough: 5, through: 6, leasedAtMs: 0, leases: [] };
    expect(await store.trimLedger("other", asked)).toBe(false);
    expect(await store.readRetention("other")).toMatchObject({ through: 0 });
  });

  test.each([
    ["of another store", undefined, { storeId: storeIdFrom(1) }],
    ["while it is sealed as one of two copies", FORKED_SEAL, {}],
    ["while it is sealed as moved", MOVED_SEAL, {}],
    ["of another phase", undefined, { phase: PHASES.claimed }],
    ["of another seal", undefined, { seal: MOVED_SEAL }],
  ])("a trim removes nothing %s", async (_, seal, other) => {
    const { store, record, commands, leases } = await leased(4);
    if (seal !== undefined) await stepOn(store, NAMESPACE, commands.seal(seal));
    const trim = { trimmedThrough: 0, through: 2, leasedAtMs: 0, leases: named(leases, [2]) };
    for (const expected of [{ ...record, ...other }, undefined])
      expect(await store.trimLedger(NAMESPACE, { ...trim, record: expected })).toBe(false);
    expect(await ledgerOf(store)).toEqual(leases);
    expect((await store.readRetention(NAMESPACE)).through).toBe(0);
  });

  test("a store takes over the retention of another store before it has a record", async () => {
    const { leases } = await leased(8);
    const { store } = await opened(open);
    const trim = { record: undefined, trimmedThrough: 0, through: 6, leasedAtMs: 7, leases: [] };
    for (const name of [NAMESPACE, "empty"]) {
      if (name === NAMESPACE) await importLeases(store, name, leases.slice(3));
      await store.setRetentionDays(name, 90);
      expect(await store.trimLedger(name, trim)).toBe(true);
      expect(await store.readRetention(name)).toEqual({ days: 90, through: 6, leasedAtMs: 7 });
    }
    expect(await ledgerOf(store)).toEqual(leases.slice(3));
    expect(await store.listNamespaces()).toEqual([]);
    await stepOn(store, "empty", commandsFor(storeIdFrom(1)).init());
    expect(await store.readRetention("empty")).toEqual({ days: 90, through: 6, leasedAtMs: 7 });
  });

  test("a store finds the first lease of a time or later among those that are left", async () => {
    const { store, leases, isTrimmed } = await leased(8);
    await isTrimmed(12);
    const left = await ledgerOf(store);
    expect(left.map(lastLedgerIdOf)).toEqual([14, 16]);
    for (const { leasedAtMs } of leases) {
      const expected = left.find((lease) => lease.leasedAtMs >= leasedAtMs);
      expect(await firstLeaseSince(store, NAMESPACE, leasedAtMs)).toEqual(expected);
    }
  });
});

/** The Redis store, and a plain connection to its server. */
async function redisStore(url?: string) {
  const address = redisAddressForTest(url);
  const store = await RedisStore.open(address);
  const redis = new Redis(sharedRedis().url);
  onTestFinished(async () => {
    await store.close();
    redis.disconnect();
  });
  return { store, redis, keyPrefix: address.keyPrefix, keys: keysOf(address.keyPrefix, NAMESPACE) };
}

const trimOfNothing = { record: undefined, trimmedThrough: 0, through: 0, leasedAtMs: 0, leases: [] };

type Key = keyof ReturnType<typeof keysOf>;
const CHANGES: readonly [verb: string, change: (store: Store) => Promise<unknown>, keys: readonly Key[]][] = [
  ["trims", (store) => store.trimLedger(NAMESPACE, trimOfNothing), ["record", "ledger", "retention"]],
  ["imports", (store) => importLeases(store, NAMESPACE, [reported(leaseOf(7))]), ["ledger", "holders", "reports"]],
];

test.runIf(HAS_REDIS).each(CHANGES.flatMap(([verb, change, names]) => names.map((name) => ({ verb, name, change }))))(
  "the Redis store $verb nothing where the $name is of another type",
  async ({ verb, name, change }) => {
    const url = verb === "imports" ? sharedRedis().operatorUrl : undefined;
    const { store, redis, keyPrefix, keys } = await redisStore(url);
    await redis.set(keys[name], "x");
    await expect(change(store)).rejects.toMatchObject({ code: "store_corrupt" });
    expect(await redis.keys(`${keyPrefix}*`)).toEqual([keys[name]]);
  },
);

function leaseOf(firstRun: number): LedgerEntry {
  const lease = { version: 0, firstRun, runCount: 1, leasedAtMs: 1_790_000_000_000, holder, coordinator: "old" };
  return { ...lease, nonce: LEASE_NONCE, progress: null };
}

function reported(lease: LedgerEntry): LedgerEntry {
  return { ...lease, progress: { run: lease.firstRun, lastSequence: 1, state: "open", reportedAtMs: 1 } };
}

test.runIf(HAS_REDIS)("the Redis store keeps neither entry nor report of what was trimmed", async () => {
  const { store, redis, keys } = await redisStore();
  const { lease, storeId } = await withNamespace(store);
  for (let run = 1; run <= 400; run++) {
    await lease();
    await recordReport(store, NAMESPACE, run, reportCommand({ state: "closed" }));
  }
  const leases = await ledgerOf(store);
  const ids = leases.map(lastLedgerIdOf).slice(0, 399);
  const record = { storeId, phase: PHASES.open, seal: NO_SEAL };
  const trim = { record, trimmedThrough: 0, through: 399, leasedAtMs: 0, leases: named(leases, ids) };
  expect(await store.trimLedger(NAMESPACE, trim)).toBe(true);
  expect(await redis.xlen(keys.ledger)).toBe(1);
  expect(await redis.hkeys(keys.reports)).toEqual(["3"]);
  expect((await redis.hgetBuffer(keys.reports, "3"))?.length).toBe(11);
});

/** Those with these ledger ids; for another id a lease that is not there. */
function named(leases: readonly LedgerEntry[], ids: readonly number[]): LedgerEntry[] {
  return ids.map((id) => leases.find((lease) => lastLedgerIdOf(lease) === id) ?? leaseOf(id));
}
