/**
 * What the scripts of the ledger (lua/) reject before they change anything: parameters that no caller of ours sends, keys and records that
 * no script of ours wrote. And what an operator's `recover` makes of such keys. For the script that writes records see apply.test.ts.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis, usersUnavailable } from "../../../test/redis/test-redis.js";
import { checksumOf } from "../src/guard/record.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { keysOf, type NamespaceKeys, type ScriptName, scriptNamed } from "../src/stores/redis/scripts.js";
import type { Store } from "../src/stores/store.js";
import { LEASE_NONCE, NAMESPACE, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { clientAt, storeAt } from "./redis-for-test.js";
import { stepOn } from "./steps-for-test.js";
import { type StoreInHand, withNamespace } from "./store-in-hand.js";

const STORE_ID = storeIdFrom(1);
const TOO_GREAT = "9".repeat(16);
const NO_NUMBERS = ["", "x", " 1", "-1", "1.5", "1e3", "0x10", "NaN", "inf", TOO_GREAT];

/** A sound value, and bad ones. The bad ones of a number are `NO_NUMBERS`, too. */
type Parameter = readonly [sound: string | number, ...bad: (string | number)[]];
type ScriptParameters = Partial<Record<ScriptName, readonly Parameter[]>>;

const SCRIPTS: ScriptParameters = {
  leases: [[NAMESPACE], [1], ["newest_first", "newest"], [10]],
  report: [[NAMESPACE], [1], [LEASE_NONCE], [1, 16_385], [0, 4]],
  trim: [[NAMESPACE], [1], [STORE_ID], [0], [5], [0], [5], [0]],
  import: [[NAMESPACE], [5], [5], [1], ["{}"], ["nonce"], [0], [1], [0], [1]],
};

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

function keysFor(name: ScriptName): readonly string[] {
  const { record, ledger, holders, reports, retention } = keys;
  if (name === "report") return [record, ledger, reports];
  return name === "trim" ? [record, ledger, reports, retention] : [record, ledger, holders, reports];
}

function soundWords(name: ScriptName): readonly (string | number)[] {
  return (SCRIPTS[name] ?? []).map(([sound]) => sound);
}

/** Everything under the keys of the namespace. */
async function contents(): Promise<unknown> {
  const contentOf = async (key: string) => {
    // A hash has no order: its dump can differ from one to the next.
    const isHash = (await redis.type(key)) === "hash";
    return [key, await (isHash ? redis.hgetallBuffer(key) : redis.dumpBuffer(key)), (await redis.pttl(key)) > 0];
  };
  return await Promise.all(Object.values(keys).map(contentOf));
}

async function expectRejected(name: ScriptName, words: readonly (string | number)[], reply: RegExp): Promise<void> {
  const before = await contents();
  const call = redis.eval(scriptNamed(name).text, keysFor(name).length, ...keysFor(name), ...words);
  await expect(call, `${name} ${JSON.stringify(words)}`).rejects.toThrow(reply);
  expect(await contents()).toEqual(before);
}

test.each(Object.entries(SCRIPTS) as [ScriptName, readonly Parameter[]][])(
  "%s.lua rejects parameters that only a bug of its caller can send",
  async (name, parameters) => {
    const words = soundWords(name);
    const first = words.length - parameters.length;
    for (const [at, [sound, ...bad]] of parameters.entries())
      for (const word of [...bad, ...(typeof sound === "number" ? NO_NUMBERS : [])])
        await expectRejected(name, words.with(first + at, word), /^MISUSE /);
  },
);

test("import.lua rejects a lease that lacks a field", async () => {
  const unreported = [...soundWords("import").slice(0, -4), "-", "-", "-"];
  await expectRejected("import", unreported, /^MISUSE \S+ import takes nine fields/);
});

/** As a program would that knows the checksum: what is wrong is the field alone. */
async function edit(name: string, text: string | undefined): Promise<void> {
  const { [name]: _, ...fields } = await redis.hgetall(keys.record);
  const edited = { ...fields, ...(text !== undefined && { [name]: text }) };
  await redis.del(keys.record);
  await redis.hset(keys.record, { ...edited, k: checksumOf(edited) });
}

async function seal(text: string): Promise<void> {
  await edit("p", "2");
  await edit("ph", text);
}

/** Puts an entry in the place of the ledger. */
async function putEntry(...fields: readonly string[]): Promise<void> {
  await redis.del(keys.ledger);
  await redis.xadd(keys.ledger, "5-0", ...fields);
}

