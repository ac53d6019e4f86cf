/**
 * A change against a store that is not any more as it was when the change was decided: others have leased, claimed, sealed or lost
 * something, a hand has edited it, clocks have leapt. What a decision on the state of that moment would refuse is never written, and the
 * store answers what it found. And a reply that is lost: what it granted stays lost, and the next try is decided on what is there.
 * Guarantees: G1, G2, G5 (docs/guarantees.md).
 */
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { sized } from "../../../test/size-of-run.js";
import { CoordinatorError } from "../src/errors.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import type { Written } from "../src/guard/decide.js";
import { checksumOf, fieldsOf } from "../src/guard/record.js";
import { isRefusal, type Refusal, refusal } from "../src/guard/refusals.js";
import { type Applied, type Change, type Expected, isApplied, type Observed } from "../src/guard/step-store.js";
import { expectDecided } from "./apply-decided.js";
import {
  BOUNDS,
  bareTable,
  type Case,
  clockOf,
  decidedOn,
  instantsOf,
  localTable,
  postgresTable,
  type SetTable,
  sharedTable,
  situationOf,
} from "./apply-tables.js";
import { NAMESPACE } from "./commands-for-test.js";
import { type Disturbance, disturbances } from "./disturbances.js";
import { randomPlays, STEPS } from "./random-states.js";
import { preparedFor, stepsOn } from "./steps-for-test.js";
import { HAS_POSTGRES, HAS_REDIS, openMemory, openSqlite } from "./stores-for-test.js";

const statesOf = (sample: number, whole: number) =>
  Number(process.env["CALLNUMBER_TEST_STATES"] ?? sized(sample, whole));

const ROUNDS_MAX = 100;

/** A change as it was sent, and what the store was before and after. */
interface Sent extends Case {
  readonly expected: Expected;
  readonly change: Change;
  readonly disturbance: Disturbance;
  readonly before: Observed;
  readonly after: Observed;
}

/** How far the coordinator's clock has leapt against the store's since the decision. */
function leapMsOf({ leap }: Disturbance, { bounds }: Pick<Case, "bounds">): number {
  return Math.round(leap.partOfEps * bounds.epsMs) + leap.ms;
}

/** What a decision at the moment of the write says. */
function decidedThen(sent: Sent, timeMs: number): Written | Refusal {
  const { expected, change, before, bounds, disturbance } = sent;
  const leapMs = leapMsOf(disturbance, sent);
  const nowMs = sent.nowMs + leapMs;
  if (expected.rising !== undefined) {
    const decided = decidedOn({ ...sent, nowMs }, before, timeMs);
    if (!isRefusal(decided) || decided.code !== "AHEAD" || leapMs >= 0) return decided;
    // The ceiling was that of the earlier clock at the decision, which has gone back since by less than eps. A recovery adds twice as much.
    const { id, version } = change.record;
    const earliestMs = Math.min(sent.nowMs, expected.found.server.timeMs);
    const isBelow = Number(before.keys.fields["c"]) < ceilingAt(id, version, earliestMs);
    return isBelow ? { record: change.record, runCount: 1 } : decided;
  }
  // It rests on all that it was decided on, the time apart, which has run on or leapt by no more than clocks may differ.
  const isBehind = nowMs - timeMs > bounds.epsMs;
  const isAhead = timeMs - nowMs > bounds.epsMs && sent.command.step !== "seal";
  if (isBehind || isAhead) return refusal("CLOCK", timeMs - nowMs);
  return decidedOn(sent, before, expected.found.server.timeMs);
}

/** Without those that a rising change takes from the record as it is found. */
function stillFieldsOf({ record }: { readonly record: Written["record"] }): object {
  const { c: _, t: __, ...fields } = fieldsOf(record);
  return fields;
}

