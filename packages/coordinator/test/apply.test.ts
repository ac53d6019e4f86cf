/**
 * The port of a store that leases, `read` and `apply`, against the decisions of the guard, in random states: a step is done on every store
 * as it is decided on the state that the store has returned. For states that change in between see apply-stale.test.ts.
 * Guarantees: G1, G5, G12, G13 (docs/guarantees.md).
 */
import fc from "fast-check";
import { Redis } from "ioredis";
import { expect, inject, test, vi } from "vitest";
import { command } from "../../../test/redis/redis-command.js";
import { follow } from "../../../test/redis/replicated-redis.js";
import { asOperator, TESTER_LOGIN } from "../../../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { sized } from "../../../test/size-of-run.js";
import { REFUSAL_RULES, type RefusalCode } from "../src/guard/refusals.js";
import { type RedisStoreOptions } from "../src/stores/redis/store.js";
import { expectDecided } from "./apply-decided.js";
import { BOUNDS, localTable, postgresTable, type SetTable, sharedTable, tableAt } from "./apply-tables.js";
import { randomPlays, STEPS } from "./random-states.js";
import { needsOwnServer } from "./redis-for-test.js";
import { HAS_POSTGRES, HAS_REDIS, openMemory, openSqlite, redisAddressForTest } from "./stores-for-test.js";

/** How many random states one run plays; more find more. */
const STATES_OF_ALL = 500;
const statesOf = (sample: number, whole = STATES_OF_ALL) =>
  Number(process.env["CALLNUMBER_TEST_STATES"] ?? sized(sample, whole));
/** One seed in some hundred meets what is wanted only in more states. */
const ROUNDS_MAX = 20;

const WORDS_OF_REPORTS: ReadonlySet<RefusalCode> = new Set(["NOTLEASED", "NOTHOLDER"]);
/** These servers have tests of their own. */
const WORDS_OF_ODD_SERVERS: ReadonlySet<RefusalCode> = new Set(["NOEPOCH", "REPLICA", "NODES", "UNCOUNTED"]);

/** Every step, on every state. */
async function playAll(setTable: SetTable, count: number, seed = inject("seed")): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  const property = fc.asyncProperty(randomPlays, fc.constantFrom(...BOUNDS), async (recipes, bounds) => {
    for (const recipe of recipes) {
      const table = await setTable();
      try {
        const { state, command: step, nowMs } = recipe((await table.found()).server, bounds);
        if (await table.put(state)) await expectDecided({ table, command: step, nowMs, bounds }, seen);
      } finally {
        await table.remove();
      }
    }
  });
  await fc.assert(property, { seed, numRuns: count, endOnFailure: true });
  return seen;
}

/** The first word of each. */
function wordsIn(seen: ReadonlySet<string>): string[] {
  return [...new Set([...seen].map((name) => name.split(" ", 1)[0] as string))];
}

/** Plays more states as long as one of these was not seen, by its first word or by all of them. */
async function playUntil(wanted: readonly string[], setTable: SetTable, count: number): Promise<void> {
  const seen = new Set<string>();
  const missing = () => wanted.filter((name) => !seen.has(name) && !wordsIn(seen).includes(name));
  for (let round = 0; round === 0 || (round < ROUNDS_MAX && missing().length > 0); round++)
    for (const name of await playAll(setTable, count, inject("seed") + round)) seen.add(name);
  expect(missing()).toEqual([]);
}

test("a store in memory does a step as it is decided on the state that was returned", async () => {
  await playAll(localTable(openMemory), statesOf(20));
});

test("an embedded store does a step as it is decided on the state that was returned", async () => {
  await playAll(localTable(openSqlite), statesOf(2, 50));
});

test.runIf(HAS_REDIS)("Redis does a step as it is decided on the state that was returned", async () => {
  const count = statesOf(30);
  const words = (Object.keys(REFUSAL_RULES) as RefusalCode[]).filter(
    (word) => !WORDS_OF_REPORTS.has(word) && !WORDS_OF_ODD_SERVERS.has(word),
  );
  const reasons = ["epoch", "replica", "silence", "line"].map((reason) => `OPERATOR ${reason}`);
  await playUntil(count < STATES_OF_ALL ? [] : [...STEPS, ...words, ...reasons], await sharedTable(), count);
});

test.runIf(HAS_POSTGRES)("PostgreSQL does a step as it is decided on the state that was returned", async () => {
  const count = statesOf(10);
  await playUntil(count < STATES_OF_ALL ? [] : STEPS, await postgresTable(), count);
});

test.runIf(HAS_REDIS)("Redis does no step on a server that does not report its epoch", async (context) => {
  needsOwnServer(context);
  const operators = operatorsAt(await startRedisServer());
  const { host, port } = operators;
  const redis = new Redis({ host, port, ...TESTER_LOGIN });
  await redis.acl("SETUSER", "mute", "on", ">pw", "~*", "+@all", "-info");
  redis.disconnect();
  // The Redis client says that it asks for INFO too, and goes on without it.
  vi.spyOn(console, "warn").mockImplementation(() => {});
  const seen = await playAll(await tableAt({ ...operators, username: "mute", password: "pw" }), sized(10, 100));
  vi.restoreAllMocks();
  expect(wordsIn(seen)).toContain("NOEPOCH");
  expect(STEPS.filter((step) => seen.has(step))).toEqual([]);
});

test.runIf(HAS_REDIS)("Redis does no step on a replica that can be written to", async (context) => {
  needsOwnServer(context);
  const server = await startRedisServer({ config: { "replica-read-only": "no" } });
  await command(server, "REPLICAOF", "127.0.0.1", 1);
  // Each refusal costs a new connection there. In a state with a graver fault, it is refused for that.
  const seen = await playAll(await tableAt(operatorsAt(server)), 3);
  expect(seen).toContain("REPLICA slave");
  expect(STEPS.filter((step) => seen.has(step))).toEqual([]);
});

test.runIf(HAS_REDIS)("Redis does no step for a record that does not count the server's replica", async (context) => {
  needsOwnServer(context);
  const master = await startRedisServer({ config: { "repl-diskless-sync-delay": "0" } });
  await follow(await startRedisServer(), master);
  // With a replica most states are refused.
  await playUntil(["NODES 1", "UNCOUNTED 1", "lease"], await tableAt(operatorsAt(master)), sized(10, 100));
});

/** A place there, for a user that may take every step. */
function operatorsAt({ url }: RedisServer): RedisStoreOptions {
  return redisAddressForTest(`${asOperator(url)}?prefix=callnumber:test:`);
}
