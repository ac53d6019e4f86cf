/**
 * One random course of a ledger, on the memory store and on another: leases, reports, trims and what is read of them. Every outcome is
 * compared, which finds what the contract leaves out. For steps apply.test.ts does so with the decisions.
 * Guarantees: G1 (docs/guarantees.md).
 */
import type { NotedState } from "@callnumber/protocol/api";
import { RUN_COUNT, RUN_MAX } from "@callnumber/protocol/codec";
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import { sized } from "../../../test/size-of-run.js";
import type { CoordinatorError } from "../src/errors.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { recordReport } from "../src/ledger/ledger-changes.js";
import { findLease } from "../src/ledger/read-ledger.js";
import type { LeaseQuery, Store } from "../src/stores/store.js";
import { reportCommand, storeIdFrom } from "./commands-for-test.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";
import { openMemory, STORES } from "./stores-for-test.js";

const COURSES = sized(15, 50);
const COURSES_WITH_ALL = 15;
const PLAYS = 50;
/** The second begins near the end of the run space, the third is never made. */
const NAMES = ["main", "end", "none"] as const;
/** Its ceiling is far above all, and has passed the end of the version. */
const MADE_AT_MS = 1_000_000_000_000;

type Name = (typeof NAMES)[number];
type Stores = Readonly<Record<Name, Pick<StoreInHand, "lease" | "skipAhead" | "step" | "commands">>>;
type Play = readonly [name: string, play: (store: Store, made: Stores) => Promise<unknown>];

const nonceOf = (who: number) => `nonce-of-caller-${who % 2}`;
const name = fc.constantFrom<Name[]>("main", "main", "main", "end", "end", "none");
const ledgerId = fc.oneof(
  fc.nat(80),
  fc.nat(80).map((above) => RUN_MAX - 200 + above),
  fc.nat(100).map((run) => RUN_COUNT + run),
);

/** Trims the oldest leases, as the caller knows them: rightly, or not. */
const trim = fc.record({
  name,
  storeId: fc.constantFrom("its own", "its own", "its own", "another"),
  leaseCount: fc.integer({ min: 1, max: 6 }),
  unknown: fc.constantFrom("none", "none", "none", "oldest", "newest"),
  isReportMissed: fc.constantFrom(false, false, false, true),
  stale: fc.constantFrom(0, 0, 0, 0, -1, 1),
});

function drawn<T>(weight: number, what: string, asked: fc.Arbitrary<T>, play: (asked: T) => Play[1]) {
  return { weight, arbitrary: asked.map((one): Play => [`${what} ${JSON.stringify(one)}`, play(one)]) };
}

const plays = fc.oneof(
  drawn(12, "lease", fc.record({ name, runCount: fc.constantFrom(1, 2, 3, 64), who: fc.nat(3) }), (asked) => {
    const holder = { name: `importer-${asked.who}`, host: "h", pid: asked.who, labels: {} };
    return (_, made) => made[asked.name].lease({ runCount: asked.runCount, holder, leaseNonce: nonceOf(asked.who) });
  }),
  drawn(
    1,
    "advance",
    fc.constant("end"),
    () =>
      (_, { end: { step, commands } }) =>
        step(commands.advance(0)),
  ),
  drawn(
    12,
    "report",
    fc.record({
      name,
      ledgerId,
      who: fc.nat(1),
      lastSequence: fc.option(fc.nat(16_383)),
      state: fc.constantFrom<NotedState[]>("open", "exhausted", "closed", "discarded"),
    }),
    ({ name, ledgerId, who, ...report }) =>
      (store) =>
        recordReport(store, name, ledgerId, reportCommand({ nonce: nonceOf(who), ...report })),
  ),
  drawn(
    6,
    "find",
    fc.tuple(name, ledgerId),
    ([name, id]) =>
      (store) =>
        findLease(store, name, id),
  ),
  drawn(
    4,
    "list",
    fc.record({
      name,
      from: ledgerId,
      limit: fc.integer({ min: 1, max: 5 }),
      direction: fc.constantFrom<LeaseQuery["direction"][]>("newest_first", "oldest_first"),
    }),
    ({ name, ...query }) =>
      (store) =>
        store.leases(name, query),
  ),
  drawn(6, "trim", trim, ({ name, storeId, leaseCount, unknown, isReportMissed, stale }) => async (store) => {
    const { through } = await store.readRetention(name);
    const oldest = await store.leases(name, { direction: "oldest_first", limit: leaseCount });
    const last = oldest.at(-1);
    const leases = last && isReportMissed ? [...oldest.slice(0, -1), { ...last, progress: null }] : oldest;
    const record = await store.readNamespace(name);
    return await store.trimLedger(name, {
      record: storeId === "its own" ? record : { ...record, storeId: storeIdFrom(1) },
      trimmedThrough: Math.max(through + stale, 0),
      through: last === undefined ? through : lastLedgerIdOf(last),
      leasedAtMs: leaseCount,
      leases: { none: leases, oldest: leases.slice(1), newest: leases.slice(0, -1) }[unknown],
    });
  }),
  drawn(
    1,
    "keep",
    fc.tuple(name, fc.constantFrom(0, 8, 90)),
    ([name, days]) =>
      (store) =>
        store.setRetentionDays(name, days),
  ),
  drawn(2, "retention", name, (name) => (store) => store.readRetention(name)),
  drawn(2, "record", name, (name) => (store) => store.readNamespace(name)),
);

