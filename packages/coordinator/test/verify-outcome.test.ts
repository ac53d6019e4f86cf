/**
 * Which outcomes of a step the guard rejects: their runs are discarded, and never leased later.
 * Guarantees: G2, G4 (docs/guarantees.md).
 */
import { expect, test } from "vitest";
import type { CheckAnswer } from "../src/guard/commands.js";
import type { Applied } from "../src/guard/step-store.js";
import { freshNonce } from "../src/guard/verify-outcome.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterSkip, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";

type Alter = (applied: Applied, world: World) => Applied;

const after =
  (changed: Partial<Applied>): Alter =>
  (applied) => ({ ...applied, ...changed });
const check =
  (changed: Partial<CheckAnswer>): Alter =>
  (applied) => ({ ...applied, check: { role: "", epoch: "", generation: -1, ...applied.check, ...changed } });

const ALTERATIONS: readonly [string, string, RegExp, Alter][] = [
  ["too few acknowledgements", "quorum_missing", /0 of 1/, after({ acknowledgedCount: 0 })],
  ["a server that was not looked at again", "lease_discarded", /not looked at again/, after({ check: undefined })],
  ["a server that became a replica meanwhile", "lease_discarded", /became a slave/, check({ role: "slave" })],
  ["a server in another life meanwhile", "lease_discarded", /restarted, promoted/, check({ epoch: "second:life:0" })],
  ["a claim of another coordinator meanwhile", "lease_discarded", /claimed meanwhile/, check({ generation: 7 })],
  ["a run that was seen leased", "lease_discarded", /not above the last one seen/, after({ highWaterMark: 10 })],
  ["a mark that is not a number", "lease_discarded", /a number is missing/, after({ highWaterMark: Number.NaN })],
  ["a mark between two numbers", "lease_discarded", /a number is missing/, after({ highWaterMark: 12.5 })],
  [
    "a count of acknowledgements that is not a number",
    "lease_discarded",
    /a number is missing/,
    after({ acknowledgedCount: Number.NaN }),
  ],
  [
    "a run above the line",
    "lease_discarded",
    /above the run ceiling/,
    (applied, world) => after({ highWaterMark: lineOf(world, SHORT_BOUNDS.epsMs) + 1 })(applied, world),
  ],
];

test.each(ALTERATIONS)("a lease is discarded on %s", async (_, code, message, alter) => {
  const world = await newWorld({ nodeCount: 2 });
  const guard = await guardOn(world);
  await leaseOf(guard, { runCount: 10 });
  world.store.alter = (applied, command) => (command?.step === "lease" ? alter(applied, world) : applied);
  await expect(leaseOf(guard, { runCount: 3 })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
  // The store has leased them, and the guard has given them to no client.
  expect((await world.store.readNamespace(NAMESPACE)).highWaterMark).toBe(13);
  world.store.alter = (applied) => applied;
  expect((await leaseOf(guard)).firstRun).toBe(14);
});

test("a lease at the run ceiling of a store whose clock is ahead by eps is granted", async () => {
  const world = await newWorld();
  const guard = await guardOn(world);
  await leaseOf(guard);
  const edge = lineOf(world, SHORT_BOUNDS.epsMs);
  world.store.alter = after({ highWaterMark: edge }) as (applied: Applied) => Applied;
  expect((await leaseOf(guard)).firstRun).toBe(edge);
});

test("a discarded lease does no more harm: what was seen before still counts, and later leases rise", async () => {
  const world = await newWorld();
  const guard = await guardOn(world);
  const runs: number[] = [];
  for (let count = 0; count < 40; count++) {
    const [, , , alter] = ALTERATIONS[count % ALTERATIONS.length] as (typeof ALTERATIONS)[number];
    world.store.alter = (applied, command) =>
      command?.step === "lease" && count % 3 === 0 ? alter(applied, world) : applied;
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
