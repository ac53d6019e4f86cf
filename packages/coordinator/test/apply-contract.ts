/**
 * What every store must do with a change: write it where all that it rests on still is as it was found, and else nothing, both in one atomic
 * step. A part of the definition of a store (store-contract.ts). Here each thing that a change rests on, on both sides of its limit, and what
 * several callers do at the same time; apply.test.ts and apply-stale.test.ts draw them at random.
 * Guarantees: G1 (docs/guarantees.md).
 */
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import type { RisingMark } from "../src/guard/checks.js";
import { NO_SEAL, PHASES, RECORD_FIELDS } from "../src/guard/record.js";
import { type Applied, type Expected, isApplied } from "../src/guard/step-store.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE } from "./commands-for-test.js";
import { preparedFor } from "./steps-for-test.js";
import { inHand, ledgerOf, withNamespace } from "./store-in-hand.js";

export const MARK = 5;
const RUNS = 3;
const TURNS = 10;
const HOUR_MS = 3_600_000;
const LATE = "nonce-of-the-late-one";
const CALLERS = [0, 1, 2, 3] as const;

const nonceOf = (caller: number) => `nonce-of-caller-${caller}`;

/** A lease of three runs above run 5, as it is sent: without the limits of a decision. */
export async function sentLease(store: Store) {
  const { lease, commands } = await withNamespace(store);
  await lease({ runCount: MARK });
  const [asked, change] = await preparedFor(store, NAMESPACE, commands.lease({ runCount: RUNS }));
  const rising: RisingMark = { ...(asked.rising as RisingMark), ageMinMs: -HOUR_MS, ageMaxMs: HOUR_MS, markIdMin: 0 };
  const expected: Expected = { ...asked, timeMinMs: 0, timeMaxMs: 1e14, rising };
  const apply = async (own: Partial<Expected>, ownRising: Partial<RisingMark> = {}) => {
    const before = await store.read(NAMESPACE);
    const answer = await store.apply(NAMESPACE, { ...expected, ...own, rising: { ...rising, ...ownRising } }, change);
    const { keys } = await store.read(NAMESPACE);
    if (isApplied(answer)) expect(keys.fields["c"]).toBe(String(Number(before.keys.fields["c"]) + RUNS));
    else expect([answer.keys, keys]).toEqual([before.keys, before.keys]);
    return isApplied(answer);
  };
  return { expected, apply };
}

type Limit = readonly [what: string, fits: Partial<RisingMark>, isLess: Partial<RisingMark>];

const LIMITS: readonly Limit[] = [
  ["the least mark", { markIdMin: MARK }, { markIdMin: MARK + 1 }],
  ["the greatest mark", { highWaterMarkMax: MARK + RUNS }, { highWaterMarkMax: MARK + RUNS - 1 }],
  ["the least age", { ageMinMs: -60_000 }, { ageMinMs: 60_000 }],
  ["the greatest age", { ageMaxMs: 60_000 }, { ageMaxMs: -60_000 }],
];

