/**
 * Leases of the same moment share one script on Redis: what that saves, and what it must not change.
 * Guarantees: G1, G4 (docs/guarantees.md).
 */
import { describe, expect, test } from "vitest";
import type { CoordinatorError } from "../src/errors.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import { clientAt, newStoreAt, ownServer, untilDone } from "./redis-for-test.js";
import { leaseFrom } from "./store-in-hand.js";

describe("leases of the same moment", () => {
  test("go in one script, and write the record once", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const { lease } = await newStoreAt(url);
    const redis = clientAt(url);
    const before = await calls();
    const leases = await Promise.all(Array.from({ length: 50 }, () => lease()));
    expect(leases.map(({ firstRun }) => firstRun)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    const after = await calls();
    // The leases, and the look behind them; the record and one holder; an entry for each.
    expect(after.evalsha - before.evalsha).toBe(2);
    expect(after.hset - before.hset).toBe(2);
    expect(after.xadd - before.xadd).toBe(50);

    async function calls() {
      const text = await redis.info("commandstats");
      const of = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
      return { evalsha: of("evalsha"), hset: of("hset"), xadd: of("xadd") };
    }
  });

  test("for another store between them are refused alone", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const { store, lease, read } = await newStoreAt(url);
    const foreign = () => leaseFrom(store, commandsFor(storeIdFrom(1)).lease());
    expect(await Promise.allSettled([lease(), foreign(), foreign(), lease({ runCount: 2 })])).toMatchObject([
      { value: { firstRun: 1 } },
      { reason: { code: "store_id_mismatch" } },
      { reason: { code: "store_id_mismatch" } },
      { value: { firstRun: 2 } },
    ]);
    expect((await read()).highWaterMark).toBe(3);
  });

  test("are all discarded by an error between the record and the entries, and none is leased again", async ({
    skip,
  }) => {
    const { url } = await ownServer({}, skip);
    const { store, lease, read } = await newStoreAt(url);
    const redis = clientAt(url);
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

  test("are all refused when the look behind them is, and later ones do not wait for ever", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const { lease } = await newStoreAt(url);
    const redis = clientAt(url);
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
});
