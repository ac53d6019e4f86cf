/**
 * What the Redis store rejects before it changes anything: keys and records that no script of ours wrote. And what an operator's `recover` makes of such keys. For the script that writes records see apply.test.ts.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis, usersUnavailable } from "../../../test/redis/test-redis.js";
import { checksumOf, NO_SEAL, PHASES } from "../src/guard/record.js";
import { importLeases, recordReport } from "../src/ledger/ledger-changes.js";
import { findLease, firstLeaseSince } from "../src/ledger/read-ledger.js";
import { keysOf, type NamespaceKeys } from "../src/stores/redis/scripts.js";
import type { Store } from "../src/stores/store.js";
import { holder, LEASE_NONCE, NAMESPACE, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { clientAt, storeAt } from "./redis-for-test.js";
import { stepOn } from "./steps-for-test.js";
import { type StoreInHand, withNamespace } from "./store-in-hand.js";

const STORE_ID = storeIdFrom(1);
const imported: readonly LedgerEntry[] = [
  {
    version: 0,
    firstRun: 70,
    runCount: 1,
    leasedAtMs: 1_790_000_000_000,
    holder,
    coordinator: "old",
    nonce: LEASE_NONCE,
    progress: { run: 70, lastSequence: 1, state: "open", reportedAtMs: 1_790_000_000_000 },
  },
];
let redis: Redis;
let keys: NamespaceKeys;
let operators: Store;
let store: Store;
let inHand: StoreInHand;

/** Runs 1 to 5 are leased, and run 6. */
beforeEach(async () => {
  const { url, storeUrl } = sharedRedis();
  redis = clientAt(url);
  keys = keysOf(new URL(storeUrl).searchParams.get("prefix") as string, NAMESPACE);
  operators = await storeAt(asOperator(storeUrl));
  store = await storeAt(storeUrl);
  inHand = await withNamespace(store, { storeId: STORE_ID });
  await inHand.lease({ runCount: 5 });
  await inHand.lease();
});

/** Everything under the keys of the namespace. */
async function contents(): Promise<unknown> {
  const contentOf = async (key: string) => {
    // A hash has no order: its dump can differ from one to the next.
    const isHash = (await redis.type(key)) === "hash";
    return [key, await (isHash ? redis.hgetallBuffer(key) : redis.dumpBuffer(key)), (await redis.pttl(key)) > 0];
  };
  return await Promise.all(Object.values(keys).map(contentOf));
}

/** As a program would that knows the checksum: what is wrong is the field alone. */
async function edit(name: string, text: string | undefined): Promise<void> {
  const { [name]: _, ...fields } = await redis.hgetall(keys.record);
  const edited = { ...fields, ...(text !== undefined && { [name]: text }) };
  await redis.del(keys.record);
  await redis.hset(keys.record, { ...edited, k: checksumOf(edited) });
}

/** Puts an entry in the place of the ledger. */
async function putEntry(fields: string, id = "5-0"): Promise<void> {
  await redis.del(keys.ledger);
  await redis.xadd(keys.ledger, id, ...fields.split(" "));
}

const record = { storeId: STORE_ID, phase: PHASES.open, seal: NO_SEAL };
const none = { trimmedThrough: 0, through: 0, leasedAtMs: 0, leases: [] };

/** All that concerns a ledger, as this store does it. */
const USES = {
  read: () => store.readNamespace(NAMESPACE),
  leases: () => store.leases(NAMESPACE, { direction: "newest_first", limit: 10 }),
  since: () => firstLeaseSince(store, NAMESPACE, 0),
  report: () => recordReport(store, NAMESPACE, 1, reportCommand()),
  trim: () => store.trimLedger(NAMESPACE, { ...none, record }),
  import: () => importLeases(operators, NAMESPACE, imported),
  retention: () => store.readRetention(NAMESPACE),
} as const;
type Use = keyof typeof USES;

async function expectRejected(use: Use, reason: object): Promise<void> {
  const before = await contents();
  await expect(USES[use](), use).rejects.toMatchObject(reason);
  expect(await contents()).toEqual(before);
}

