/** What reads and leases cost on Redis: round trips, and memory that a lease takes permanently. */
import { randomBytes } from "node:crypto";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { startRedisServer } from "../../../test/redis/test-redis.js";
import { Coordinator } from "../src/coordinator.js";
import { recordReport } from "../src/ledger/ledger-changes.js";
import { keysOf } from "../src/stores/redis/scripts.js";
import { LEASE_NONCE, NAMESPACE, reportCommand } from "./commands-for-test.js";
import { clientAt, needsOwnServer, newStoreAt } from "./redis-for-test.js";

beforeEach(needsOwnServer);

const number = (run: number) => encodeCallNumber({ version: 0, run, sequence: 5 });
const aboveMark = { verdict: "never_leased", reason: "above_mark" };

type Read = (coordinator: Coordinator) => Promise<unknown>;

test.each<[what: string, commandCount: number, Read, expected: object]>([
  ["a run", 5, (one) => one.run(NAMESPACE, 3), { run: 3, lease: { firstRun: 2, runCount: 3 } }],
  ["a page", 6, (one) => one.runs(NAMESPACE, { limit: 2 }), { leases: [{ firstRun: 2 }, { firstRun: 1 }] }],
  ["a call number", 5, (one) => one.inspect(NAMESPACE, number(3)), { verdict: "unreported", run: 3 }],
  ["a call number above the mark", 3, (one) => one.inspect(NAMESPACE, number(9)), aboveMark],
  ["a text that is not a call number", 2, (one) => one.inspect(NAMESPACE, "?"), { verdict: "malformed" }],
])("a read of %s takes %i commands", async (_, commandCount, read, expected) => {
  const { url } = await startRedisServer();
  const { store, lease } = await newStoreAt(url);
  await lease();
  await lease({ runCount: 3 });
  await recordReport(store, NAMESPACE, 2, reportCommand({ nonce: LEASE_NONCE, lastSequence: 7 }));
  const coordinator = new Coordinator({ store, name: "test" });
  const redis = clientAt(url);
  const { commandsSent } = await commandsCounted(redis);
  expect(await read(coordinator)).toMatchObject(expected);
  expect(await commandsSent()).toBe(commandCount);
});

/** Commands that the server runs. */
async function commandsCounted(redis: Redis) {
  const count = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]);
  const before = await count();
  // An INFO counts itself.
  return { commandsSent: async () => (await count()) - before - 1 };
}

const BYTES_PER_LEASE_MAX = 100;
const LEASE_COUNT = 10_000;
const HOLDER_COUNT = 25;
const BATCH_LEASES = 250;

test.each([1, 3, 64])(
  `a lease of %i runs takes at most ${BYTES_PER_LEASE_MAX} bytes in Redis, with its report`,
  async (runCount) => {
    const { url } = await startRedisServer();
    const { store, lease } = await newStoreAt(url);
    const leaseAndReport = async (_: unknown, index: number) => {
      const nonce = randomBytes(12).toString("base64url");
      const granted = await lease({ runCount, holder: holderOf(index % HOLDER_COUNT), leaseNonce: nonce });
      const report = reportCommand({ nonce, lastSequence: 16_383, state: "exhausted" });
      await recordReport(store, NAMESPACE, granted.firstRun + granted.runCount - 1, report);
    };
    for (let count = 0; count < LEASE_COUNT; count += BATCH_LEASES)
      await Promise.all(Array.from({ length: BATCH_LEASES }, leaseAndReport));
    const { ledger, holders, reports } = keysOf("callnumber:", NAMESPACE);
    const redis = clientAt(url);
    const sizes = await Promise.all([ledger, holders, reports].map((key) => redis.memory("USAGE", key, "SAMPLES", 0)));
    expect(await redis.xlen(ledger)).toBe(LEASE_COUNT);
    expect(sizes.reduce<number>((sum, size) => sum + Number(size), 0)).toBeLessThanOrEqual(
      LEASE_COUNT * BYTES_PER_LEASE_MAX,
    );
  },
);

function holderOf(index: number) {
  const labels = { step: "import" };
  return { name: `importer-${index}`, host: `mail-${index}.example.org`, pid: 4_000 + index, labels };
}