export function describeApply(open: () => Promise<{ readonly store: Store }>): void {
  test.each(LIMITS)("a lease that does not keep %s is not written", async (_, fits, isLess) => {
    const { apply } = await sentLease((await open()).store);
    expect(await apply({}, isLess)).toBe(false);
    expect(await apply({}, fits)).toBe(true);
  });

  test("a lease for another server, time or place is not written", async () => {
    const { apply, expected } = await sentLease((await open()).store);
    const { keys, server } = expected.found;
    const now = Date.now();
    const others: Partial<Expected>[] = [
      { timeMinMs: now + 60_000 },
      { timeMaxMs: now - 60_000 },
      { replicasMax: -1 },
      { found: { keys, server: { ...server, role: "slave" } } },
      { found: { keys, server: { ...server, epoch: `${server.epoch}0` } } },
      { found: { keys: { ...keys, expires: true }, server } },
      { found: { keys: { ...keys, record: "none" }, server } },
      { found: { keys: { ...keys, ledger: "none" }, server } },
      { found: { keys: { ...keys, holders: "none" }, server } },
    ];
    for (const other of others) expect(await apply(other), JSON.stringify(other)).toBe(false);
    for (const name of ["v", "ns", "sid", "ver", "ep", "g", "p", "n", "rk", "ph"]) {
      const fields = { ...keys.fields, [name]: `${keys.fields[name]}0` };
      expect(await apply({ found: { keys: { ...keys, fields }, server } }), name).toBe(false);
    }
    expect(await apply({ timeMinMs: now - 60_000, timeMaxMs: now + 600_000, replicasMax: 0 })).toBe(true);
  });

  test("a confirmation of another record is not written", async () => {
    const { store, lease, commands, step, read } = await withNamespace((await open()).store);
    await lease({ runCount: MARK });
    await step(commands.claim(0));
    const [expected, change] = await preparedFor(store, NAMESPACE, commands.confirm(1));
    const expectFound = async (own: Partial<Expected["found"]["keys"]>) => {
      const { keys } = await store.read(NAMESPACE);
      const found = { ...expected.found, keys: { ...expected.found.keys, ...own } };
      const answer = await store.apply(NAMESPACE, { ...expected, found }, change);
      expect(answer, JSON.stringify(own)).toMatchObject({ keys });
      expect((await store.read(NAMESPACE)).keys).toEqual(keys);
    };
    const { fields } = expected.found.keys;
    for (const name of [...RECORD_FIELDS, "k"] as const) {
      // Redis compares the fingerprint alone.
      await expectFound({ fields: { ...fields, [name]: `${fields[name]}0` }, fingerprint: "0" });
    }
    await expectFound({ ledgerMark: MARK - 1 });
    await expectFound({ ledgerMark: MARK + 1 });
    await step(commands.confirm(1));
    await expectFound({});
    expect((await read()).phase).toBe(PHASES.open);
  });

  test("a lease goes above those that others have made since it was decided", async () => {
    const { store, commands, lease, read } = await withNamespace((await open()).store);
    await lease();
    const [expected, change] = await preparedFor(
      store,
      NAMESPACE,
      commands.lease({ runCount: RUNS, leaseNonce: LATE }),
    );
    await lease({ runCount: MARK });
    const answer = await store.apply(NAMESPACE, expected, change);
    const { highWaterMark, changedAtMs } = await read();
    expect(answer).toMatchObject({ highWaterMark: 1 + MARK + RUNS, changedAtMs });
    expect(highWaterMark).toBe(1 + MARK + RUNS);
    expect(await ledgerOf(store)).toMatchObject([
      { firstRun: 1 },
      { firstRun: 2, runCount: MARK },
      { firstRun: MARK + 2, runCount: RUNS, nonce: LATE, leasedAtMs: changedAtMs },
    ]);
  });

  describe("of callers at the same time", () => {
    test("each lease that is written has runs of its own", async () => {
      const { store, commands, lease } = await withNamespace((await open()).store);
      await lease();
      const sent = await Promise.all(
        CALLERS.map((at) => preparedFor(store, NAMESPACE, commands.lease({ runCount: RUNS, leaseNonce: nonceOf(at) }))),
      );
      const answers = await Promise.all(sent.map(([expected, change]) => store.apply(NAMESPACE, expected, change)));
      const marks = answers.filter(isApplied).map(({ highWaterMark }) => highWaterMark);
      // A store that only compares and sets may write one of them.
      expect(marks.length).toBeGreaterThan(0);
      expect(marks.sort((one, other) => one - other)).toEqual(marks.map((_, index) => 1 + RUNS * (index + 1)));
      expect((await ledgerOf(store)).map(lastLedgerIdOf)).toEqual([1, ...marks]);
    });

    test("coordinators lease no run twice, and the ledger has what each was answered", async () => {
      const { store, storeId } = await withNamespace((await open()).store);
      const leaseInTurn = async (at: number) => {
        const { lease } = inHand(store, { storeId });
        const leases: string[] = [];
        for (let turn = 0; turn < TURNS; turn++) {
          const { firstRun, runCount } = await lease({ runCount: (turn % RUNS) + 1, leaseNonce: nonceOf(at) });
          leases.push(`${firstRun} ${runCount} ${nonceOf(at)}`);
        }
        return leases;
      };
      const leases = (await Promise.all(CALLERS.map(leaseInTurn))).flat();
      const entries = (await ledgerOf(store)).map(
        ({ firstRun, runCount, nonce }) => `${firstRun} ${runCount} ${nonce}`,
      );
      expect(leases.sort()).toEqual(entries.sort());
    });

    test("one alone completes a recovery", async () => {
      const { store, commands, step, read } = await withNamespace((await open()).store);
      await step(commands.claim(0));
      const sent = await Promise.all(CALLERS.map(() => preparedFor(store, NAMESPACE, commands.confirm(1))));
      const answers = await Promise.all(sent.map(([expected, change]) => store.apply(NAMESPACE, expected, change)));
      const [applied, ...others] = answers.filter(isApplied) as [Applied, ...Applied[]];
      expect(others).toEqual([]);
      expect((await read()).highWaterMark).toBe(applied.highWaterMark);
    });

    test("one alone replaces a report, appends to a ledger, and trims it", async () => {
      const { store, storeId, lease } = await withNamespace((await open()).store);
      for (let count = 0; count < 2; count++) await lease();
      const [first, second] = (await ledgerOf(store)) as [LedgerEntry, LedgerEntry];
      const wins = async (act: (at: number) => Promise<boolean>) => {
        const answers = await Promise.all(CALLERS.map(act));
        expect(answers.filter((isDone) => isDone)).toEqual([true]);
        return answers.indexOf(true);
      };
      const progressOf = (lastSequence: number) => ({ run: 1, lastSequence, state: "open", reportedAtMs: 7 }) as const;
      const reporter = await wins((at) => store.setProgress(NAMESPACE, first, progressOf(at)));
      const reported = { ...first, progress: progressOf(reporter) };
      expect(await ledgerOf(store)).toEqual([reported, second]);
      await wins((at) => store.appendLeases("other", 0, [{ ...first, nonce: nonceOf(at) }]));
      expect(await ledgerOf(store, "other")).toHaveLength(1);
      const record = { storeId, phase: PHASES.open, seal: NO_SEAL };
      const trim = { record, trimmedThrough: 0, through: 1, leases: [reported] };
      const trimmer = await wins((at) => store.trimLedger(NAMESPACE, { ...trim, leasedAtMs: at }));
      expect(await ledgerOf(store)).toEqual([second]);
      expect(await store.readRetention(NAMESPACE)).toEqual({ days: 0, through: 1, leasedAtMs: trimmer });
    });
  });
}
