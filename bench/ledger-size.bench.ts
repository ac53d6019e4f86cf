/** How many bytes of the server's memory a lease takes for ever: leased and reported on by the scripts themselves, by holders in turn. */
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { keysOf } from "../packages/coordinator/src/stores/redis-ledger.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { HOLDER_COUNT, holderOf } from "./filled-ledgers.js";

const BATCH_LEASES = 250;
const PARTS = ["ledger", "reports", "holders"] as const;

const LEASE_COUNT = Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 100_000);

test.each([1, 3, 64])("leases of %i runs", async (runCount) => {
  const { url } = await startRedisServer();
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  const { store } = await openStore(parseStoreUrl(url), { create: false });
  onTestFinished(() => store.close());
  await initBackdated(store, "bench", { ageDays: 365 });
  const coordinator = new Coordinator({ store, name: "bench" });
  const leaseAndReport = async (index: number) => {
    const nonce = randomBytes(12).toString("base64url");
    const holder = holderOf(index % HOLDER_COUNT);
    const request = { runCount, nonce, holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
    const lease = await coordinator.lease("bench", request);
    const lastRun = lease.firstRun + lease.runCount - 1;
    await coordinator.report("bench", lastRun, { nonce, lastSequence: 16_383, state: "exhausted" });
  };
  for (let count = 0; count < LEASE_COUNT; count += BATCH_LEASES) {
    await Promise.all(Array.from({ length: BATCH_LEASES }, (_, index) => leaseAndReport(index)));
  }
  const keys = keysOf("callnumber:", "bench");
  let sum = 0;
  const figures: string[] = [];
  for (const part of PARTS) {
    const bytesPerLease = Number(await redis.memory("USAGE", keys[part], "SAMPLES", 0)) / LEASE_COUNT;
    sum += bytesPerLease;
    figures.push(`${part} ${bytesPerLease.toFixed(1)}`);
  }
  const runs = runCount === 1 ? "one run" : `${runCount} runs`;
  console.log(`${LEASE_COUNT} leases of ${runs}: ${sum.toFixed(1)} bytes each (${figures.join(", ")})`);
});