const NO_RUNS = ["x", "nan", "0x10", "1e3", "-1", String(RUN_MAX + 1), undefined];
const BAD_FIELDS: readonly [name: string, text: string | undefined, code: string][] = [
  ...NO_RUNS.map((text): [string, string | undefined, string] => ["c", text, "store_corrupt"]),
  ["n", "0", "store_corrupt"],
  ["t", undefined, "store_corrupt"],
  ["ver", "8", "store_corrupt"],
  ["sid", "x", "store_corrupt"],
  ["ph", "a".repeat(40), "store_corrupt"],
  ["v", undefined, "store_corrupt"],
  ["v", "1", "store_schema_unsupported"],
  ["v", "3", "store_schema_unsupported"],
  ["ns", "other", "store_id_mismatch"],
];

test.each(BAD_FIELDS)(
  "nothing is read of a record whose %s is %s, and no report accepted: %s",
  async (field, text, code) => {
    await edit(field, text);
    for (const use of ["read", "report"] as const) await expectRejected(use, { code });
  },
);

type Change = readonly [what: string, uses: readonly Use[], change: () => Promise<unknown>];

const CHANGES: readonly Change[] = [
  ["the checksum is missing", ["read", "report"], () => redis.hdel(keys.record, "k")],
  ["the checksum is wrong", ["read", "report"], () => redis.hset(keys.record, "c", "9")],
  ["the record expires", ["read", "report"], () => redis.expire(keys.record, 1_000)],
  ["the record is a string", ["read", "report", "trim"], () => redis.set(keys.record, "x")],
  ["the ledger is a string", ["leases", "since", "report", "trim", "import"], () => redis.set(keys.ledger, "x")],
  ["the holders are a string", ["leases", "report"], () => redis.set(keys.holders, "x")],
  ["the reports are a string", ["leases", "report"], () => redis.set(keys.reports, "x")],
  ["the retention is a string", ["retention", "trim"], () => redis.set(keys.retention, "x")],
  ["the retention has no number", ["retention"], () => redis.hset(keys.retention, "through", "x")],
  ["an entry has a foreign field", ["leases", "report"], () => putEntry("a 1 t 1 h 1 x y")],
  ["an entry lacks a field", ["leases"], () => putEntry("n 1 t 1 h 1")],
  ["an entry has no number of runs", ["leases", "report"], () => putEntry("n 0x1 t 1 h 1 x y")],
  ["an entry has no ledger id", ["leases", "report"], () => putEntry("n 1 t 1 h 1 x y", "5-1")],
  ["a report is cut short", ["leases", "report"], () => redis.hset(keys.reports, "0", "short")],
  ["a report has no state", ["leases", "report"], () => redis.hset(keys.reports, "0", Buffer.alloc(11, 9))],
];

test.each(CHANGES)("what another program has changed is rejected, and left as it is: %s", async (_, uses, change) => {
  await change();
  for (const use of uses) await expectRejected(use, { code: "store_corrupt" });
});

test.each(["x", "{}", '{"holder":{}}'])(
  "a holder that another program changed to %s is shown as that",
  async (text) => {
    await redis.hset(keys.holders, "1", text);
    const rejection = { code: "store_corrupt", message: expect.stringContaining(text) };
    for (const use of ["leases", "report"] as const) await expectRejected(use, rejection);
    await expect(store.hasHolder(NAMESPACE, "importer")).rejects.toMatchObject(rejection);
  },
);

test("of two reports on a lease, as another program may leave them, the one that is read is changed", async () => {
  await recordReport(store, NAMESPACE, 1, reportCommand({ lastSequence: 1 }));
  const report = (await redis.hgetBuffer(keys.reports, "0")) as Buffer;
  await redis.hset(keys.reports, "0", Buffer.concat([report, report]));
  await recordReport(store, NAMESPACE, 1, reportCommand({ lastSequence: 2 }));
  expect((await findLease(store, NAMESPACE, 1))?.progress).toMatchObject({ lastSequence: 2 });
});

