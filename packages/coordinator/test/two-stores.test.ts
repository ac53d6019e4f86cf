/** One seeded script, played on two stores, and every answer compared: what the contract does not think of, this finds. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import type { Store } from "../src/store.js";
import { leaseCommand, type OpenForTest, reportCommand, storeIdFrom } from "./store-contract.js";
import { openMemory, openRedis, openSqlite } from "./stores-for-test.js";

const SCRIPTS = 30;
const STEPS = 60;

type Play = (store: Store) => Promise<unknown>;

interface Step {
  readonly name: string;
  readonly play: Play;
}

const run = fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: RUN_MAX - 300, max: RUN_MAX }));
const nonce = fc.constantFrom("nonce-of-one-0000", "nonce-of-two-0000");
const namespace = fc.constantFrom("main", "main", "main", "end", "none");

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(namespace, fc.integer({ min: 1, max: 64 }), nonce, fc.constantFrom(0, 0, 0, 0, 50, 500), fc.nat(3))
      .map(leaseStep),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(namespace, run, nonce, fc.option(fc.nat(16_383)), fc.constantFrom("open", "exhausted", "closed"))
      .map(reportStep),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(namespace, run)
      .map(([name, id]) => ({ name: `find ${name} ${id}`, play: (store: Store) => store.findLease(name, id) })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(namespace, run, fc.integer({ min: 1, max: 5 })).map(([name, belowLedgerId, limit]) => ({
      name: `list ${name} ${belowLedgerId} ${limit}`,
      play: (store: Store) => store.listLeases(name, { belowLedgerId, limit }),
    })),
  },
  {
    weight: 1,
    arbitrary: namespace.map((name) => ({
      name: `create ${name}`,
      play: (store: Store) => store.createNamespace(name === "none" ? "main" : name, storeIdFrom(9)),
    })),
  },
  {
    weight: 1,
    arbitrary: namespace.map((name) => ({ name: `read ${name}`, play: (store: Store) => store.readNamespace(name) })),
  },
);

function leaseStep([name, runCount, nonce, floor, process]: [string, number, string, number, number]): Step {
  const holder = { name: `importer-${process}`, host: "h", pid: process, labels: {} };
  const command = leaseCommand({ runCount, nonce, floor, holder });
  return { name: `lease ${name} ${runCount} floor ${floor}`, play: (store: Store) => store.lease(name, command) };
}

function reportStep([name, ledgerId, nonce, lastSequence, state]: [
  string,
  number,
  string,
  number | null,
  string,
]): Step {
  const command = reportCommand({ nonce, lastSequence, state: state as "open" });
  return {
    name: `report ${name} ${ledgerId} ${lastSequence} ${state}`,
    play: (store: Store) => store.report(name, ledgerId, command),
  };
}

/** Meets every refusal, whatever the seed: a comparison of successes only would compare little. */
const everyRefusal: Step[] = [
  { name: "create main", play: (store) => store.createNamespace("main", storeIdFrom(9)) },
  { name: "read none", play: (store) => store.readNamespace("none") },
  leaseStep(["main", 2, "nonce-of-one-0000", 0, 1]),
  reportStep(["main", 2, "nonce-of-two-0000", 5, "open"]),
  reportStep(["main", 3, "nonce-of-one-0000", 5, "open"]),
  leaseStep(["main", 1, "nonce-of-one-0000", 3, 1]),
  ...Array.from({ length: 5 }, () => leaseStep(["end", 64, "nonce-of-one-0000", 0, 1])),
];

async function outcome(play: Play, store: Store): Promise<unknown> {
  try {
    return withoutTimes(await play(store));
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return { code, message };
  }
}

/** Clocks differ between the stores; everything else must not. Store ids are compared as they stand. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (key, item) => (key.endsWith("AtMs") && typeof item === "number" ? "a time" : item)),
  );
}

describe.each<[string, OpenForTest]>([
  ["embedded", openSqlite],
  ["Redis", openRedis],
])("the %s store, beside the memory store", (_, open) => {
  test(`answers ${SCRIPTS} scripts of ${STEPS} steps alike`, async () => {
    const refusals = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: STEPS, maxLength: STEPS }), async (script) => {
        const [reference, other] = [await openMemory(), await open()];
        try {
          const ids = { main: storeIdFrom(1), end: storeIdFrom(RUN_MAX - 200) };
          for (const [name, id] of Object.entries(ids)) {
            await reference.store.createNamespace(name, id);
            await other.store.createNamespace(name, id);
          }
          const told: string[] = [];
          for (const { name, play } of script) {
            const expected = await outcome(play, reference.store);
            told.push(name);
            expect(await outcome(play, other.store), told.join("\n")).toEqual(expected);
            if (typeof expected === "object" && expected !== null && "code" in expected)
              refusals.add(String(expected.code));
          }
        } finally {
          await reference.remove();
          await other.remove();
        }
      }),
      { seed: inject("seed"), numRuns: SCRIPTS, endOnFailure: true, examples: [[everyRefusal]] },
    );
    expect([...refusals].sort()).toEqual([
      "namespace_already_initialised",
      "namespace_not_initialised",
      "not_the_holder",
      "run_not_leased",
      "run_space_exhausted",
      "store_went_back",
    ]);
  });
});
