/** What only Redis can find when a change is written: an edit by another program. For all stores see apply-contract.ts. */
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { checksumOf } from "../src/guard/record.js";
import { isApplied } from "../src/guard/step-store.js";
import { keysOf, type NamespaceKeys } from "../src/stores/redis/scripts.js";
import { MARK, sentLease } from "./apply-contract.js";
import { NAMESPACE } from "./commands-for-test.js";
import { clientAt, storeAt } from "./redis-for-test.js";
import { preparedFor } from "./steps-for-test.js";
import { withNamespace } from "./store-in-hand.js";
import { HAS_REDIS } from "./stores-for-test.js";

test.runIf(HAS_REDIS)("a lease above what another program has written is not written to Redis", async () => {
  const { url, storeUrl } = sharedRedis();
  const { apply } = await sentLease(await storeAt(storeUrl));
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
