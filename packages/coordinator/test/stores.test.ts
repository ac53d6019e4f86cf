import { expect, test } from "vitest";
import { describeStoreContract } from "./store-contract.js";
import { HAS_REDIS, openMemory, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory, { remembers: false, sharesClock: true });
describeStoreContract("embedded", openSqlite, { remembers: true, sharesClock: true });
if (HAS_REDIS) describeStoreContract("Redis", openRedis, { remembers: true, sharesClock: false });

test("the memory store says before it leases that it keeps nothing, and how to keep it", async () => {
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
