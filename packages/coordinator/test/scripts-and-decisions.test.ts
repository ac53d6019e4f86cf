/**
 * The scripts of lua/ and the decisions of src/guard/decide.ts are the same rules, written down twice. Here random states
 * and steps are run on both, and every reply is compared, and all that a step leaves in the store.
 * Guarantees: G1, G5, G12, G13 (docs/guarantees.md).
 */
import { isDeepStrictEqual } from "node:util";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterEach, expect, inject, test, vi } from "vitest";
import { command } from "../../../test/redis/redis-command.js";
import { follow } from "../../../test/redis/replicated-redis.js";
import { asOperator, TESTER_LOGIN } from "../../../test/redis/shipped-users.js";
import { type RedisServer, sharedRedis, startRedisServer } from "../../../test/redis/test-redis.js";
import { sized } from "../../../test/size-of-run.js";
import type { CoordinatorError } from "../src/errors.js";
import { type Bounds, DEFAULT_BOUNDS } from "../src/guard/bounds.js";
import { type ObservedServer } from "../src/guard/checks.js";
import { decide, isOfAnyStore } from "../src/guard/decide.js";
import { readRecord, storedFields } from "../src/guard/record.js";
import { isRefusal, REFUSAL_RULES, type RefusalCode, refused } from "../src/guard/refusals.js";
import { type RedisAddress } from "../src/stores/redis/address.js";
import { RedisConnection } from "../src/stores/redis/connection.js";
import { asideKeysOf, keysOf, type NamespaceKeys } from "../src/stores/redis/scripts.js";
import { RedisSteps } from "../src/stores/redis/steps.js";
import { type LeaseStep, type Outcome, type RecordAfter } from "../src/stores/store.js";
import { holderJsonOf, recordAfter } from "../src/stores/stored-shapes.js";
import { NAMESPACE } from "./commands-for-test.js";
import { foundKeys, type KeptState, type LeftState, putState, readClock, readServer, readState } from "./kept-state.js";
import { type Play, type Recipe, randomPlays, STEPS } from "./random-states.js";
import { needsOwnServer } from "./redis-for-test.js";
import { redisAddressForTest } from "./stores-for-test.js";

/** How many random states one run plays; more find more. */
const STATE_COUNT_OF_ALL = 2_000;
const STATE_COUNT = Number(process.env["CALLNUMBER_TEST_STATES"] ?? sized(150, STATE_COUNT_OF_ALL));
const ROUNDS_MAX = 20;
const STATE_COUNT_OF_ODD_SERVERS = sized(40, 100);
/** Each refusal costs a new connection there. */
const STATE_COUNT_OF_REPLICA = 10;

const WORDS_OF_REPORTS: ReadonlySet<RefusalCode> = new Set(["NOTLEASED", "NOTHOLDER"]);
/** These servers have tests of their own. */
const WORDS_OF_ODD_SERVERS: ReadonlySet<RefusalCode> = new Set(["NOEPOCH", "REPLICA", "NODES"]);

const BOUNDS: readonly Bounds[] = [
  DEFAULT_BOUNDS,
  { epsMs: 40, gapMs: 6_000, attendedMs: 6_000, heartbeatEveryMs: 100 },
];

const closing: (() => unknown)[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.splice(0).reverse()) await close();
});

/** A server to play on, with the steps of the Redis store for each set of bounds. */
interface Table {
  readonly redis: Redis;
  readonly server: ObservedServer;
  readonly keyPrefix: string;
  readonly steps: ReadonlyMap<Bounds, RedisSteps>;
  /** The coordinator's clock, and the server's as it was read last. */
  readonly clock: { nowMs: number; serverMs: number };
  /** Steps that were done, and words and details of those that were not. */
  readonly seen: Set<string>;
}

/** A server by itself: the scripts know nothing of groups. */
type OneServer = RedisAddress & { readonly keyPrefix: string };

async function tableAt(
  address: OneServer,
  { admin = { ...address, ...TESTER_LOGIN }, asked = {} }: { admin?: OneServer; asked?: Partial<ObservedServer> } = {},
): Promise<Table> {
  const redis = connected(admin);
  const clock = { nowMs: 0, serverMs: 0 };
  const connection = await RedisConnection.open(address);
  closing.push(() => connection.close());
  const stepsWith = (bounds: Bounds) =>
    new RedisSteps({ connection, bounds, now: () => clock.nowMs, quorumTimeoutMs: 1 });
  const server = { ...(await readServer(redis)), ...asked };
  const { keyPrefix } = address;
  const keys = keysOf(keyPrefix, NAMESPACE);
  closing.push(() => redis.del(keys.record, keys.ledger, keys.holders));
  const steps = new Map(BOUNDS.map((bounds) => [bounds, stepsWith(bounds)]));
  return { redis, server, keyPrefix, steps, clock, seen: new Set() };
}

