/**
 * What is read of the answers of Redis: a real store, guard and coordinator, on a server whose answers are garbled. No lease is ever
 * given that the server did not grant with the right nonce; none is given twice, or reaches beyond what was asked; and all else is a
 * refusal with a code, which never tells the password.
 */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { Coordinator } from "../../../packages/coordinator/src/coordinator.js";
import { CoordinatorError } from "../../../packages/coordinator/src/errors.js";
import { EventHub } from "../../../packages/coordinator/src/events.js";
import { SILENT_LOG } from "../../../packages/coordinator/src/log.js";
import { newStoreId } from "../../../packages/coordinator/src/store-id.js";
import { RedisStore } from "../../../packages/coordinator/src/stores/redis-store.js";
import { isErrorCode, type Lease } from "../../../packages/protocol/src/wire.js";
import { type Draw, drawsOf } from "../draw.js";
import { type GarblingRedis, startGarblingRedis } from "../garbling-redis.js";
import type { FuzzTarget } from "../target.js";

const USERNAME = "callnumber";
/** Of what is written in another way in a URL and in JSON. */
const PASSWORD = 'geheim/"und so%"';
const PASSWORD_FORMS = [PASSWORD, encodeURIComponent(PASSWORD), JSON.stringify(PASSWORD).slice(1, -1)];
const INITIALISED_AT_MS = 1_700_000_000_000;
const RUN_MAX = 2 ** 30 - 1;
/** What would end the process of a coordinator. */
const FAULTS = ["unhandledRejection", "uncaughtException"] as const;
const ROUND_COUNT = 3;
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };

export const redisAnswers: FuzzTarget = {
  name: "redis-answers",
  shortCount: 25,
  async start() {
    const faults: unknown[] = [];
    const keep = (fault: unknown) => void faults.push(fault);
    for (const fault of FAULTS) process.on(fault, keep);
    return {
      // What draws the garbling: the answers themselves bear nonces that are new each time.
      input: (draw: Draw) => Buffer.from([0, 1, 2, 3].map(() => draw.below(256))),
      async check(input) {
        await checkGarbled(drawsOf(input.length < 4 ? 0 : input.readUInt32BE()));
        assert.deepEqual(faults, []);
      },
      async stop() {
        for (const fault of FAULTS) process.off(fault, keep);
      },
    };
  },
};

async function checkGarbled(draw: Draw): Promise<void> {
  const storeId = newStoreId({ firstRun: 1, initialisedAtMs: INITIALISED_AT_MS, rate: 16 });
  const isNeverAcknowledged = draw.onceIn(8);
  const nodeCount = isNeverAcknowledged ? 3 : draw.oneOf([1, 3]);
  const redis = await startGarblingRedis({ draw, storeId, nodeCount, isNeverAcknowledged });
  try {
    const store = await openedStore(redis.port);
    if (store === undefined) return;
    try {
      const leases = await leasesOn(store, redis, draw);
      mustBeDistinct(leases);
      if (isNeverAcknowledged) assert.deepEqual(leases, [], "leased, and no other node has it");
    } finally {
      await store.close();
    }
  } finally {
    await redis.close();
  }
}

async function openedStore(port: number): Promise<RedisStore | undefined> {
  return await orRefused(() =>
    RedisStore.open({
      host: "127.0.0.1",
      port,
      tls: false,
      database: 0,
      keyPrefix: "fuzz:",
      username: USERNAME,
      password: PASSWORD,
    }),
  );
}

async function leasesOn(store: RedisStore, redis: GarblingRedis, draw: Draw): Promise<readonly Lease[]> {
  const coordinator = new Coordinator({ store, name: "fuzzed", log: new EventHub(SILENT_LOG) });
  const leases: Lease[] = [];
  for (let round = 0; round < ROUND_COUNT; round++) {
    const asked = Array.from({ length: 1 + draw.below(3) }, () => 1 + draw.below(4));
    const given = await Promise.all(
      asked.map(async (runCount, index) => {
        const nonce = `nonce-${round}-${index}-0123456789`;
        const request = { runCount, nonce, holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
        const lease = await orRefused(() => coordinator.lease("main", request));
        if (lease !== undefined) mustBeGranted(lease, { runCount, nonce, sent: redis.sent() });
        return lease;
      }),
    );
    leases.push(...given.filter((lease) => lease !== undefined));
    await orRefused(() => coordinator.status("main"));
  }
  return leases;
}

interface Expected {
  readonly runCount: number;
  readonly nonce: string;
  readonly sent: Buffer;
}

function mustBeGranted(lease: Lease, { runCount, nonce, sent }: Expected): void {
  const text = JSON.stringify(lease);
  assert.equal(lease.nonce, nonce, text);
  for (const value of [lease.version, lease.firstRun, lease.runCount, lease.leasedAtMs]) {
    assert(Number.isSafeInteger(value) && value >= 0, text);
  }
  assert(lease.runCount >= 1 && lease.runCount <= runCount, `${runCount} runs were asked for: ${text}`);
  const mark = lease.firstRun + lease.runCount - 1;
  assert(lease.firstRun >= 1 && mark <= RUN_MAX && lease.version <= 7, text);
  // Behind a nonce of a step, which is 16 characters.
  assert(
    new RegExp(`[\\w-]{16} ${mark} ${lease.runCount}\\r\\n`).test(sent.toString("latin1")),
    `nobody granted ${text}`,
  );
}

function mustBeDistinct(leases: readonly Lease[]): void {
  const runs = leases.flatMap(({ firstRun, runCount }) =>
    Array.from({ length: runCount }, (_, index) => firstRun + index),
  );
  assert.equal(new Set(runs).size, runs.length, `a run was leased twice: ${runs.join(" ")}`);
}

/** Undefined when it was refused, as a coordinator refuses. */
async function orRefused<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    assert(isErrorCode(error.code));
    const told = inspect(error, { depth: 9 });
    for (const form of PASSWORD_FORMS) assert(!told.includes(form), `the password is told: ${told}`);
    return undefined;
  }
}
