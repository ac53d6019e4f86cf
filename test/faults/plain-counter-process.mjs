/**
 * The control on one host: a plain counter at the master that the Sentinels name, by an ordinary client. Each number goes to
 * the parent. Its settings come as JSON in the first parameter.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";

const EVERY_MS = 10;
const KEY = "control";

process.once("disconnect", () => process.exit(1));

const redis = new Redis({
  ...JSON.parse(process.argv[2]),
  maxRetriesPerRequest: 0,
  commandTimeout: 500,
  connectTimeout: 500,
  sentinelRetryStrategy: () => 50,
  retryStrategy: () => 50,
});
redis.on("error", () => {});

for (;;) {
  try {
    process.send(await redis.incr(KEY));
  } catch {
    // A server that stops responding may no longer be the master: ask the Sentinels again.
    if (redis.status === "ready") redis.disconnect(true);
  }
  await delay(EVERY_MS);
}