/** The result of a step: what it returned, and what it left. */
type StepResult =
  | { readonly refused: object }
  | { readonly done: object; readonly left: Omit<LeftState, "timeMs" | "types"> };

/** Plays a step on both, each on the same state. */
async function playBoth(table: Table, recipe: Recipe, bounds: Bounds): Promise<void> {
  const { redis, server, keyPrefix, steps, clock, seen } = table;
  const keys = keysOf(keyPrefix, NAMESPACE);
  const play = recipe({ ...server, timeMs: clock.serverMs }, bounds);
  clock.nowMs = play.nowMs;
  const before = await putState(redis, keys, play.state);
  // One node: how many acknowledge is no decision.
  const answer = await answerOf(() => (steps.get(bounds) as RedisSteps).step(NAMESPACE, keys, play.command, 1));
  const after = await readState(redis, keys);
  if ("done" in answer && answer.done.movedAside?.length) await redis.del(...answer.done.movedAside);
  clock.serverMs = after.timeMs;
  const result: StepResult = "refused" in answer ? answer : { ...answer, left: comparable(after) };
  if ("refused" in result)
    expect({ ...after, timeMs: 0 }, "a refusal changes nothing").toEqual({ ...before, timeMs: 0 });

  // Redis runs on its own clock, which stood between the two readings when the script looked at it.
  const expected: StepResult[] = [];
  for (let timeMs = before.timeMs; timeMs <= after.timeMs; timeMs++) {
    const decided = decisionOn(play, { ...server, timeMs }, bounds, before, keys);
    seen.add(decided.name);
    if (isDeepStrictEqual(decided.result, result)) return;
    expected.push(decided.result);
  }
  const situation = { ...play, server, bounds, fromMs: before.timeMs, toMs: after.timeMs };
  expect(result, JSON.stringify(situation, null, 1)).toEqual(expected[0]);
}

async function answerOf(
  step: () => Promise<Outcome>,
): Promise<{ refused: object } | { done: Omit<Outcome, "acknowledgedCount"> }> {
  for (;;) {
    try {
      const { acknowledgedCount: _, ...done } = await step();
      return { done };
    } catch (error) {
      const { message } = error as CoordinatorError;
      if (!/the connection broke/.test(message)) return { refused: errorFields(error as CoordinatorError) };
      // After a server that is no master the connection is made again; until then nothing is sent.
      await pause();
    }
  }
}

/** What the decision says of the same situation, and a name for it. */
function decisionOn(
  { state, command, nowMs }: Play,
  server: ObservedServer,
  bounds: Bounds,
  before: LeftState,
  keys: NamespaceKeys,
): { readonly name: string; readonly result: StepResult } {
  const written = decide({ namespace: NAMESPACE, keys: foundKeys(state), server, nowMs, bounds }, command);
  if (isRefusal(written)) {
    const { code, detail } = written;
    return {
      name: `${code} ${detail}`,
      result: { refused: errorFields(refused(code, asRedisReports(detail), NAMESPACE)) },
    };
  }
  const { record, runCount } = written;
  const { nonce, step } = command;
  const after = recordAfter(record, nonce);
  const fields = storedFields(record);
  mustBeReadable(fields);
  const check = { nonce, role: server.role, epoch: server.epoch, generation: after.generation };
  const aside = step === "recover" ? keysMovedAside(state, keys, nonce) : [];
  const left = {
    ...comparable(before),
    fields,
    expires: false,
    ...(step === "lease" ? leaseLeft(command, after, runCount, before) : {}),
  };
  return {
    name: step,
    result: { done: { after, runCount, ...(aside.length > 0 && { movedAside: aside }), check }, left },
  };
}

/** New names of what stood there as another type. */
function keysMovedAside(state: KeptState, keys: NamespaceKeys, nonce: string): readonly string[] {
  const { record, fields, ledger, holders } = foundKeys(state);
  const [ofRecord = "", ofLedger = "", ofHolders = ""] = asideKeysOf(keys, nonce);
  return [
    ...(record === "other" || (record === "hash" && !isOfAnyStore(fields)) ? [ofRecord] : []),
    ...(ledger === "other" ? [ofLedger] : []),
    ...(holders === "other" ? [ofHolders] : []),
  ];
}

/** The ledger and the holders after a lease. */
function leaseLeft(command: LeaseStep, after: RecordAfter, runCount: number, { ledger, holders }: LeftState) {
  const holder = String(Object.keys(holders).length / 2 + 1);
  const json = holderJsonOf(command);
  const entry = ["n", String(runCount), "t", String(after.changedAtMs), "h", holder, "x", command.leaseNonce];
  const id = `${ledgerIdOf(after.version, after.highWaterMark)}-0`;
  return { ledger: [[id, entry] as const, ...ledger], holders: { ...holders, [json]: holder, [holder]: json } };
}

