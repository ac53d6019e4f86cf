/**
 * Which outcomes of a step the guard rejects: their runs are discarded, and never leased later.
 * Guarantees: G2, G4 (docs/guarantees.md).
 */
import { expect, test } from "vitest";
import { freshNonce } from "../src/guard/verify-outcome.js";
import type { Outcome } from "../src/stores/store.js";
import { NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterSkip, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";

type Alter = (outcome: Outcome, world: World) => Outcome;

const after =
  (changed: Partial<Outcome["after"]>): Alter =>
  (outcome) => ({
    ...outcome,
    after: { ...outcome.after, ...changed },
  });
const check =
  (changed: Partial<Outcome["check"]>): Alter =>
  (outcome) => ({
    ...outcome,
    check: { ...outcome.check, ...changed },
  });

const ALTERATIONS: readonly [string, string, RegExp, Alter][] = [
  ["an answer to another step", "lease_discarded", /another nonce/, after({ nonce: "of-another-step" })],
  ["a look that belongs to another step", "lease_discarded", /another nonce/, check({ nonce: "of-another-step" })],
  ["the answer of another store", "store_id_mismatch", /answered for store/, after({ storeId: storeIdFrom(1) })],
  ["too few acknowledgements", "quorum_missing", /0 of 1/, (outcome) => ({ ...outcome, acknowledgedCount: 0 })],
  ["more nodes in the record than acknowledged", "quorum_missing", /1 of 2/, after({ nodeCount: 4 })],
  ["a server that became a replica meanwhile", "lease_discarded", /became a slave/, check({ role: "slave" })],
  ["a server in another life meanwhile", "lease_discarded", /restarted, promoted/, check({ epoch: "second:life:0" })],
  ["a claim of another coordinator meanwhile", "lease_discarded", /claimed meanwhile/, check({ generation: 7 })],
  ["a run that was seen leased", "lease_discarded", /not above the last one seen/, after({ highWaterMark: 10 })],
  ["a mark that is no number", "lease_discarded", /a number is missing/, after({ highWaterMark: Number.NaN })],
  ["a mark between two numbers", "lease_discarded", /a number is missing/, after({ highWaterMark: 12.5 })],
  [
    "a count of acknowledgements that is no number",
    "lease_discarded",
    /a number is missing/,
    (outcome) => ({ ...outcome, acknowledgedCount: Number.NaN }),
  ],
  ["a lease of no runs", "lease_discarded", /^.*0 runs were granted/, (outcome) => ({ ...outcome, runCount: 0 })],
  [
    "a lease of less than no runs",
    "lease_discarded",
    /-1 runs were granted/,
    (outcome) => ({ ...outcome, runCount: -1 }),
  ],
  [
    "more runs than were asked for",
    "lease_discarded",
    /4 runs were granted, but 3/,
    (outcome) => ({
      ...outcome,
      after: { ...outcome.after, highWaterMark: outcome.after.highWaterMark + 1 },
      runCount: outcome.runCount + 1,
    }),
  ],
  [
    "a range that begins at a run that was seen leased",
    "lease_discarded",
    /run 10 is not above/,
    (outcome) => ({ ...outcome, runCount: outcome.runCount + 1 }),
  ],
  [
    "a run above the line",
    "lease_discarded",
    /above the run ceiling/,
    (outcome, world) => after({ highWaterMark: lineOf(world, SHORT_BOUNDS.epsMs) + 1 })(outcome, world),
  ],
];

test.each(ALTERATIONS)("a lease is discarded on %s", async (_, code, message, alter) => {
  const world = await newWorld({ nodeCount: 2 });
  const guard = await guardOn(world);
  await leaseOf(guard, { runCount: 10 });
  world.store.alter = (outcome, { step }) => (step === "lease" ? alter(outcome, world) : outcome);
  await expect(leaseOf(guard, { runCount: 3 })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
  // The store has leased them, and the guard has given them to no client.
  expect((await world.store.readNamespace(NAMESPACE)).highWaterMark).toBe(13);
  world.store.alter = (outcome) => outcome;
  expect((await leaseOf(guard)).firstRun).toBe(14);
});

test("a lease at the run ceiling of a store whose clock is ahead by eps is granted", async () => {
  const world = await newWorld();
  const guard = await guardOn(world);
  await leaseOf(guard);
  const edge = lineOf(world, SHORT_BOUNDS.epsMs);
  world.store.alter = (outcome) => after({ highWaterMark: edge })(outcome, world);
  expect((await leaseOf(guard)).firstRun).toBe(edge);
});

test("a lease is discarded when the store gave its run to another lease", async () => {
  const world = await newWorld();
  const guard = await guardOn(world);
  world.store.alter = (outcome) => after({ highWaterMark: 7 })(outcome, world);
  const outcomes = await Promise.allSettled([leaseOf(guard), leaseOf(guard)]);
  expect(outcomes).toMatchObject([{ value: { firstRun: 7 } }, { reason: { code: "lease_discarded" } }]);
});

test("a discarded lease does no more harm: what was seen before still counts, and later leases rise", async () => {
  const world = await newWorld();
  const guard = await guardOn(world);
  const runs: number[] = [];
  for (let count = 0; count < 40; count++) {
    const [, , , alter] = ALTERATIONS[count % ALTERATIONS.length] as (typeof ALTERATIONS)[number];
    world.store.alter = (outcome, { step }) => (step === "lease" && count % 3 === 0 ? alter(outcome, world) : outcome);
    const lease = await leaseAfterSkip(world, guard, { runCount: 2 }).catch(() => undefined);
    if (lease !== undefined) runs.push(lease.firstRun, lastRunOf(lease));
  }
  expect(runs.length).toBeGreaterThan(40);
  expect(runs).toEqual([...new Set(runs)].sort((a, b) => a - b));
});

test("a nonce has 96 random bits, and none comes twice", () => {
  const nonces = Array.from({ length: 5_000 }, freshNonce);
  expect(new Set(nonces).size).toBe(5_000);
  for (const nonce of nonces) expect(nonce).toMatch(/^[\w-]{16}$/);
});

test("a lease of no runs is rejected, and no discard is logged", async () => {
  const world = await newWorld();
  const logged: string[] = [];
  const note = (_: object, event: string) => void logged.push(event);
  const guard = await guardOn(world, { log: { debug: note, info: note, warn: note, error: note } });
  world.store.alter = (outcome) => ({ ...outcome, runCount: 0 });
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "lease_discarded" });
  expect(logged).not.toContain("discarded");
});
