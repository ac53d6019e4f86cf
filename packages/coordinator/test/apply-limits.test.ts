/**
 * Each thing that a change rests on, on both sides of its limit, on every store: apply-stale.test.ts draws them at random.
 * Guarantees: G1 (docs/guarantees.md).
 */
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import type { RisingMark } from "../src/guard/checks.js";
import { checksumOf, PHASES, RECORD_FIELDS } from "../src/guard/record.js";
import { type Expected, isApplied } from "../src/guard/step-store.js";
import { keysOf, type NamespaceKeys } from "../src/stores/redis/scripts.js";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE } from "./commands-for-test.js";
import { clientAt, storeAt } from "./redis-for-test.js";
import { preparedFor } from "./steps-for-test.js";
import { opened, withNamespace } from "./store-in-hand.js";
import { HAS_REDIS, STORES } from "./stores-for-test.js";

const MARK = 5;
const RUNS = 3;
const HOUR_MS = 3_600_000;

/** A lease of three runs above run 5, as it is sent: without the limits of a decision. */
async function sent(store: Store) {
  const { lease, commands } = await withNamespace(store);
  await lease({ runCount: MARK });
  const [asked, change] = await preparedFor(store, NAMESPACE, commands.lease({ runCount: RUNS }));
  const rising: RisingMark = { ...(asked.rising as RisingMark), ageMinMs: -HOUR_MS, ageMaxMs: HOUR_MS, markIdMin: 0 };
  const expected: Expected = { ...asked, timeMinMs: 0, timeMaxMs: 1e14, rising };
  const apply = async (own: Partial<Expected>, ownRising: Partial<RisingMark> = {}) => {
    const before = await store.read(NAMESPACE);
    const answer = await store.apply(NAMESPACE, { ...expected, ...own, rising: { ...rising, ...ownRising } }, change);
    const { keys } = await store.read(NAMESPACE);
    if (isApplied(answer)) expect(keys.fields["c"]).toBe(String(Number(before.keys.fields["c"]) + RUNS));
    else expect([answer.keys, keys]).toEqual([before.keys, before.keys]);
    return isApplied(answer);
  };
  return { expected, apply };
}

type Limit = readonly [what: string, fits: Partial<RisingMark>, isLess: Partial<RisingMark>];

const LIMITS: readonly Limit[] = [
  ["the least mark", { markIdMin: MARK }, { markIdMin: MARK + 1 }],
  ["the greatest mark", { highWaterMarkMax: MARK + RUNS }, { highWaterMarkMax: MARK + RUNS - 1 }],
  ["the least age", { ageMinMs: -60_000 }, { ageMinMs: 60_000 }],
  ["the greatest age", { ageMaxMs: 60_000 }, { ageMaxMs: -60_000 }],
];

test.each(STORES.flatMap(([name, open]) => LIMITS.map((limit) => [limit[0], name, open, limit] as const)))(
  "a lease that does not keep %s is not written to the %s store",
  async (_, __, open, [, fits, isLess]) => {
    const { apply } = await sent((await opened(open)).store);
    expect(await apply({}, isLess)).toBe(false);
    expect(await apply({}, fits)).toBe(true);
  },
);

test.each(STORES)("a lease for another server, time or place is not written to the %s store", async (_, open) => {
  const { apply, expected } = await sent((await opened(open)).store);
  const { keys, server } = expected.found;
  const now = Date.now();
  const others: Partial<Expected>[] = [
    { timeMinMs: now + 60_000 },
    { timeMaxMs: now - 60_000 },
    { replicasMax: -1 },
    { found: { keys, server: { ...server, role: "slave" } } },
    { found: { keys, server: { ...server, epoch: `${server.epoch}0` } } },
    { found: { keys: { ...keys, expires: true }, server } },
    { found: { keys: { ...keys, record: "none" }, server } },
    { found: { keys: { ...keys, ledger: "none" }, server } },
    { found: { keys: { ...keys, holders: "none" }, server } },
  ];
  for (const other of others) expect(await apply(other), JSON.stringify(other)).toBe(false);
  for (const name of ["v", "ns", "sid", "ver", "ep", "g", "p", "n", "rk", "ph"]) {
    const fields = { ...keys.fields, [name]: `${keys.fields[name]}0` };
    expect(await apply({ found: { keys: { ...keys, fields }, server } }), name).toBe(false);
  }
  expect(await apply({ timeMinMs: now - 60_000, timeMaxMs: now + 600_000, replicasMax: 0 })).toBe(true);
});

