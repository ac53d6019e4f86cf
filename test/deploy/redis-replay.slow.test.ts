/** A Redis with the users that we ship comes back from its append-only file with all that it held: scripts stand there as transactions. */
import { beforeEach, expect, test } from "vitest";
import { command } from "../redis/redis-command.js";
import { ownServerUnavailable, startRedisServer } from "../redis/test-redis.js";

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

test("what a script wrote in several steps is there after a kill", async () => {
  const config = { appendonly: "yes", appendfsync: "always" };
  const redis = await startRedisServer({ config });
  const [key, other] = ["callnumber:{main}:record", "callnumber:{main}:ledger"];
  const script = "redis.call('hset', KEYS[1], 'c', '7') redis.call('xadd', KEYS[2], '7-0', 'n', '1')";
  const store = { url: redis.storeUrl };
  await command(store, "EVAL", script, 2, key, other);
  await redis.kill("SIGKILL");
  await redis.start();
  expect(await command(store, "HGET", key, "c")).toBe("7");
  expect(await command(redis, "XLEN", other)).toBe(1);
});
