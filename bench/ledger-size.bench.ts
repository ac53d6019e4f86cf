/** How many bytes of the server's memory a lease takes for ever: leased and reported on by the scripts themselves, by holders in turn. */
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { keysOf } from "../packages/coordinator/src/stores/redis/scripts.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { HOLDER_COUNT, holderOf } from "./filled-ledgers.js";
import { machineInWords } from "./machine.js";
import { figure } from "./quantiles.js";
import { publish } from "./report.js";

/** What we aim at: of memory that the server never gets back. */
const AIM_BYTES_PER_LEASE = 100;
const BATCH_LEASES = 250;
const PARTS = ["ledger", "reports", "holders"] as const;

const LEASE_COUNT = Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 100_000);

const rows: string[][] = [];
let largestBytes = 0;

afterAll(() => {
  publish({
    bench: "ledger-size",
    sections: [
      {
        heading: "Bytes of Redis that a lease takes for ever",
        sentences: [
          `${machineInWords()} ${LEASE_COUNT.toLocaleString("en-US")} leases for each line, leased and reported on by the product's own scripts, by ${HOLDER_COUNT} holders in turn; the bytes are those of MEMORY USAGE, which counts every element.`,
          `The aim is at most ${AIM_BYTES_PER_LEASE} bytes a lease; the most here is ${figure(largestBytes)}.`,
        ],
        table: { columns: ["runs of a lease", "bytes a lease", ...PARTS.map((part) => `of it ${part}`)], rows },
      },
    ],
  });
});

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
  const bytes: number[] = [];
  for (const part of PARTS) bytes.push(Number(await redis.memory("USAGE", keys[part], "SAMPLES", 0)) / LEASE_COUNT);
  const sum = bytes.reduce((all, one) => all + one, 0);
  largestBytes = Math.max(largestBytes, sum);
  rows.push([String(runCount), ...[sum, ...bytes].map(figure)]);
});