test.each(STORES)("a confirmation of another record is not written to the %s store", async (_, open) => {
  const { store, lease, commands, step, read } = await withNamespace((await opened(open)).store);
  await lease({ runCount: MARK });
  await step(commands.claim(0));
  const [expected, change] = await preparedFor(store, NAMESPACE, commands.confirm(1));
  const expectFound = async (own: Partial<Expected["found"]["keys"]>) => {
    const { keys } = await store.read(NAMESPACE);
    const found = { ...expected.found, keys: { ...expected.found.keys, ...own } };
    const answer = await store.apply(NAMESPACE, { ...expected, found }, change);
    expect(answer, JSON.stringify(own)).toMatchObject({ keys });
    expect((await store.read(NAMESPACE)).keys).toEqual(keys);
  };
  const { fields } = expected.found.keys;
  for (const name of [...RECORD_FIELDS, "k"] as const) {
    // Redis compares the fingerprint alone.
    await expectFound({ fields: { ...fields, [name]: `${fields[name]}0` }, fingerprint: "0" });
  }
  await expectFound({ ledgerMark: MARK - 1 });
  await expectFound({ ledgerMark: MARK + 1 });
  await step(commands.confirm(1));
  await expectFound({});
  expect((await read()).phase).toBe(PHASES.open);
});

test.runIf(HAS_REDIS)("a lease above what another program has written is not written to Redis", async () => {
  const { url, storeUrl } = sharedRedis();
  const { apply } = await sent(await storeAt(storeUrl));
  const redis: Redis = clientAt(url);
  const keys: NamespaceKeys = keysOf(new URL(storeUrl).searchParams.get("prefix") as string, NAMESPACE);
  const fields = await redis.hgetall(keys.record);
  const { c = "", t = "", k = "" } = fields;
  const edit = async (own: Record<string, string>) => {
    const edited = { ...fields, ...own };
    await redis.hset(keys.record, { ...edited, k: own["k"] ?? checksumOf(edited) });
  };
  for (const text of [`${"0".repeat(15)}${c}`, ` ${c}`, `${c}.0`, `${c}e0`, "0x5", "", "nan"]) {
    await edit({ c: text });
    expect(await apply({}), `c ${text}`).toBe(false);
  }
  for (const text of [`000${t}`, ` ${t}`, `${t}.0`, "", "nan"]) {
    await edit({ t: text });
    expect(await apply({}), `t ${text}`).toBe(false);
  }
  await edit({ c: "6", k });
  expect(await apply({}), "a checksum of another mark").toBe(false);
  await edit({});
  await redis.xadd(keys.ledger, "6-0", "n", "1", "t", "1", "h", "1", "x", "x");
  expect(await apply({}), "a newer entry").toBe(false);
  expect(await apply({}, { isLedgerReached: false, markIdMin: MARK })).toBe(true);
});

test.runIf(HAS_REDIS)(
  "a confirmation is not written to Redis when its ledger has a newer entry meanwhile",
  async () => {
    const { url, storeUrl } = sharedRedis();
    const { store, commands, step, read } = await withNamespace(await storeAt(storeUrl));
    await step(commands.claim(0));
    const prepared = await preparedFor(store, NAMESPACE, commands.confirm(1));
    const { ledger } = keysOf(new URL(storeUrl).searchParams.get("prefix") as string, NAMESPACE);
    const redis = clientAt(url);
    const entry = ["n", "1", "t", "1", "h", "1", "x", "x"];
    await redis.xadd(ledger, "6-0", ...entry);
    const other = await preparedFor(store, NAMESPACE, commands.confirm(1));
    await redis.xadd(ledger, "7-0", ...entry);
    for (const [expected, change] of [prepared, other]) {
      expect(isApplied(await store.apply(NAMESPACE, expected, change))).toBe(false);
      expect((await read()).phase).toBe(1);
    }
    await step(commands.confirm(1));
    expect((await read()).phase).toBe(0);
  },
);