function expectWritten(sent: Sent, answer: Applied): void {
  const { expected, change, disturbance, before, after } = sent;
  const fields = after.keys.fields;
  const runs = change.leases.reduce((sum, { runCount }) => sum + runCount, 0);
  const written = { ...change.record, highWaterMark: answer.highWaterMark, changedAtMs: answer.changedAtMs };
  expect(fields).toEqual({ ...fieldsOf(written), k: checksumOf(fieldsOf(written)) });
  expect(after.keys.expires).toBe(false);
  if (expected.rising === undefined) return expect(written).toEqual(change.record);
  expect(answer.highWaterMark).toBe(Number(before.keys.fields["c"]) + runs);
  const laterMs = Math.max(Number(before.keys.fields["t"]), sent.nowMs + leapMsOf(disturbance, sent));
  const possible = instantsOf(before, after).map((timeMs) => Math.max(timeMs, laterMs));
  expect(possible).toContain(answer.changedAtMs);
  const ledgerMark = written.version * 2 ** 30 + written.highWaterMark;
  expect(after.keys.ledgerMark).toBe(runs > 0 ? ledgerMark : before.keys.ledgerMark);
}

/** Sends a change that was decided before the disturbance; returns what became of it. */
async function play(one: Case, disturbed: () => Promise<boolean>, disturbance: Disturbance): Promise<string> {
  const { table, command } = one;
  const prepared = await preparedFor(table.store, NAMESPACE, command, clockOf(one)).catch((error: unknown) => {
    if (error instanceof CoordinatorError) return undefined;
    throw error;
  });
  if (prepared === undefined || !(await disturbed())) return "not played";
  const [asked, change] = prepared;
  const expected = disturbedExpectation(asked, disturbance, leapMsOf(disturbance, one));
  const contents = await table.contents();
  const before = await table.found();
  const answer = await table.store.apply(NAMESPACE, expected, change);
  const after = await table.found();
  const sent: Sent = { ...one, expected, change, disturbance, before, after };
  const decided = instantsOf(before, after).map((timeMs) => decidedThen(sent, timeMs));
  const what = `${disturbance.name}: ${situationOf(one, { expected, change, before, answer })}`;
  const { role, epoch, connectedReplicas } = before.server;
  const { server } = expected.found;
  const isOtherServer = role !== server.role || epoch !== server.epoch || connectedReplicas > expected.replicasMax;
  if (isApplied(answer)) {
    const alike = decided.find((one): one is Written => !isRefusal(one));
    expect(isOtherServer || alike === undefined, `written, but refused now: ${what}`).toBe(false);
    expect(stillFieldsOf(change), what).toEqual(stillFieldsOf(alike as Written));
    expectWritten(sent, answer);
    return "applied";
  }
  expect(answer.keys, what).toEqual(before.keys);
  expect(await table.contents(), what).toEqual(contents);
  expect(mustBeWritten(sent) && !isOtherServer && decided.every((one) => !isRefusal(one)), `not written: ${what}`).toBe(
    false,
  );
  return "found";
}

/** What was expected of a server that is another one by now, and the coordinator's clock as it would be. */
function disturbedExpectation(expected: Expected, disturbance: Disturbance, leapMs: number): Expected {
  const { found, rising } = expected;
  const server = disturbance.server(found.server);
  return {
    found: { keys: found.keys, server },
    replicasMax: expected.replicasMax - (server.connectedReplicas - found.server.connectedReplicas),
    timeMinMs: expected.timeMinMs + leapMs,
    timeMaxMs: expected.timeMaxMs + leapMs,
    rising: rising && { ...rising, nowMs: rising.nowMs + leapMs },
  };
}

/** Where nothing has changed but what others lease. */
function mustBeWritten({ expected, change, before, disturbance, ...one }: Sent): boolean {
  if (leapMsOf(disturbance, one) !== 0) return false;
  const { keys } = before;
  const found = expected.found.keys;
  if (JSON.stringify(keys) === JSON.stringify(found)) return true;
  const isSamePlace = keys.record === found.record && keys.ledger === found.ledger && keys.holders === found.holders;
  const runs = change.leases.reduce((sum, { runCount }) => sum + runCount, 0);
  const isBelow = Number(keys.fields["c"]) + runs <= (expected.rising?.highWaterMarkMax ?? 0);
  return expected.rising !== undefined && disturbance.isHarmless && isSamePlace && isBelow;
}

