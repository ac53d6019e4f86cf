/** What is read of a ledger in Redis: by one round trip. */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, describe, expect, test } from "vitest";
import { type FaultyProxy, startFaultyProxy } from "../../../test/redis/faulty-proxy.js";
import { storeUrlAt } from "../../../test/redis/shipped-users.js";
import { Coordinator } from "../src/coordinator.js";
import { firstLeaseSince } from "../src/ledger/read-ledger.js";
import type { Store } from "../src/stores/store.js";
import { LEASE_NONCE, NAMESPACE, reportCommand } from "./commands-for-test.js";
import { clientAt, newStoreAt, ownServer, storeAt, until } from "./redis-for-test.js";

let proxy: FaultyProxy;
let store: Store;
let coordinator: Coordinator;
/** How many scripts the server was asked to run until now. */
let askedScripts: () => Promise<number>;

beforeEach(async ({ skip, onTestFinished }) => {
  const server = await ownServer({}, skip);
  proxy = await startFaultyProxy(server);
  onTestFinished(() => proxy.close());
  const { lease, store: direct } = await newStoreAt(server.url);
  await lease();
  await lease({ runCount: 3 });
  await direct.report(NAMESPACE, 2, reportCommand({ nonce: LEASE_NONCE, lastSequence: 7 }));
  store = await storeAt(storeUrlAt("127.0.0.1", proxy.port));
  coordinator = new Coordinator({ store, name: "test" });
  const redis = clientAt(server.url);
  askedScripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1]);
});

describe("before the first answer all is asked that is asked at all", () => {
  const callNumber = encodeCallNumber({ version: 0, run: 3, sequence: 5 });
  const reads: [string, number, () => Promise<unknown>, unknown][] = [
    ["one run", 1, () => coordinator.run(NAMESPACE, 3), { run: 3, lease: { firstRun: 2, runCount: 3 } }],
    ["a page", 1, () => coordinator.runs(NAMESPACE, { limit: 2 }), { leases: [{ firstRun: 2 }, { firstRun: 1 }] }],
    ["a lease by time", 1, () => firstLeaseSince(store, NAMESPACE, 0), { firstRun: 1 }],
    ["a call number", 2, () => coordinator.inspect(NAMESPACE, callNumber), { verdict: "unreported", run: 3 }],
    [
      "a call number of the future",
      2,
      () => coordinator.inspect(NAMESPACE, encodeCallNumber({ version: 0, run: 9, sequence: 0 })),
      { verdict: "never_leased", reason: "above_mark" },
    ],
    ["a text that is none", 1, () => coordinator.inspect(NAMESPACE, "?"), { verdict: "malformed" }],
  ];

  test.each(reads)("%s, by %i scripts", async (_, scriptCount, read, expected) => {
    // The server learns the scripts.
    await read();
    const before = await askedScripts();
    proxy.holdAnswers();
    const answer = read();
    await Promise.race([answer, until(async () => (await askedScripts()) === before + scriptCount)]);
    proxy.releaseAnswers();
    expect(await answer).toMatchObject(expected as object);
    expect(await askedScripts()).toBe(before + scriptCount);
  });
});
