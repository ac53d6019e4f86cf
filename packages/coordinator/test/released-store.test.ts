/**
 * A Redis store that the last release has made goes on without migration. released-store.json holds it as commands (bytes that are no text in
 * Base64), and what that release read of it: leases and reports, a ledger that was trimmed, a claim that was not confirmed, and seals.
 * Guarantees: G1, G5 (docs/guarantees.md).
 */
import { readFileSync } from "node:fs";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { Coordinator } from "../src/coordinator.js";
import { type NamespaceRecord, readRecord, storedFields } from "../src/guard/record.js";
import { isRefusal } from "../src/guard/refusals.js";
import { recordReport } from "../src/ledger/ledger-changes.js";
import { keysOf } from "../src/stores/redis/scripts.js";
import type { Retention, Store } from "../src/stores/store.js";
import { commandsFor, holder, LEASE_NONCE, SHORT_BOUNDS } from "./commands-for-test.js";
import { clientAt, storeAt, untilDone } from "./redis-for-test.js";
import { inHand } from "./store-in-hand.js";

type Word = string | { readonly base64: string };
interface Released {
  readonly commands: readonly (readonly [name: string, key: string, ...words: Word[]])[];
  readonly namespaces: Readonly<Record<string, ReleasedNamespace>>;
}
interface ReleasedNamespace {
  readonly record: NamespaceRecord;
  readonly leases: readonly LedgerEntry[];
  readonly retention: Retention;
}

const released = JSON.parse(readFileSync(new URL("./released-store.json", import.meta.url), "utf8")) as Released;
const { main, lists, moved, forked, claimed } = released.namespaces as Record<string, ReleasedNamespace>;

let prefix: string;
let redis: Redis;
let store: Store;
let operators: Store;

beforeEach(async () => {
  const { url, storeUrl } = sharedRedis();
  redis = clientAt(url);
  prefix = new URL(storeUrl).searchParams.get("prefix") as string;
  for (const [name, key, ...words] of released.commands) {
    const bytes = words.map((word) => (typeof word === "string" ? word : Buffer.from(word.base64, "base64")));
    await redis.call(name, `${prefix}${key}`, ...bytes);
  }
  store = await storeAt(storeUrl);
  operators = await storeAt(asOperator(storeUrl));
});

test("a store of the last release is read as that release read it", async () => {
  expect(await store.listNamespaces()).toEqual(Object.keys(released.namespaces).sort());
  for (const [name, { record, leases, retention }] of Object.entries(released.namespaces)) {
    expect(await store.readNamespace(name)).toEqual(record);
    expect(await store.leases(name, { direction: "oldest_first", limit: 10 })).toEqual(leases);
    expect(await store.readRetention(name)).toEqual(retention);
  }
});

/** As on the server that it was made on, a moment after the last write. */
async function momentLater(name: string): Promise<void> {
  const key = keysOf(prefix, name).record;
  const record = readRecord(await redis.hgetall(key), name);
  if (isRefusal(record)) expect.fail(record.detail);
  const { server } = await store.read(name);
  await redis.hset(key, storedFields({ ...record, epoch: server.epoch ?? "", changedAtMs: server.timeMs }));
}

test("a store of the last release leases its next run, and takes reports on runs that were leased before", async () => {
  await momentLater("main");
  const { storeId, highWaterMark } = (main as ReleasedNamespace).record;
  const one = inHand(store, { storeId, namespace: "main" });
  expect(await one.lease({ runCount: 3, floor: highWaterMark })).toMatchObject({ firstRun: highWaterMark + 1 });
  const before = main?.leases ?? [];
  const reported = before.findIndex(({ progress }) => progress?.state === "open");
  const { nonce = "", firstRun = 0, runCount = 0 } = before[reported] ?? {};
  await recordReport(store, "main", firstRun + runCount - 1, { nonce, lastSequence: 9, state: "closed" });
  const after = await store.leases("main", { direction: "oldest_first", limit: 10 });
  expect(after).toHaveLength(before.length + 1);
  const progress = { run: firstRun + runCount - 1, lastSequence: 9, state: "closed" };
  expect(after.slice(0, -1)).toMatchObject(before.with(reported, { ...before[reported], progress } as never));
});

test("a store of the last release is recovered after a restart, above every run that it leased", async () => {
  await momentLater("lists");
  const key = keysOf(prefix, "lists").record;
  const record = readRecord(await redis.hgetall(key), "lists");
  if (isRefusal(record)) expect.fail(record.detail);
  await redis.hset(key, storedFields({ ...record, epoch: "an:earlier:0:0" }));
  const coordinator = new Coordinator({ store, name: "new", bounds: SHORT_BOUNDS });
  const highWaterMark = lists?.record.highWaterMark ?? 0;
  const request = { runCount: 1, nonce: LEASE_NONCE, holder, lastRun: null, proof: null };
  const { firstRun } = await untilDone(
    () => coordinator.lease("lists", { ...request, sentAtMs: Date.now() }),
    ["run_ceiling_reached", "store_recovering", "clock_skew"],
  );
  expect(firstRun).toBeGreaterThan(highWaterMark + 65_000);
  expect((await store.readNamespace("lists")).generation).toBe(1);
});

test("a claim of the last release is confirmed, a move stays, and two copies are recovered by an operator", async () => {
  for (const name of ["claimed", "moved", "forked"]) await momentLater(name);
  const [ofClaimed, ofMoved, ofForked] = [claimed, moved, forked].map((one) => one?.record as NamespaceRecord) as [
    NamespaceRecord,
    NamespaceRecord,
    NamespaceRecord,
  ];
  const { step } = inHand(store, { storeId: ofClaimed.storeId, namespace: "claimed" });
  const { after } = await step(commandsFor(ofClaimed.storeId).confirm(ofClaimed.generation));
  expect(after.highWaterMark).toBeGreaterThan(65_000);
  const onMoved = inHand(store, { storeId: ofMoved.storeId, namespace: "moved" });
  await expect(onMoved.lease()).rejects.toMatchObject({ code: "namespace_moved" });
  const onForked = inHand(operators, { storeId: ofForked.storeId, namespace: "forked" });
  await expect(onForked.lease()).rejects.toMatchObject({ code: "store_forked" });
  await onForked.step(onForked.commands.recover());
  expect(await onForked.skipAhead()).toBeGreaterThan(65_000);
});
