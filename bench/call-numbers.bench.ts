/**
 * Our client compared with other makers of short or unique texts. Measured by a plain process, call-numbers/main.ts: what vitest makes of a
 * module is not what an importer runs.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { expect, test } from "vitest";
import { sharedRedis } from "../test/redis/test-redis.js";

test("call numbers and other numbers", async () => {
  const program = join(import.meta.dirname, "dist", "call-numbers", "main.js");
  const child = spawn(process.execPath, [program, sharedRedis().url], { stdio: ["ignore", "inherit", "inherit"] });
  expect(await once(child, "close")).toEqual([0, null]);
});