test("a report on a namespace whose record is gone is rejected", async () => {
  await redis.del(keys.record);
  await expectRejected("report", { code: "namespace_not_found" });
});

test("a mark below a ledger that was trimmed is a rollback, since the newest lease is never trimmed", async () => {
  const leases = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 1 });
  expect(await store.trimLedger(NAMESPACE, { ...none, record, through: 5, leases })).toBe(true);
  await edit("c", "5");
  await expect(inHand.lease()).rejects.toMatchObject({ reason: "rolled_back" });
});

test("recover keeps the store id of an edited record, and rejects another one", async () => {
  await redis.hset(keys.record, "c", "3");
  const { commands } = inHand;
  const foreign = { ...commands.recover(), storeId: storeIdFrom(2) };
  await expect(stepOn(operators, NAMESPACE, foreign)).rejects.toMatchObject({ code: "store_id_mismatch" });
  await stepOn(operators, NAMESPACE, commands.recover());
  expect(await store.readNamespace(NAMESPACE)).toMatchObject({ storeId: STORE_ID, phase: 1 });
  expect(await inHand.skipAhead()).toBeGreaterThan(6);
});

test("recover removes the time to live of a moved record, which stays moved", async () => {
  await stepOn(store, NAMESPACE, inHand.commands.seal("moved"));
  await redis.expire(keys.record, 1_000);
  await expect(inHand.lease()).rejects.toMatchObject({ code: "store_corrupt" });
  await stepOn(operators, NAMESPACE, inHand.commands.recover());
  expect(await redis.ttl(keys.record)).toBe(-1);
  await expect(inHand.lease()).rejects.toMatchObject({ code: "namespace_moved" });
});

test.for(["record", "ledger", "holders"] as const)(
  "recover renames a %s of another type for an operator alone, and leasing continues",
  async (name, { skip }) => {
    skip(usersUnavailable() !== undefined, usersUnavailable());
    await redis.set(keys[name], "kept");
    const before = await contents();
    const recover = () => inHand.commands.recover({ floor: 6 });
    await expect(stepOn(store, NAMESPACE, recover())).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("operator's user"),
    });
    expect(await contents()).toEqual(before);
    const { movedAside = [] } = await stepOn(operators, NAMESPACE, recover());
    expect(movedAside).toEqual([expect.stringContaining(`${keys[name]}:foreign:`)]);
    expect(await redis.get(movedAside[0] ?? "")).toBe("kept");
    expect(await inHand.skipAhead()).toBeGreaterThan(6);
  },
);

test("all keys of a namespace are in one hash slot", async () => {
  await recordReport(store, NAMESPACE, 1, reportCommand());
  const [prefix] = keys.record.split("{");
  const found = await redis.keys(`${prefix}{*`);
  expect(found.sort()).toEqual([keys.holders, keys.ledger, keys.record, keys.reports]);
  expect(new Set(found.map((key) => key.split("}")[0]))).toEqual(new Set([`${prefix}{${NAMESPACE}`]));
});

test("the holders list each process once, however many runs it leases", async () => {
  for (let count = 0; count < 10; count++) await inHand.lease();
  await inHand.lease({ holder: { name: "other", host: "h", pid: 1, labels: {} } });
  expect(await redis.hlen(keys.holders)).toBe(4);
  expect((await findLease(store, NAMESPACE, 17))?.holder.name).toBe("other");
});

test("any name may be that of a holder which another program removed", async () => {
  for (const name of ["first", "second", "third"]) await inHand.lease({ holder: { ...holder, name } });
  expect(await store.hasHolder(NAMESPACE, "absent")).toBe(false);
  expect(await store.hasHolder(NAMESPACE, "unknown")).toBe(true);
  const json = await redis.hget(keys.holders, "2");
  await redis.hdel(keys.holders, "2", json as string);
  expect(await store.hasHolder(NAMESPACE, "absent")).toBe(true);
});
