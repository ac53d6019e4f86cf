/** Our client beside others that make short or unique texts. The measuring is done by a plain process, peers/main.ts. */
import { test } from "vitest";
import { sharedRedis } from "../test/redis/test-redis.js";
import { plainProcess } from "./plain-process.js";

test("call numbers beside other numbers", async () => {
  await plainProcess("peers", sharedRedis().url);
});
