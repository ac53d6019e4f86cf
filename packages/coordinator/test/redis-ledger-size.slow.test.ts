/** How much of the server's memory a lease takes for ever, with all that is written about it. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { keysOf } from "../src/stores/redis/scripts.js";
import { NAMESPACE, reportCommand } from "./commands-for-test.js";
import { clientAt, newStoreAt, ownServer } from "./redis-for-test.js";

const BYTES_PER_LEASE_MAX = 100;
const LEASE_COUNT = 10_000;
const HOLDER_COUNT = 25;
const BATCH_LEASES = 250;

test.for([1, 3, 64])(
  `a lease of %i runs takes at most ${BYTES_PER_LEASE_MAX} bytes in Redis, with its report`,
  async (runCount, { skip }) => {
    const { url } = await ownServer({}, skip);
    const { store, lease } = await newStoreAt(url);
    for (let count = 0; count < LEASE_COUNT; count += BATCH_LEASES) {
      const batch = Array.from({ length: BATCH_LEASES }, (_, index) => index);
      await Promise.all(
        batch.map(async (index) => {
          const nonce = randomBytes(12).toString("base64url");
          const granted = await lease({ runCount, holder: holderOf(index % HOLDER_COUNT), leaseNonce: nonce });
          const report = reportCommand({ nonce, lastSequence: 16_383, state: "exhausted" });
          await store.report(NAMESPACE, granted.firstRun + granted.runCount - 1, report);
        }),
      );
    }
    const { ledger, holders: holdersKey, reports } = keysOf("callnumber:", NAMESPACE);
    const redis = clientAt(url);
    const sizes = await Promise.all(
      [ledger, holdersKey, reports].map((key) => redis.memory("USAGE", key, "SAMPLES", 0)),
    );
    const byteCount = sizes.reduce<number>((sum, size) => sum + Number(size), 0);
    expect(await redis.xlen(ledger)).toBe(LEASE_COUNT);
    expect(byteCount / LEASE_COUNT).toBeLessThanOrEqual(BYTES_PER_LEASE_MAX);
  },
);

function holderOf(index: number) {
  return {
    name: `importer-${index}`,
    host: `mail-${index}.example.org`,
    pid: 4_000 + index,
    labels: { step: "import" },
  };
}
