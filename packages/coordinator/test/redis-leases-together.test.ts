/**
 * Leases of the same moment share one script on Redis: what that saves, and what it must not change.
 * Guarantees: G1, G4 (docs/guarantees.md).
 */
import { beforeEach, expect, test } from "vitest";
import { startRedisServer } from "../../../test/redis/test-redis.js";
import type { CoordinatorError } from "../src/errors.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import { clientAt, needsOwnServer, newStoreAt, untilDone } from "./redis-for-test.js";
import { withNamespace } from "./store-in-hand.js";

beforeEach(needsOwnServer);

async function ownStore() {
  const { url } = await startRedisServer();
  const redis = clientAt(url);
  /** How often Redis has run each command. */
  const calls = async () => {
    const text = await redis.info("commandstats");
    const of = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
    return { evalsha: of("evalsha"), hset: of("hset"), xadd: of("xadd") };
  };
  return { ...(await newStoreAt(url)), redis, calls };
}

test("leases of the same moment share one script, and write the record once", async () => {
  const { lease, calls } = await ownStore();
  const before = await calls();
  const leases = await Promise.all(Array.from({ length: 50 }, () => lease()));
  expect(leases.map(({ firstRun }) => firstRun)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  const after = await calls();
  expect(after.evalsha - before.evalsha).toBe(1);
  // The record and one holder; an entry for each.
  expect(after.hset - before.hset).toBe(2);
  expect(after.xadd - before.xadd).toBe(50);
});

test("leases of the same moment in two namespaces share one script for each namespace", async () => {
  const { store, lease, calls } = await ownStore();
  const other = await withNamespace(store, { namespace: "other" });
  const before = await calls();
  await Promise.all(Array.from({ length: 50 }, (_, count) => (count % 2 === 0 ? lease : other.lease)()));
  expect((await calls()).evalsha - before.evalsha).toBe(2);
});

test("more steps than fit a batch are sent in several, and none is lost", async () => {
  const { lease, read } = await ownStore();
  const leases = await Promise.all(Array.from({ length: 600 }, () => lease()));
  expect(new Set(leases.map(({ firstRun }) => firstRun)).size).toBe(600);
  expect((await read()).highWaterMark).toBe(600);
});

test("a lease for another store fails alone among others of the same moment", async () => {
  const { step, lease, read } = await ownStore();
  const foreign = () => step(commandsFor(storeIdFrom(1)).lease());
  expect(await Promise.allSettled([lease(), foreign(), foreign(), lease({ runCount: 2 })])).toMatchObject([
    { value: { firstRun: 1 } },
    { reason: { code: "store_id_mismatch" } },
    { reason: { code: "store_id_mismatch" } },
    { value: { firstRun: 2 } },
  ]);
  expect((await read()).highWaterMark).toBe(3);
});

test("an error between the record and the entries discards all leases of the moment, and none is leased again", async () => {
  const { store, lease, read, redis } = await ownStore();
  await lease({ runCount: 2 });
  const [ledger = ""] = await redis.keys("*ledger");
  // The stream takes no entry up to this one, as if it had held some that are gone.
  await redis.call("XSETID", ledger, "4-0");
  const outcomes = await Promise.allSettled([lease(), lease(), lease({ runCount: 3 })]);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "store_unavailable" } });
  expect((await read()).highWaterMark).toBe(7);
  expect(await findLease(store, NAMESPACE, 3)).toBeUndefined();
  expect((await untilDone(lease)).firstRun).toBe(8);
});

test("leases of the same moment all fail when their script does, and later ones do not wait forever", async () => {
  const { lease, redis } = await ownStore();
  await redis.call("ACL", "SETUSER", "callnumber", "-hget");
  for (let round = 0; round < 2; round++) {
    const outcomes = await Promise.allSettled([lease(), lease({ floor: 1_000 }), lease()]);
    const causeOf = ({ reason, code }: CoordinatorError) => reason ?? code;
    expect(outcomes.map((outcome) => causeOf((outcome as PromiseRejectedResult).reason))).toEqual([
      "store_unavailable",
      "rolled_back",
      "store_unavailable",
    ]);
  }
  await redis.call("ACL", "SETUSER", "callnumber", "+hget");
  expect((await untilDone(lease)).firstRun).toBe(5);
});
