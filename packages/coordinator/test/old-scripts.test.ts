/**
 * Random histories on the scripts of the last release, which hold their rules themselves, and on NamespaceSteps with `apply`: every outcome
 * and all that is left are the same. Until the new ones are trusted; then this goes, with old-scripts/.
 *
 * Different on purpose: the time of a write, and what is computed from it, are those of the moment when it was decided, which may be a few ms
 * earlier. Each step is that of a coordinator that has seen nothing yet: one that has leases by the ceiling of eps ago, and may get fewer runs.
 * Guarantees: G1, G5, G12, G13 (docs/guarantees.md).
 */
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { Redis } from "ioredis";
import { expect, inject, onTestFinished, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { sized } from "../../../test/size-of-run.js";
import { CoordinatorError } from "../src/errors.js";
import type { Bounds } from "../src/guard/clocks.js";
import type { RecordAfter, StepCommand } from "../src/guard/commands.js";
import { checksumOf } from "../src/guard/record.js";
import { isRefusal, refused } from "../src/guard/refusals.js";
import { keysOf, type NamespaceKeys } from "../src/stores/redis/scripts.js";
import { RedisStore } from "../src/stores/redis/store.js";
import { BOUNDS } from "./apply-tables.js";
import { NAMESPACE } from "./commands-for-test.js";
import { type Disturbance, disturbances } from "./disturbances.js";
import { type KeptState, putState, readServer, readState } from "./kept-state.js";
import { type OldGrant, oldStep } from "./old-scripts/old-steps.js";
import { type History, type HistoryStep, randomHistories, STEPS } from "./random-states.js";
import { stepsOn } from "./steps-for-test.js";
import { HAS_REDIS, redisAddressForTest } from "./stores-for-test.js";

const HISTORIES = Number(process.env["CALLNUMBER_TEST_HISTORIES"] ?? sized(40, 2_000));
/** Near a threshold the clock may pass it between the two. */
const TRIES_MAX = 8;

type StepOf = (command: StepCommand) => Promise<unknown>;

interface Places {
  readonly redis: Redis;
  readonly oldKeys: NamespaceKeys;
  readonly newKeys: NamespaceKeys;
  readonly store: RedisStore;
}

async function placesForTest(): Promise<Places> {
  const address = redisAddressForTest(sharedRedis().operatorUrl);
  const { username, password } = new URL(sharedRedis().url);
  const redis = new Redis({ host: address.host, port: address.port, db: address.database, username, password });
  onTestFinished(() => redis.disconnect());
  const prefixes = ["old:", "new:"].map((name) => `${address.keyPrefix}${name}`) as [string, string];
  const store = await RedisStore.open({ ...address, keyPrefix: prefixes[1], quorumTimeoutMs: 1 });
  onTestFinished(() => store.close());
  return { redis, oldKeys: keysOf(prefixes[0], NAMESPACE), newKeys: keysOf(prefixes[1], NAMESPACE), store };
}

const NAMES = ["record", "ledger", "holders"] as const;

async function copy({ redis }: Places, from: NamespaceKeys, to: NamespaceKeys): Promise<void> {
  for (const name of NAMES)
    await redis.call("COPY", from[name], to[name], "REPLACE").then(async (isCopied) => {
      if (isCopied === 0) await redis.del(to[name]);
    });
}

/** Numbers that are instants, or times between them, are compared as such. */
function withoutTimes(value: unknown): unknown {
  if (typeof value === "number") return value > 1.7e12 && value < 1.9e12 ? "a time" : value;
  if (typeof value === "string") {
    const isTime = /^1[78]\d{11}$/.test(value);
    return isTime ? "a time" : value.replace(/-?\d+ ms|\d{4}-\d\d-\d\dT[\d:.]+Z|\b1[78]\d{11}\b/g, "a time");
  }
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withoutTimes(item)]));
}

function refusedAs({ code, reason, message, generation, retryAfterMs }: CoordinatorError): object {
  // Lua kept no more of a schema than a line.
  const said = code === "store_schema_unsupported" ? "" : message;
  return { refused: { code, reason, message: said, generation, retries: retryAfterMs !== undefined } };
}

function grantedAs(after: RecordAfter, runCount: number, movedAside: readonly string[] = []): object {
  const aside = movedAside.map((key) => key.replace(/^.*:(\w+:foreign:).*$/, "$1"));
  return { done: { after, runCount, aside: aside.sort() } };
}

async function left(places: Places, keys: NamespaceKeys): Promise<object> {
  const { timeMs: _, fields, ...others } = await readState(places.redis, keys);
  const { k, ...own } = fields;
  return { ...others, fields: own, checksum: k === undefined ? undefined : k === checksumOf(fields) };
}

async function oldOutcomes(places: Places, commands: [StepCommand, ...StepCommand[]], nowMs: number, bounds: Bounds) {
  const { redis, oldKeys: keys } = places;
  const answers = await oldStep({ redis, keys, namespace: NAMESPACE, commands, nowMs, bounds });
  const outcomes = answers.map((answer) => {
    if (isRefusal(answer)) return refusedAs(refused(answer.code, answer.detail, NAMESPACE));
    const { after, runCount, movedAside }: OldGrant = answer;
    return grantedAs(after, runCount, movedAside);
  });
  return { outcomes, left: await left(places, keys) };
}