function comparable({ fields, ledger, holders, expires }: LeftState) {
  return { fields: { ...fields }, ledger, holders: { ...holders }, expires };
}

/** A step that is done leaves a record that the next step can read. */
function mustBeReadable(fields: Readonly<Record<string, string>>): void {
  const read = readRecord(fields, NAMESPACE);
  if (isRefusal(read)) expect.fail(`a step leaves what can't be read, ${read.detail}: ${JSON.stringify(fields)}`);
}

function errorFields({ code, message, retryAfterMs, generation }: CoordinatorError): object {
  return { code, message, retryAfterMs, generation };
}

/** Redis flattens an error, and cuts the ends of lines off its end. */
function asRedisReports(detail: string): string {
  return detail.replace(/[\r\n]+$/, "").replace(/[\r\n]/g, " ");
}

/** Every step, on every state. */
async function playAll(table: Table, stateCount: number, seed = inject("seed")): Promise<void> {
  const property = fc.asyncProperty(randomPlays, fc.constantFrom(...BOUNDS), async (recipes, bounds) => {
    table.clock.serverMs = await readClock(table.redis);
    for (const recipe of recipes) await playBoth(table, recipe, bounds);
  });
  await fc.assert(property, { seed, numRuns: stateCount, endOnFailure: true });
}

test(`the scripts decide as the decisions do on ${STATE_COUNT} random states, of 2,000 on with every refusal`, async () => {
  const address = redisAddressForTest(sharedRedis().operatorUrl);
  const { username, password } = new URL(sharedRedis().url);
  const table = await tableAt(address, { admin: { ...address, username, password } });
  await playAll(table, STATE_COUNT);
  if (STATE_COUNT < STATE_COUNT_OF_ALL) return;
  const words = (Object.keys(REFUSAL_RULES) as RefusalCode[]).filter(
    (word) => !WORDS_OF_REPORTS.has(word) && !WORDS_OF_ODD_SERVERS.has(word),
  );
  expect(wordsIn(table.seen)).toEqual([...STEPS, ...words].sort());
  for (const reason of ["epoch", "replica", "silence", "line"]) expect(table.seen).toContain(`OPERATOR ${reason}`);
});

test("the scripts decide as the decisions do on a server that does not report its epoch", async (context) => {
  needsOwnServer(context);
  const server = await startRedisServer();
  const operators = operatorsAt(server);
  const redis = connected({ ...operators, ...TESTER_LOGIN });
  await redis.acl("SETUSER", "mute", "on", ">pw", "~*", "+@all", "-info");
  // The Redis client says that it asks for INFO too, and goes on without it.
  vi.spyOn(console, "warn").mockImplementation(() => {});
  const table = await tableAt({ ...operators, username: "mute", password: "pw" }, { asked: { epoch: undefined } });
  await playAll(table, STATE_COUNT_OF_ODD_SERVERS);
  expect(wordsIn(table.seen)).toContain("NOEPOCH");
  expect(STEPS.filter((step) => table.seen.has(step))).toEqual([]);
});

test("the scripts decide as the decisions do on a replica that can be written to", async (context) => {
  needsOwnServer(context);
  const server = await startRedisServer({ config: { "replica-read-only": "no" } });
  await command(server, "REPLICAOF", "127.0.0.1", 1);
  const table = await tableAt(operatorsAt(server));
  await playAll(table, STATE_COUNT_OF_REPLICA);
  expect(table.seen).toContain("REPLICA slave");
  expect(STEPS.filter((step) => table.seen.has(step))).toEqual([]);
});

test("the scripts decide as the decisions do on a master with a replica, which may be one too many", async (context) => {
  needsOwnServer(context);
  const master = await startRedisServer({ config: { "repl-diskless-sync-delay": "0" } });
  await follow(await startRedisServer(), master);
  const table = await tableAt(operatorsAt(master));
  expect(table.server.connectedReplicas).toBe(1);
  // With a replica most states are refused, and one seed in some hundred leases in none of so many.
  for (let more = 0; more === 0 || (more < ROUNDS_MAX && !table.seen.has("lease")); more++)
    await playAll(table, STATE_COUNT_OF_ODD_SERVERS, inject("seed") + more);
  expect(table.seen).toContain("NODES 1");
  expect(table.seen).toContain("lease");
});

/** A place there, for a user that may take every step. */
function operatorsAt({ url }: RedisServer): OneServer {
  return redisAddressForTest(`${asOperator(url)}?prefix=callnumber:test:`);
}

function connected({ host, port, database, username, password }: OneServer): Redis {
  const user = username && password ? { username, password } : {};
  const redis = new Redis({ host, port, db: database, ...user });
  closing.push(() => redis.disconnect());
  return redis;
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 10));
}

/** The first word of each. */
function wordsIn(seen: ReadonlySet<string>): string[] {
  return [...new Set([...seen].map((name) => name.split(" ", 1)[0] as string))].sort();
}
