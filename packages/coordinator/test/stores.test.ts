/** The contract of a store, run on each of them, and what only the memory store does. */
import { expect, test } from "vitest";
import { describeStoreContract } from "./store-contract.js";
import { HAS_POSTGRES, HAS_REDIS, openMemory, openPostgres, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory, { remembers: false, sharesClock: true });
describeStoreContract("embedded", openSqlite, { remembers: true, sharesClock: true });
if (HAS_REDIS) describeStoreContract("Redis", openRedis, { remembers: true, sharesClock: false });
if (HAS_POSTGRES) describeStoreContract("PostgreSQL", openPostgres, { remembers: true, sharesClock: false });

test("the memory store reports that it is lost with its process, and what to use instead", async () => {
  const { store } = await openMemory();
  expect(store.isExclusive).toBe(false);
  expect(await store.preflight()).toEqual([
    expect.objectContaining({
      what: expect.stringContaining("in memory"),
      remedy: expect.stringContaining("sqlite:PATH"),
      override: "no-persistence",
    }),
  ]);
});