async function newOutcomes(places: Places, commands: readonly StepCommand[], step: StepOf) {
  const outcomes = await Promise.all(
    commands.map(async (command) => {
      try {
        const { after, runCount, movedAside } = (await step(command)) as OldGrant;
        return grantedAs(after, runCount, movedAside);
      } catch (error) {
        if (error instanceof CoordinatorError) return refusedAs(error);
        throw error;
      }
    }),
  );
  return { outcomes, left: await left(places, places.newKeys) };
}

/** Both, each on the same state, until their clocks have shown the same side of every threshold. */
async function playBoth(
  places: Places,
  commands: [StepCommand, ...StepCommand[]],
  nowMs: number,
  bounds: Bounds,
  seen: Set<string>,
) {
  const { redis, oldKeys, newKeys } = places;
  const backup = keysOf(`${oldKeys.record.split("{")[0]}backup:`, NAMESPACE);
  await copy(places, oldKeys, backup);
  for (let tries = 1; ; tries++) {
    await copy(places, backup, oldKeys);
    await copy(places, backup, newKeys);
    const before = withoutTimes(await left(places, oldKeys));
    const step = stepsOn(places.store, NAMESPACE, { now: () => nowMs, bounds });
    const ofOld = withoutTimes(await oldOutcomes(places, commands, nowMs, bounds));
    const ofNew = withoutTimes(await newOutcomes(places, commands, step));
    const aside = await redis.keys(`*${newKeys.record.split("{")[0]?.slice(-8)}*:foreign:*`);
    if (aside.length > 0) await redis.del(...aside);
    if (isDeepStrictEqual(ofNew, ofOld)) {
      const { outcomes } = ofOld as { outcomes: readonly { refused?: { code: string; reason?: string } }[] };
      for (const { refused: why } of outcomes)
        seen.add(why === undefined ? commands[0].step : `${why.reason ?? why.code}`);
      return;
    }
    if (tries < TRIES_MAX) continue;
    expect(ofNew, JSON.stringify({ commands, nowMs, bounds, before }, null, 1)).toEqual(ofOld);
  }
}

/** What the next step may know. */
async function knownIn({ redis, oldKeys }: Places, before: ReturnType<History["begin"]>["known"]) {
  if ((await redis.type(oldKeys.record)) !== "hash") return before;
  const { sid = before.storeId, ver, c, g } = await redis.hgetall(oldKeys.record);
  const [version, run, generation] = [ver, c, g].map(Number) as [number, number, number];
  const markId = version * 2 ** 30 + run;
  if (![version, markId, generation].every(Number.isSafeInteger)) return before;
  return { storeId: sid, version, markId, generation };
}

async function playHistory(
  places: Places,
  history: History,
  many: readonly Disturbance[],
  bounds: Bounds,
  seen: Set<string>,
) {
  const { redis, oldKeys } = places;
  const server = await readServer(redis);
  const begun = history.begin(server, bounds);
  let { known } = begun;
  await putState(redis, oldKeys, begun.state);
  for (const [at, step] of history.steps.entries()) {
    const disturbance = many[at];
    if (disturbance !== undefined) await putState(redis, oldKeys, disturbance.change(await keptAt(places, oldKeys)));
    known = await knownIn(places, known);
    const { timeMs } = await readServer(redis);
    await playBoth(places, commandsOf(step, history, at, known), timeMs + step.aheadMs(bounds), bounds, seen);
  }
}

/** Leases of the same moment: those that follow it. */
function commandsOf(step: HistoryStep, { steps }: History, at: number, known: Parameters<HistoryStep["make"]>[0]) {
  const command = step.make(known);
  const others = steps
    .slice(at + 1, at + 4)
    .filter(({ name, isSilenceAccepted }) => name === "lease" && isSilenceAccepted === step.isSilenceAccepted)
    .map((other) => other.make(known))
    .filter(({ storeId }) => storeId === command.storeId);
  return [command, ...(step.name === "lease" ? others : [])] as [StepCommand, ...StepCommand[]];
}

async function keptAt({ redis }: Places, keys: NamespaceKeys): Promise<KeptState> {
  const { types, fields, expires, ledger } = await readState(redis, keys);
  const [record, stream, holders] = types;
  return {
    record: record === "hash" ? { fields, expires } : record === "none" ? "none" : "string",
    ledger:
      stream === "stream"
        ? ledger.map(([id]) => Number(id.split("-")[0])).reverse()
        : stream === "none"
          ? "none"
          : "string",
    holders: holders === "hash" ? "hash" : holders === "none" ? "none" : "list",
  };
}

test.runIf(HAS_REDIS)(
  `${HISTORIES} random histories end alike on the scripts of the last release and on apply, but for times`,
  async () => {
    const places = await placesForTest();
    const seen = new Set<string>();
    const seldom = fc.array(fc.option(disturbances, { nil: undefined, freq: 1 }), { minLength: 12, maxLength: 12 });
    const property = fc.asyncProperty(randomHistories, seldom, fc.constantFrom(...BOUNDS), (history, many, bounds) =>
      playHistory(places, history, many as readonly Disturbance[], bounds, seen),
    );
    await fc.assert(property, { seed: inject("seed"), numRuns: HISTORIES, endOnFailure: true });
    if (HISTORIES < 2_000) return;
    expect([...seen]).toEqual(expect.arrayContaining([...STEPS]));
  },
);
