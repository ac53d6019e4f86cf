/** What only the Redis store must do with its keys: trust none that another hand has touched, and keep each where it belongs. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import type { CoordinatorError } from "../src/errors.js";
import { checksumOf } from "../src/guard/record.js";
import { findLease, firstLeaseSince } from "../src/ledger/read-ledger.js";
import type { StepCommand, Store } from "../src/stores/store.js";
import { NAMESPACE, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { clientAt, newStoreAt, storeAt } from "./redis-for-test.js";
import type { StoreInHand } from "./store-in-hand.js";

describe("keys that another hand has touched", () => {
  let url: string;
  let inHand: StoreInHand;
  let store: Store;
  let redis: Redis;
  let prefix: string;
  const key = (name: string) => `${prefix}{${NAMESPACE}}:${name}`;

  beforeEach(async () => {
    url = sharedRedis().storeUrl;
    prefix = new URL(url).searchParams.get("prefix") as string;
    redis = clientAt(sharedRedis().url);
    inHand = await newStoreAt(url);
    store = inHand.store;
    await inHand.lease({ runCount: 5 });
  });

  /** As a hand would that knows the checksum: what is wrong is the field alone. */
  async function edit(name: string, text: string | undefined): Promise<void> {
    const fields = await redis.hgetall(key("record"));
    if (text === undefined) delete fields[name];
    else fields[name] = text;
    await redis.hdel(key("record"), name);
    await redis.hset(key("record"), { ...fields, k: checksumOf(fields) });
  }

  const edits: [string, string, () => Promise<unknown>][] = [
    ["the mark is no number", "store_corrupt", () => edit("c", "x")],
    ["the mark is NaN", "store_corrupt", () => edit("c", "nan")],
    ["the mark is in hexadecimal", "store_corrupt", () => edit("c", "0x10")],
    ["the mark has an exponent", "store_corrupt", () => edit("c", "1e3")],
    ["the mark is negative", "store_corrupt", () => edit("c", "-1")],
    ["the mark is beyond the run space", "store_corrupt", () => edit("c", String(RUN_MAX + 1))],
    ["the mark is missing", "store_corrupt", () => edit("c", undefined)],
    ["the time is missing", "store_corrupt", () => edit("t", undefined)],
    ["the version is 8", "store_corrupt", () => edit("ver", "8")],
    ["the store id is something else", "store_corrupt", () => edit("sid", "x")],
    ["the schema is missing", "store_corrupt", () => edit("v", undefined)],
    ["the checksum is missing", "store_corrupt", () => redis.hdel(key("record"), "k")],
    ["one field was set by hand", "store_corrupt", () => redis.hset(key("record"), "c", "6")],
    ["the record is to expire", "store_corrupt", () => redis.expire(key("record"), 1000)],
    ["the record is a string", "store_corrupt", () => redis.set(key("record"), "6")],
    ["the ledger is a string", "store_corrupt", () => redis.set(key("ledger"), "x")],
    [
      "the holders are a list",
      "store_corrupt",
      () => redis.del(key("holders")).then(() => redis.lpush(key("holders"), "x")),
    ],
    ["the schema is of the first release", "store_schema_unsupported", () => edit("v", "1")],
    ["the schema is of the future", "store_schema_unsupported", () => edit("v", "3")],
    ["the namespace is another", "store_id_mismatch", () => edit("ns", "other")],
    ["the store is another", "store_id_mismatch", () => edit("sid", storeIdFrom(1))],
    ["the seal is a digest", "store_corrupt", () => edit("ph", "a".repeat(40))],
    ["the record is gone", "namespace_not_found", () => redis.del(key("record"))],
    ["the mark lies below the ledger", "rolled_back", () => edit("c", "4")],
  ];

  test.each(edits)("%s: %s, and nothing is changed", async (_, code, edit) => {
    await edit();
    const before = await contents();
    expect(await codeOf(inHand.lease())).toBe(code);
    expect(await contents()).toEqual(before);
  });

  test("the mark lies below a ledger that was trimmed: rolled_back as before, since the newest lease is never trimmed", async () => {
    await inHand.lease();
    const [oldest] = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 1 });
    expect(oldest).toMatchObject({ firstRun: 1, runCount: 5 });
    const { storeId } = inHand;
    const leases = [{ lastLedgerId: 5, reportedAtMs: null }];
    await store.trimLedger(NAMESPACE, { storeId, trimmedThrough: 0, through: 5, leasedAtMs: 0, leases });
    await edit("c", "5");
    await expect(inHand.lease()).rejects.toMatchObject({ reason: "rolled_back" });
  });

  test.each(edits)(
    "%s: what is read of the ledger is refused as the record is, or because of the key",
    async (what, _, edit) => {
      await edit();
      const refusal = await codeOf(store.readNamespace(NAMESPACE));
      const expected = /^the (?:ledger|holders) /.test(what) ? "store_corrupt" : refusal;
      const reads = [
        findLease(store, NAMESPACE, 1),
        store.leases(NAMESPACE, { from: 9, direction: "newest_first", limit: 1 }),
        firstLeaseSince(store, NAMESPACE, 0),
      ];
      expect(await Promise.all(reads.map(codeOf))).toEqual([expected, expected, expected]);
    },
  );

  test("a ledger without its record can't be begun anew", async () => {
    await redis.del(key("record"));
    await expect(store.step(NAMESPACE, inHand.commands.init())).rejects.toMatchObject({ code: "store_corrupt" });
    expect(await redis.exists(key("record"))).toBe(0);
  });

  test("a record that was edited is recovered as what it still says it is, and as nothing else", async () => {
    await redis.hset(key("record"), "c", "3");
    const { commands, storeId } = inHand;
    const foreign = { ...commands.recover(), storeId: storeIdFrom(1) };
    const operators = await storeAt(asOperator(url));
    await expect(operators.step(NAMESPACE, foreign)).rejects.toMatchObject({ code: "store_id_mismatch" });
    await operators.step(NAMESPACE, commands.recover());
    expect(await store.readNamespace(NAMESPACE)).toMatchObject({ storeId, phase: 1 });
    expect(await inHand.jump()).toBeGreaterThan(5);
  });

  test("recover removes the time to live of a moved record, which stays moved", async () => {
    await store.step(NAMESPACE, inHand.commands.seal("moved"));
    await redis.expire(key("record"), 1_000);
    await expect(inHand.lease()).rejects.toMatchObject({ code: "store_corrupt" });
    await (await storeAt(asOperator(url))).step(NAMESPACE, inHand.commands.recover());
    expect(await redis.ttl(key("record"))).toBe(-1);
    await expect(inHand.lease()).rejects.toMatchObject({ code: "namespace_moved" });
  });

  test.each([
    ["record", "string", () => redis.set(key("record"), "kept")],
    ["ledger", "string", () => redis.set(key("ledger"), "kept")],
    ["holders", "list", () => redis.del(key("holders")).then(() => redis.lpush(key("holders"), "kept"))],
  ])("recover renames a %s that is a %s, and leasing continues", async (name, type, put) => {
    await put();
    const before = await contents();
    await expect(inHand.lease()).rejects.toMatchObject({ code: "store_corrupt" });
    await expect(store.step(NAMESPACE, inHand.commands.recover({ floor: 5 }))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("operator's user"),
    });
    expect(await contents()).toEqual(before);
    const operators = await storeAt(asOperator(url));
    const { movedAside = [] } = await operators.step(NAMESPACE, inHand.commands.recover({ floor: 5 }));
    expect(movedAside).toEqual([expect.stringContaining(`${key(name)}:foreign:`)]);
    const [aside = ""] = movedAside;
    expect(await (type === "list" ? redis.lindex(aside, 0) : redis.get(aside))).toBe("kept");
    expect(await inHand.jump()).toBeGreaterThan(5);
  });

  test("reports that are a list are refused, and so are damaged ones", async () => {
    await redis.lpush(key("reports"), "x");
    const corrupt = { code: "store_corrupt" };
    await expect(store.report(NAMESPACE, 1, reportCommand())).rejects.toMatchObject(corrupt);
    await expect(findLease(store, NAMESPACE, 1)).rejects.toMatchObject(corrupt);
    await redis.del(key("reports"));
    await redis.hset(key("reports"), "0", "cut");
    await expect(store.report(NAMESPACE, 1, reportCommand())).rejects.toMatchObject(corrupt);
    await expect(findLease(store, NAMESPACE, 1)).rejects.toMatchObject(corrupt);
  });

  test("an entry of the ledger that lacks a field, or its holder, is refused", async () => {
    const corrupt = { code: "store_corrupt" };
    await redis.xadd(key("ledger"), "6-0", "n", "1", "t", "1", "h", "1");
    await expect(findLease(store, NAMESPACE, 6)).rejects.toMatchObject(corrupt);
    await redis.xadd(key("ledger"), "7-0", "n", "1", "t", "1", "h", "9", "x", "nonce");
    await expect(findLease(store, NAMESPACE, 7)).rejects.toMatchObject(corrupt);
    expect(await findLease(store, NAMESPACE, 5)).toMatchObject({ firstRun: 1, runCount: 5 });
  });

  // Misuse is a bug of ours: it must be loud, and change nothing. What is no number at all: redis-scripts.test.ts.
  const misuse = { code: "internal_error", message: expect.stringContaining("broken invariant") };

  test("numbers that no caller may have, and texts that are no seal and no key, change nothing", async () => {
    const before = await contents();
    const { commands } = inHand;
    const beyond: StepCommand[] = [
      commands.lease({ runCount: 0 }),
      commands.lease({ runCount: RUN_MAX + 1 }),
      commands.lease({ floor: 2 ** 33 + 1 }),
      commands.init({ nodeCount: 0 }),
      commands.init({ nodeCount: 100 }),
      commands.init({ receiptKey: "x" }),
      commands.recover({ receiptKey: "F".repeat(64) }),
      commands.recover({ nodeCount: 100 }),
      commands.seal("-"),
      commands.seal(""),
      commands.seal("f".repeat(40)),
    ];
    for (const command of beyond) {
      await expect(store.step(NAMESPACE, command), JSON.stringify(command)).rejects.toMatchObject(misuse);
    }
    expect(await contents()).toEqual(before);
  });

  test("all keys of a namespace lie in one hash slot", async () => {
    await store.report(NAMESPACE, 1, reportCommand());
    const keys = await redis.keys(`${prefix}{*`);
    expect(keys.sort()).toEqual(["holders", "ledger", "record", "reports"].map(key));
  });

  test("each process stands once among the holders, however many runs it takes", async () => {
    for (let count = 0; count < 10; count++) await inHand.lease();
    await inHand.lease({ holder: { name: "other", host: "h", pid: 1, labels: {} } });
    expect(await redis.hlen(key("holders"))).toBe(4);
    expect((await findLease(store, NAMESPACE, 16))?.holder.name).toBe("other");
  });

  async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
    return work.then(
      () => undefined,
      ({ reason, code }: CoordinatorError) => reason ?? code,
    );
  }

  async function contents(): Promise<unknown> {
    const keys = (await redis.keys(`${prefix}*`)).sort();
    return Promise.all(
      keys.map(async (name) => {
        const isHash = (await redis.type(name)) === "hash";
        // A large hash has no order: its bytes differ from reading to reading.
        const content = isHash ? await redis.hgetall(name) : await redis.dumpBuffer(name);
        return [name, content, (await redis.ttl(name)) > 0];
      }),
    );
  }
});