async function outcomeOf([, play]: Play, store: Store, made: Stores): Promise<unknown> {
  try {
    return withoutTimes(await play(store, made));
  } catch (error) {
    const { code, reason, message } = error as CoordinatorError;
    // Not a refusal: an expectation of the play itself, or a fault.
    if (code === undefined) throw error;
    return withoutTimes({ code, reason, message });
  }
}

/** Clocks and epochs differ between the stores; everything else must not. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (key, item) => (key.endsWith("AtMs") || key === "epoch" ? "its own" : item)),
  );
}

/** Both stores with the same ids. */
async function madeOn(store: Store, ids: Readonly<Record<Name, string>>): Promise<Stores> {
  const main = await withNamespace(store, { namespace: "main", storeId: ids.main });
  const end = await withNamespace(store, { namespace: "end", storeId: ids.end });
  return { main, end, none: inHand(store, { namespace: "none", storeId: ids.none }) };
}

describe.each(STORES.slice(1))("the %s store and the memory store", (_, open) => {
  test(`both stores return the same in ${COURSES} courses of ${PLAYS} plays`, async () => {
    const outcomes = new Set<unknown>();
    const idFrom = (firstRun: number) => storeIdFrom(firstRun, { initializedAtMs: MADE_AT_MS, rate: 16 });
    const property = fc.asyncProperty(fc.array(plays, { minLength: PLAYS, maxLength: PLAYS }), async (course) => {
      const both = [await openMemory(), await open()] as const;
      try {
        const ids = { main: idFrom(1), end: idFrom(RUN_MAX - 200), none: idFrom(9) };
        const [one, other] = [await madeOn(both[0].store, ids), await madeOn(both[1].store, ids)];
        for (const [index, play] of course.entries()) {
          const expected = await outcomeOf(play, both[0].store, one);
          const before = () =>
            course
              .slice(0, index + 1)
              .map(([what]) => what)
              .join("\n");
          expect(await outcomeOf(play, both[1].store, other), before()).toEqual(expected);
          outcomes.add((expected as { code?: unknown } | null)?.code);
          if (play[0].startsWith("trim")) outcomes.add(`trim ${expected}`);
        }
      } finally {
        for (const { remove } of both) await remove();
      }
    });
    await fc.assert(property, { seed: inject("seed"), numRuns: COURSES, endOnFailure: true });
    // The one course of a mutation run may not come to all of them.
    if (COURSES < COURSES_WITH_ALL) return;
    const all = ["holder_mismatch", "namespace_not_found", "run_not_leased", "trim true", "trim false"];
    expect([...outcomes]).toEqual(expect.arrayContaining(all));
  });
});