const OF_A_NAMESPACE = ["report", "leases"] as const;
const OF_A_RECORD = [...OF_A_NAMESPACE, "trim"] as const;

const NO_RUNS = ["x", "nan", "0x10", "1e3", "-1", String(RUN_MAX + 1), undefined];
const BAD_FIELDS: readonly [name: string, text: string | undefined, reply: RegExp][] = [
  ...NO_RUNS.map((text): [string, string | undefined, RegExp] => ["c", text, /^CORRUPT \S+ a field of the record/]),
  ["n", "0", /^CORRUPT \S+ a field of the record/],
  ["t", undefined, /^CORRUPT \S+ a field of the record/],
  ["ver", "8", /^CORRUPT \S+ a field of the record/],
  ["sid", "x", /^CORRUPT \S+ a field of the record/],
  ["ph", "a".repeat(40), /^CORRUPT \S+ a field of the record/],
  ["v", undefined, /^CORRUPT \S+ the record has no schema/],
  ["v", "1", /^VERSION \S+ 1/],
  ["v", "3", /^VERSION \S+ 3/],
  ["ns", "other", /^FOREIGN /],
];

test.each(BAD_FIELDS)("every script of the ledger rejects a record whose %s is %s: %s", async (field, text, reply) => {
  await edit(field, text);
  for (const name of OF_A_RECORD) await expectRejected(name, soundWords(name), reply);
});

type Change = readonly [what: string, reply: RegExp, names: readonly ScriptName[], change: () => Promise<unknown>];

const CHANGES: readonly Change[] = [
  ["the record is gone", /^EMPTY /, OF_A_NAMESPACE, () => redis.del(keys.record)],
  ["the checksum is missing", /^CORRUPT \S+ the checksum/, OF_A_RECORD, () => redis.hdel(keys.record, "k")],
  ["the checksum is wrong", /^CORRUPT \S+ the checksum/, OF_A_RECORD, () => redis.hset(keys.record, "c", "9")],
  ["the record expires", /^CORRUPT \S+ the record has a time/, OF_A_RECORD, () => redis.expire(keys.record, 1_000)],
  ["the record is a string", /^CORRUPT /, [...OF_A_RECORD, "import"], () => redis.set(keys.record, "x")],
  ["the ledger is a string", /^CORRUPT /, ["leases", "report", "trim", "import"], () => redis.set(keys.ledger, "x")],
  ["the holders are a string", /^CORRUPT /, ["leases", "import"], () => redis.set(keys.holders, "x")],
  ["the reports are a string", /^CORRUPT /, ["leases", "report", "trim", "import"], () => redis.set(keys.reports, "x")],
  ["the retention is a string", /^CORRUPT /, ["trim"], () => redis.set(keys.retention, "x")],
  ["the retention has no number", /^CORRUPT \S+ where it/, ["trim"], () => redis.hset(keys.retention, "through", "x")],
  [
    "an entry has a foreign field",
    /^CORRUPT \S+ entry/,
    ["leases", "report"],
    () => putEntry(..."a 1 t 1 h 1 x y".split(" ")),
  ],
  ["an entry lacks a field", /^CORRUPT \S+ entry/, ["leases"], () => putEntry(..."n 1 t 1 h 1".split(" "))],
  [
    "a report is cut short",
    /^CORRUPT \S+ a report/,
    ["leases", "trim", "report"],
    () => redis.hset(keys.reports, "0", "short"),
  ],
  ["the store is another", /^FOREIGN /, ["trim"], () => edit("sid", storeIdFrom(2))],
  ["the store has moved", /^MOVED /, ["trim"], () => seal("moved")],
  ["the store is one of two copies", /^FORKED /, ["trim"], () => seal("forked")],
];

test.each(CHANGES)("scripts reject keys that another program has changed: %s", async (_, reply, names, change) => {
  await change();
  for (const name of names) await expectRejected(name, soundWords(name), reply);
});

test("a mark below a ledger that was trimmed is a rollback, since the newest lease is never trimmed", async () => {
  const leases = [{ lastLedgerId: 5, reportedAtMs: null }];
  await store.trimLedger(NAMESPACE, { storeId: STORE_ID, trimmedThrough: 0, through: 5, leasedAtMs: 0, leases });
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
  await store.report(NAMESPACE, 1, reportCommand());
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