/** Every step, each with a disturbance, on every state. Adds to `seen` what became of each. */
async function playAll(setTable: SetTable, count: number, seed = inject("seed"), seen = new Set<string>()) {
  const eight = fc.array(disturbances, { minLength: STEPS.length, maxLength: STEPS.length });
  const property = fc.asyncProperty(randomPlays, eight, fc.constantFrom(...BOUNDS), async (recipes, many, bounds) => {
    for (const [at, recipe] of recipes.entries()) {
      const table = await setTable();
      try {
        const { state, command, nowMs } = recipe((await table.found()).server, bounds);
        const disturbance = many[at] as Disturbance;
        const disturbed = async () => {
          const next = disturbance.change(state);
          return next === state || (await table.put(next));
        };
        if (!(await table.put(state))) continue;
        seen.add(`${command.step} ${await play({ table, command, nowMs, bounds }, disturbed, disturbance)}`);
      } finally {
        await table.remove();
      }
    }
  });
  await fc.assert(property, { seed, numRuns: count, endOnFailure: true });
}

test("what the stores of this process share writes nothing that would be refused now, and all that is decided on what is there", async () => {
  const wanted = STEPS.flatMap((step) => [`${step} applied`, `${step} found`]);
  const seen = new Set<string>();
  // With one seed in five no confirm is written in 300 states: then as many more.
  for (let round = 0; round < ROUNDS_MAX && !wanted.every((outcome) => seen.has(outcome)); round++)
    await playAll(bareTable, statesOf(300, 1_000), inject("seed") + round, seen);
  expect([...seen]).toEqual(expect.arrayContaining(wanted));
});

test("a store in memory writes nothing that would be refused now", async () => {
  await playAll(localTable(openMemory), statesOf(20, 500));
});

test("an embedded store writes nothing that would be refused now", async () => {
  await playAll(localTable(openSqlite), statesOf(2, 50));
});

test.runIf(HAS_REDIS)(
  "Redis writes nothing that would be refused now, and all that is decided on what is there",
  async () => {
    await playAll(await sharedTable(), statesOf(30, 400));
  },
);

test.runIf(HAS_POSTGRES)(
  "PostgreSQL writes nothing that would be refused now, and all that is decided on what is there",
  async () => {
    await playAll(await postgresTable(), statesOf(10, 200));
  },
);

const TABLES: readonly [string, () => SetTable | Promise<SetTable>, number][] = [
  ["a store in memory", () => localTable(openMemory), 10],
  ["an embedded store", () => localTable(openSqlite), 2],
  ...(HAS_POSTGRES ? [["PostgreSQL", postgresTable, 4] as [string, () => Promise<SetTable>, number]] : []),
  ...(HAS_REDIS ? [["Redis", sharedTable, 8] as [string, () => Promise<SetTable>, number]] : []),
];

test.each(TABLES)("a step whose reply is lost is decided again on what %s holds then", async (_, tableOf, count) => {
  const setTable = await tableOf();
  const seen = new Set<string>();
  const property = fc.asyncProperty(randomPlays, fc.constantFrom(...BOUNDS), async (recipes, bounds) => {
    for (const recipe of recipes) {
      const table = await setTable();
      try {
        const { state, command, nowMs } = recipe((await table.found()).server, bounds);
        if (!(await table.put(state))) continue;
        const one = { table, command, nowMs, bounds };
        let isLost = true;
        const apply: typeof table.store.apply = async (...words) => {
          const answer = await table.store.apply(...words);
          if (isLost && isApplied(answer)) throw new CoordinatorError("store_unavailable", "lost");
          return answer;
        };
        const store = { isExclusive: table.store.isExclusive, read: table.store.read.bind(table.store), apply };
        const step = stepsOn(store, NAMESPACE, clockOf(one));
        const first = await step(command).catch((error: CoordinatorError) => error.code);
        isLost = false;
        if (first !== "store_unavailable") continue;
        const { keys } = await table.found();
        await expectDecided(one, seen, async (again) => {
          const outcome = await step(again);
          const before = outcome.after.highWaterMark - outcome.runCount;
          if (outcome.runCount > 0) expect(before).toBe(Number(keys.fields["c"]));
          return outcome;
        });
      } finally {
        await table.remove();
      }
    }
  });
  // In few states no reply may be lost: then as many more.
  for (let seed = inject("seed"); seen.size === 0; seed++)
    await fc.assert(property, { seed, numRuns: sized(count, 10 * count), endOnFailure: true });
});
