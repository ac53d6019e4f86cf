/** What the guard costs: a lease beside a bare INCR, alone and in a script, and, with a replica, beside INCR and WAIT. */
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { machineInWords } from "./machine.js";
import { figure } from "./quantiles.js";
import { publish, type Section } from "./report.js";
import { type Compared, type Contender, compareSideBySide } from "./side-by-side.js";

const INCR_SCRIPT = "return redis.call('INCR', KEYS[1])";
const ALONE = { roundCount: 15, callCount: 400, callerCount: 1 };
const TOGETHER = { roundCount: 15, callCount: 6_400, callerCount: 64 };

const sections: Section[] = [
  {
    heading: "A lease beside a bare INCR",
    sentences: [
      `${machineInWords()} Redis on the same machine. A lease has the guard (epoch, clock line, checksum, ledger entry, quorum) and is one round trip, as an INCR is.`,
    ],
  },
];
let headline = "";

afterAll(() => publish({ bench: "guard-cost", headline, sections }));

test("a lease on a single server", async () => {
  const { url } = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  const contenders = [await bareIncr(url), await incrScript(url), await lease(url, 1)];
  const { p99Us } = await compare("One server, appendfsync everysec", contenders, ALONE);
  await compare("One server, appendfsync everysec", contenders, TOGETHER);
  const [incr, , leased] = p99Us.map(figure);
  headline = `p99 of a lease, for 16,384 call numbers and more: ${leased} µs; of a bare INCR of Redis, for one number: ${incr} µs.`;
});

test("a lease on a single server that syncs every write", async () => {
  const { url } = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always" } });
  const contenders = [await bareIncr(url), await incrScript(url), await lease(url, 1)];
  await compare("One server, appendfsync always", contenders, ALONE);
  await compare("One server, appendfsync always", contenders, TOGETHER);
});

test("a lease on a master with a replica", async () => {
  const master = await startRedisServer({ config: { "repl-diskless-sync-delay": "0" } });
  await startRedisServer({ config: { replicaof: `127.0.0.1 ${master.port}` } });
  const contenders = [await incrAndWait(master.url), await lease(master.url, 2)];
  await compare("A master and a replica", contenders, ALONE);
  await compare("A master and a replica", contenders, TOGETHER);
});

async function compare(...of: Parameters<typeof compareSideBySide>): Promise<Compared> {
  const compared = await compareSideBySide(...of);
  sections.push(compared.section);
  return compared;
}

async function bareIncr(url: string): Promise<Contender> {
  const redis = client(url);
  return { name: "INCR", together: times(() => redis.incr("bench:counter")) };
}

async function incrScript(url: string): Promise<Contender> {
  const redis = client(url);
  const sha1 = (await redis.script("LOAD", INCR_SCRIPT)) as string;
  const one = () => redis.evalsha(sha1, 1, "bench:counter");
  return { name: "INCR in a script, no guard", together: times(one) };
}

async function incrAndWait(url: string): Promise<Contender> {
  const redis = client(url);
  await redis.incr("bench:counter");
  // The replica must follow before the first measurement.
  while ((await redis.wait(1, 1_000)) < 1);
  return {
    name: "INCR and WAIT 1, no guard",
    // The best that a plain counter can do: all INCRs of the moment share one WAIT.
    together: async (callerCount) => {
      const pipeline = redis.pipeline();
      for (let caller = 0; caller < callerCount; caller++) pipeline.incr("bench:counter");
      await pipeline.wait(1, 1_000).exec();
    },
  };
}

async function lease(url: string, nodeCount: number): Promise<Contender> {
  const { store } = await openStore(parseStoreUrl(url), { create: false });
  onTestFinished(() => store.close());
  // Or the clock line would end the load.
  await initBackdated(store, "bench", { nodeCount });
  const coordinator = new Coordinator({ store, name: "bench" });
  const holder = { name: "bench", host: "bench", pid: 1, labels: {} };
  const one = async () => {
    const nonce = randomBytes(12).toString("base64url");
    await coordinator.lease("bench", {
      runCount: 1,
      nonce,
      holder,
      lastRun: null,
      receipt: null,
      sentAtMs: Date.now(),
    });
  };
  return { name: "a lease, with guard and ledger", together: times(one) };
}

function times(one: () => Promise<unknown>): (callerCount: number) => Promise<void> {
  return async (callerCount) => {
    await Promise.all(Array.from({ length: callerCount }, one));
  };
}

function client(url: string): Redis {
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  return redis;
}
