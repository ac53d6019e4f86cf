/**
 * The definition of a store: what every adapter of the port must do, with its reasons. A store of your own passes this suite
 * or is none. Here: namespaces, leases, the ledger, reports, the retention; the steps of the guard are in step-contract.ts,
 * what a change rests on and who comes first in apply-contract.ts.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { type LedgerEntry, ledgerEntrySchema } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import { EPS_MS, GAP_MS } from "../src/guard/clocks.js";
import { FORKED_SEAL, NO_SEAL, PHASES } from "../src/guard/record.js";
import type { ReportCommand } from "../src/ledger/ledger-changes.js";
import { recordReport } from "../src/ledger/ledger-changes.js";
import { findLease, firstLeaseSince } from "../src/ledger/read-ledger.js";
import type { LeaseQuery, LedgerTrim, Store } from "../src/stores/store.js";
import { describeApply } from "./apply-contract.js";
import {
  commandsFor,
  holder,
  LEASE_NONCE,
  NAMESPACE,
  PROOF_KEY,
  reportCommand,
  storeIdFrom,
} from "./commands-for-test.js";
import { describeSteps } from "./step-contract.js";
import { stepOn } from "./steps-for-test.js";
import { inHand, ledgerOf, opened as openedForTest, type StoreInHand, withNamespace } from "./store-in-hand.js";

/** What a test asks of a store that it opens. */
export interface OpenOptions {
  /** The coordinator's clock; a store within the process has no other. */
  readonly now?: () => number;
}

/** A store that one test has for itself. */
export interface StoreForTest {
  readonly store: Store;
  /** Closes the store and opens it again. */
  reopen(): Promise<Store>;
  /** Closes it, and removes what it holds. */
  remove(): Promise<void>;
}

/** Opens an empty store. */
export type OpenForTest = (options?: OpenOptions) => Promise<StoreForTest>;

/** What is not the same for all stores. */
export interface StoreTraits {
  /** Whether it outlives its process. */
  readonly remembers: boolean;
  /** Whether it has no clock but the coordinator's. */
  readonly sharesClock: boolean;
}

/** Registers the tests of the contract for a store, with Vitest. `name`: for the title, as in "the NAME store". */
export function describeStoreContract(name: string, open: OpenForTest, traits: StoreTraits): void {
  describe(`the ${name} store`, () => {
    const opened = (options: OpenOptions = {}) => openedForTest(open, options);

    async function storeFrom(firstRun = 1, options: OpenOptions = {}): Promise<StoreInHand> {
      const { store } = await opened(options);
      return withNamespace(store, { storeId: storeIdFrom(firstRun), ...options });
    }

    describe("namespaces", () => {
      test("a namespace is made once, with the high-water mark right below the first run", async () => {
        const { store } = await opened();
        const storeId = storeIdFrom(100);
        const before = Date.now();
        const { after } = await stepOn(store, NAMESPACE, commandsFor(storeId).init({ nodeCount: 1 }));
        const record = await store.readNamespace(NAMESPACE);
        expect(record).toEqual({
          namespace: NAMESPACE,
          storeId,
          version: 0,
          firstVersion: 0,
          firstRun: 100,
          highWaterMark: 99,
          changedAtMs: after.changedAtMs,
          generation: 0,
          phase: 0,
          seal: "-",
          nodeCount: 1,
          proofKey: PROOF_KEY,
        });
        expect(after).toMatchObject({ storeId, version: 0, highWaterMark: 99, generation: 0, nodeCount: 1 });
        expect(after.changedAtMs).toBeGreaterThanOrEqual(before);
      });

      test("a namespace is never made again, not even with the same id, and the rejection changes nothing", async () => {
        const { store, storeId, lease } = await storeFrom();
        await lease({ runCount: 5 });
        const before = await store.readNamespace(NAMESPACE);
        for (const id of [storeId, storeIdFrom(1)]) {
          await expect(stepOn(store, NAMESPACE, commandsFor(id).init())).rejects.toMatchObject({
            code: "namespace_exists",
          });
        }
        expect(await store.readNamespace(NAMESPACE)).toEqual(before);
        expect((await lease()).firstRun).toBe(6);
      });

      test("a missing namespace fails every operation with the command that makes it", async () => {
        const { store, commands } = await storeFrom();
        const operations = [
          () => store.readNamespace("other"),
          () => stepOn(store, "other", commands.lease()),
          () => stepOn(store, "other", commands.heartbeat()),
          () => stepOn(store, "other", commands.claim(0)),
          () => stepOn(store, "other", commands.confirm(0)),
          () => stepOn(store, "other", commands.seal("moved")),
          () => stepOn(store, "other", commands.advance(0)),
          () => recordReport(store, "other", 1, reportCommand()),
        ];
        for (const operation of operations) {
          await expect(operation()).rejects.toMatchObject({
            code: "namespace_not_found",
            message: expect.stringContaining("callnumber init --store STORE_URL --namespace other"),
          });
        }
        expect(await store.leases("other", { direction: "newest_first", limit: 10 })).toEqual([]);
        expect(await firstLeaseSince(store, "other", 0)).toBeUndefined();
      });

      test("each namespace has its own runs, and the list has their names in order", async () => {
        const { store, lease } = await storeFrom();
        const other = await withNamespace(store, { storeId: storeIdFrom(7), namespace: "a" });
        await lease({ runCount: 3 });
        expect((await other.lease()).firstRun).toBe(7);
        expect((await lease()).firstRun).toBe(4);
        expect(await findLease(store, "a", 3)).toBeUndefined();
        expect(await store.listNamespaces()).toEqual(["a", "main"]);
      });

      test("an empty store lists none", async () => {
        const { store } = await opened();
        expect(await store.listNamespaces()).toEqual([]);
      });
    });

    describe("leases", () => {
      test("leases are contiguous, rise without a gap, and begin at the first run", async () => {
        const { lease, read } = await storeFrom(42);
        const first = await lease({ runCount: 3 });
        const second = await lease({ runCount: 64 });
        const third = await lease();
        expect([first, second, third].map(({ firstRun, runCount }) => [firstRun, runCount])).toEqual([
          [42, 3],
          [45, 64],
          [109, 1],
        ]);
        expect(first.version).toBe(0);
        expect((await read()).highWaterMark).toBe(109);
      });

      test("leases keep the id of the token of their request, where one was given", async () => {
        const { store, lease } = await storeFrom();
        for (const tokenId of ["01234567", undefined, "89abcdef", "01234567"]) await lease({ tokenId });
        const leases = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 10 });
        expect(leases.map((entry) => entry.tokenId)).toEqual(["01234567", undefined, "89abcdef", "01234567"]);
        expect(leases.map((entry) => "tokenId" in entry)).toEqual([true, false, true, true]);
      });

      test("concurrent leases never share a run", async () => {
        const { lease } = await storeFrom();
        const sizes = Array.from({ length: 200 }, (_, index) => (index % 7) + 1);
        const granted = await Promise.all(sizes.map((runCount) => lease({ runCount })));
        const runs = granted.flatMap(({ firstRun, runCount }) =>
          Array.from({ length: runCount }, (_, offset) => firstRun + offset),
        );
        const sum = sizes.reduce((total, size) => total + size, 0);
        expect(runs.sort((a, b) => a - b)).toEqual(Array.from({ length: sum }, (_, index) => index + 1));
      });

      test("concurrent leases are each decided and written as if they had come one after the other", async () => {
        const { store, step, lease, commands, read } = await storeFrom();
        const other = { name: "other", host: "h", pid: 1, labels: {} };
        const outcomes = await Promise.allSettled([
          lease({ runCount: 3 }),
          lease({ floor: 4 }),
          lease({ floor: 3, provenRun: 3, holder: other, leaseNonce: "nonce-of-the-other" }),
          lease({ provenRun: 5 }),
          lease({ generationMin: 1 }),
          lease({ runCount: 64, holder: other }),
        ]);
        expect(outcomes).toMatchObject([
          { value: { firstRun: 1, runCount: 3 } },
          { reason: { reason: "rolled_back" } },
          { value: { firstRun: 4, runCount: 1 } },
          { reason: { code: "store_forked" } },
          { reason: { reason: "generation_stale" } },
          { value: { firstRun: 5, runCount: 64 } },
        ]);
        expect((await read()).highWaterMark).toBe(68);
        const entries = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
        expect(entries.map(({ firstRun, runCount, holder }) => [firstRun, runCount, holder])).toEqual([
          [5, 64, other],
          [4, 1, other],
          [1, 3, holder],
        ]);
        // Each under the nonce of its own request.
        await recordReport(store, NAMESPACE, 4, reportCommand({ nonce: "nonce-of-the-other" }));
        await expect(
          recordReport(store, NAMESPACE, 5, reportCommand({ nonce: "nonce-of-the-other" })),
        ).rejects.toThrow();
        // Each response has the mark of its own step.
        const steps = [1, 5, 2].map((runCount) => commands.lease({ floor: 68, runCount }));
        const taken = await Promise.all(steps.map(step));
        expect(taken.map(({ after }) => after.highWaterMark)).toEqual([69, 74, 76]);
      });

      test("concurrent leases keep their order with other steps", async () => {
        const { step, lease, commands } = await storeFrom();
        const outcomes = await Promise.allSettled([
          lease({ runCount: 2 }),
          lease(),
          step(commands.claim(0)),
          lease(),
          step(commands.heartbeat()),
        ]);
        expect(outcomes).toMatchObject([
          { value: { firstRun: 1 } },
          { value: { firstRun: 3 } },
          { value: { after: { highWaterMark: 3, generation: 1 } } },
          { reason: { reason: "claimed" } },
          { reason: { reason: "claimed" } },
        ]);
      });

      test("concurrent leases get what is left of the run space, each from the mark of the one before", async () => {
        const { store, lease, read } = await storeFrom(RUN_MAX - 9);
        const outcomes = await Promise.allSettled([3, 4, 64, 1, 64].map((runCount) => lease({ runCount })));
        expect(outcomes).toMatchObject([
          { value: { firstRun: RUN_MAX - 9, runCount: 3 } },
          { value: { firstRun: RUN_MAX - 6, runCount: 4 } },
          { value: { firstRun: RUN_MAX - 2, runCount: 3 } },
          { reason: { code: "run_space_exhausted" } },
          { reason: { code: "run_space_exhausted" } },
        ]);
        expect((await read()).highWaterMark).toBe(RUN_MAX);
        expect(await findLease(store, NAMESPACE, RUN_MAX)).toMatchObject({ firstRun: RUN_MAX - 2, runCount: 3 });
      });

      test("concurrent leases stop at the run ceiling", async () => {
        const { store } = await opened();
        // At first the ceiling is at run 4, and then rises by one a second.
        const storeId = storeIdFrom(1, { initializedAtMs: Date.now() + 65_532_500, rate: 1 });
        const { lease, read } = await withNamespace(store, { storeId });
        const outcomes = await Promise.allSettled(Array.from({ length: 70 }, () => lease({ runCount: 64 })));
        const granted = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
        expect(granted.map(({ firstRun, runCount }) => [firstRun, runCount])).toEqual(
          granted.map((_, index) => [index + 1, 1]),
        );
        expect(granted.length).toBeGreaterThanOrEqual(4);
        expect(granted.length).toBeLessThan(70);
        for (const refused of outcomes.slice(granted.length)) {
          expect(refused).toMatchObject({ reason: { code: "run_ceiling_reached", retryAfterMs: expect.any(Number) } });
        }
        expect((await read()).highWaterMark).toBe(granted.length);
      });

      test.each([
        ["are cut short at the end of the run space", RUN_MAX - 4, [3, 64], [3, 2]],
        ["are not cut when they fit the run space to the last run", RUN_MAX - 4, [5], [5]],
        ["get the very last run alone", RUN_MAX, [2], [1]],
      ])("leases %s, then are rejected, and never wrap", async (_, begin, wanted, granted) => {
        const { store, lease, read } = await storeFrom(begin);
        let firstRun = begin;
        for (const [index, runCount] of granted.entries()) {
          expect(await lease({ runCount: wanted[index] as number })).toMatchObject({ firstRun, runCount });
          expect(await findLease(store, NAMESPACE, firstRun + runCount - 1)).toMatchObject({ firstRun, runCount });
          firstRun += runCount;
        }
        for (const runCount of [1, 64]) {
          await expect(lease({ runCount })).rejects.toMatchObject({ code: "run_space_exhausted" });
        }
        expect((await read()).highWaterMark).toBe(RUN_MAX);
      });

      test("leases have times that never go back, even when a clock does", async () => {
        let offsetMs = EPS_MS / 2;
        const { lease, read } = await storeFrom(1, { now: () => Date.now() + offsetMs });
        const before = Date.now();
        const times: number[] = [];
        for (let count = 0; count < 5; count++) {
          times.push((await lease()).leasedAtMs);
          if (count === 2) offsetMs = -EPS_MS / 4;
        }
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect(times[0]).toBeGreaterThanOrEqual(before);
        expect((await read()).changedAtMs).toBe(times[4]);
      });
    });

    describeSteps(opened, traits);
    describe("a change", () => describeApply(opened));

    describe("the retention", () => {
      test("a retention belongs to one namespace, and makes none", async () => {
        const { store } = await storeFrom();
        await withNamespace(store, { namespace: "other", storeId: storeIdFrom(1) });
        await store.setRetentionDays("other", 90);
        expect((await store.readRetention(NAMESPACE)).days).toBe(0);
        await store.setRetentionDays("unmade", 90);
        expect(await store.listNamespaces()).toEqual([NAMESPACE, "other"]);
      });

      test("a retention changes nothing that a step reads, and no step changes it", async () => {
        const { store, lease, read, skipAhead } = await storeFrom();
        await lease({ runCount: 3 });
        const before = await read();
        await store.setRetentionDays(NAMESPACE, 90);
        expect(await read()).toEqual(before);
        expect((await lease()).firstRun).toBe(4);
        await skipAhead();
        expect((await store.readRetention(NAMESPACE)).days).toBe(90);
      });

      test("a trim removes the oldest leases where all that it rests on is so, and else nothing", async () => {
        const { store, storeId, lease } = await storeFrom();
        for (let count = 0; count < 3; count++) await lease();
        const leases = await ledgerOf(store, NAMESPACE);
        const [first, second] = leases as [LedgerEntry, LedgerEntry];
        const record = { storeId, phase: PHASES.open, seal: NO_SEAL };
        const trim = { record, trimmedThrough: 0, through: 2, leasedAtMs: 7, leases: [first, second] };
        const progress = { run: 2, lastSequence: 1, state: "open", reportedAtMs: 7 } as const;
        const unlike: readonly Partial<LedgerTrim>[] = [
          { record: undefined },
          { record: { ...record, storeId: storeIdFrom(2) } },
          { record: { ...record, phase: PHASES.claimed } },
          { record: { ...record, seal: FORKED_SEAL } },
          { trimmedThrough: 1 },
          { leases: [first] },
          { leases: [second] },
          { leases: [first, { ...second, progress }] },
          { through: 3, leases },
        ];
        for (const other of unlike)
          expect(await store.trimLedger(NAMESPACE, { ...trim, ...other }), JSON.stringify(other)).toBe(false);
        expect(await ledgerOf(store, NAMESPACE)).toEqual(leases);
        expect(await store.readRetention(NAMESPACE)).toEqual({ days: 0, through: 0, leasedAtMs: 0 });
        expect(await store.trimLedger(NAMESPACE, trim)).toBe(true);
        expect(await store.trimLedger(NAMESPACE, trim)).toBe(false);
        expect(await ledgerOf(store, NAMESPACE)).toEqual(leases.slice(2));
        expect(await store.readRetention(NAMESPACE)).toEqual({ days: 0, through: 2, leasedAtMs: 7 });
      });
    });

    describe("the ledger", () => {
      test("the ledger has each lease with its whole holder, found by each of its runs", async () => {
        const { store, lease } = await storeFrom(10);
        const odd = { name: 'Ä "quoted" {brace} 書', host: "h\\n", pid: 0, labels: {} };
        const { leasedAtMs } = await lease({ runCount: 3, holder: odd, coordinator: "c-1" });
        await lease();
        const expected: LedgerEntry = {
          version: 0,
          firstRun: 10,
          runCount: 3,
          leasedAtMs,
          holder: odd,
          coordinator: "c-1",
          nonce: LEASE_NONCE,
          progress: null,
        };
        for (const run of [10, 11, 12]) expect(await findLease(store, NAMESPACE, run)).toEqual(expected);
        expect(await findLease(store, NAMESPACE, 13)).toMatchObject({ firstRun: 13, holder });
        for (const run of [0, 9, 14, RUN_MAX]) expect(await findLease(store, NAMESPACE, run)).toBeUndefined();
      });

      test("a holder of a lease is known by its name, and a name that no lease has had is not", async () => {
        const { store, lease } = await storeFrom();
        expect(await store.hasHolder(NAMESPACE, holder.name)).toBe(false);
        const names = Array.from({ length: 1_200 }, (_, index) => `importer-${index}`);
        const odd = 'Ä "quoted" {brace} 書';
        await Promise.all([...names, odd].map((name) => lease({ holder: { ...holder, name } })));
        for (const name of ["importer-0", "importer-501", "importer-1199", odd]) {
          expect(await store.hasHolder(NAMESPACE, name), name).toBe(true);
        }
        for (const name of ["importer", "importer-1200", "importer-%", holder.host, "1"]) {
          expect(await store.hasHolder(NAMESPACE, name), name).toBe(false);
        }
        expect(await store.hasHolder("other", "absent")).toBe(false);
      });

      test("the ledger is listed from a ledger id on, in either direction, up to a limit", async () => {
        const { store, lease } = await storeFrom();
        for (let count = 0; count < 5; count++) await lease({ runCount: 2 });
        const firstRunsOf = async (direction: LeaseQuery["direction"], limit: number, from?: number) =>
          (await store.leases(NAMESPACE, { from, direction, limit })).map(({ firstRun }) => firstRun);
        expect(await firstRunsOf("newest_first", 10)).toEqual([9, 7, 5, 3, 1]);
        expect(await firstRunsOf("newest_first", 2)).toEqual([9, 7]);
        expect(await firstRunsOf("newest_first", 2, 7)).toEqual([5, 3]);
        expect(await firstRunsOf("newest_first", 2, 8)).toEqual([7, 5]);
        expect(await firstRunsOf("newest_first", 10, 2)).toEqual([1]);
        for (const from of [1, 0, -1]) expect(await firstRunsOf("newest_first", 10, from)).toEqual([]);
        expect(await firstRunsOf("oldest_first", 10)).toEqual([1, 3, 5, 7, 9]);
        expect(await firstRunsOf("oldest_first", 2)).toEqual([1, 3]);
        expect(await firstRunsOf("oldest_first", 2, 6)).toEqual([5, 7]);
        expect(await firstRunsOf("oldest_first", 2, 7)).toEqual([7, 9]);
        expect(await firstRunsOf("oldest_first", 10, 11)).toEqual([]);
      });

      test("ledger entries have exactly the shape of the HTTP API: they are returned as they are", async () => {
        const { store, lease } = await storeFrom();
        for (let count = 0; count < 3; count++) await lease({ tokenId: count === 0 ? undefined : "aabbccdd" });
        await recordReport(store, NAMESPACE, 2, reportCommand());
        const listed = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
        const exported = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 10 });
        for (const entry of [...listed, ...exported]) expect(ledgerEntrySchema.parse(entry)).toEqual(entry);
        expect([listed.length, exported.length]).toEqual([3, 3]);
      });

      test("the ledger finds the first lease of a time or later", async () => {
        const { store, lease } = await storeFrom();
        expect(await firstLeaseSince(store, NAMESPACE, 0)).toBeUndefined();
        const times: number[] = [];
        for (let count = 0; count < 40; count++) {
          times.push((await lease({ runCount: (count % 3) + 1 })).leasedAtMs);
          if (count % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        }
        const newestFirst = await store.leases(NAMESPACE, { direction: "newest_first", limit: 100 });
        for (const timeMs of [0, ...times, ...times.map((time) => time + 1), times.at(-1)! + 60_000]) {
          const expected = newestFirst.findLast(({ leasedAtMs }) => leasedAtMs >= timeMs);
          expect(await firstLeaseSince(store, NAMESPACE, timeMs)).toEqual(expected);
        }
      });
    });

    test("leases are appended to a ledger without a record, after the newest lease that the caller knows", async () => {
      const { store, lease } = await storeFrom();
      for (let count = 0; count < 3; count++) await lease();
      const leases = await ledgerOf(store, NAMESPACE);
      expect(await store.appendLeases("other", 1, leases)).toBe(false);
      expect(await store.appendLeases("other", 0, leases.slice(0, 2))).toBe(true);
      expect(await store.appendLeases("other", 0, leases)).toBe(false);
      expect(await store.appendLeases("other", 2, leases.slice(2))).toBe(true);
      expect(await ledgerOf(store, "other")).toEqual(leases);
      const next = { ...(leases[2] as LedgerEntry), firstRun: 4 };
      expect(await store.appendLeases(NAMESPACE, 3, [next])).toBe(false);
      expect(await ledgerOf(store, NAMESPACE)).toEqual(leases);
    });

    describe("reports", () => {
      async function withLease(): Promise<StoreInHand> {
        const inHand = await storeFrom();
        await inHand.lease({ runCount: 4 });
        return inHand;
      }
      const progressOf = async (store: Store) => (await findLease(store, NAMESPACE, 1))?.progress;

      /** `RUN SEQUENCE STATE`; `-` for no sequence. */
      const reportIn = (text: string) => {
        const [run, sequence, state] = text.split(" ");
        return { run: Number(run), lastSequence: sequence === "-" ? null : Number(sequence), state };
      };

      test.each([
        ["the farthest run", "2 0 open, 3 16383 exhausted", "3 16383 exhausted"],
        ["that nothing was used", "1 - closed", "1 - closed"],
        ["the farthest, in whatever order they arrive", "3 100 open, 3 99 open, 2 16383 exhausted", "3 100 open"],
        ["that a lease is closed, however far it got", "3 100 open, 3 50 closed", "3 100 closed"],
        ["closed permanently", "3 50 closed, 4 7 open", "4 7 closed"],
        ["no number as less than the first", "1 - open, 1 0 open, 1 - open", "1 0 open"],
        ["the later of two that are equally far", "1 0 open, 1 0 exhausted", "1 0 exhausted"],
        ["the farthest that was discarded", "1 - discarded, 2 - discarded", "2 - discarded"],
        ["a holder's report over an earlier discard", "2 - discarded, 1 - open", "1 - open"],
        ["a holder's report over a later discard", "1 3 open, 4 - discarded", "1 3 open"],
      ])("reports keep %s", async (_, reports, progress) => {
        const { store } = await withLease();
        const before = Date.now();
        for (const { run, ...report } of reports.split(", ").map(reportIn)) {
          await recordReport(store, NAMESPACE, run, reportCommand(report as Partial<ReportCommand>));
        }
        const kept = await progressOf(store);
        expect(kept).toMatchObject(reportIn(progress));
        expect(kept?.reportedAtMs).toBeGreaterThanOrEqual(before);
      });

      test("reports are for one lease only", async () => {
        const { store, lease } = await withLease();
        for (let count = 0; count < 130; count++) await lease({ leaseNonce: `nonce-of-lease-${count}` });
        for (let count = 0; count < 130; count += 3) {
          const report = reportCommand({ nonce: `nonce-of-lease-${count}`, lastSequence: count });
          await recordReport(store, NAMESPACE, 5 + count, report);
        }
        const entries = await store.leases(NAMESPACE, { direction: "newest_first", limit: 500 });
        expect(entries).toHaveLength(131);
        for (const { firstRun, progress } of entries) {
          const count = firstRun - 5;
          const expected = count >= 0 && count % 3 === 0 ? { run: firstRun, lastSequence: count } : null;
          if (expected === null) expect(progress).toBeNull();
          else expect(progress).toMatchObject(expected);
        }
      });

      test("a report takes the place of the one that it was decided on, and of no other", async () => {
        const { store } = await withLease();
        const unreported = (await findLease(store, NAMESPACE, 1)) as LedgerEntry;
        const first = { run: 1, lastSequence: 5, state: "open", reportedAtMs: 1_790_000_000_001 } as const;
        const others = [
          { ...first, run: 2 },
          { ...first, lastSequence: 6 },
          { ...first, state: "closed" } as const,
          { ...first, reportedAtMs: 1_790_000_000_002 },
        ];
        expect(await store.setProgress(NAMESPACE, unreported, first)).toBe(true);
        expect(await store.setProgress(NAMESPACE, unreported, { ...first, run: 2 })).toBe(false);
        for (const progress of others)
          expect(await store.setProgress(NAMESPACE, { ...unreported, progress }, others[0]!)).toBe(false);
        expect(await progressOf(store)).toEqual(first);
        for (const [index, progress] of others.entries()) {
          const before = others[index - 1] ?? first;
          expect(await store.setProgress(NAMESPACE, { ...unreported, progress: before }, progress)).toBe(true);
          expect(await progressOf(store)).toEqual(progress);
        }
        const gone = { ...unreported, firstRun: 5 };
        expect(await store.setProgress(NAMESPACE, gone, first)).toBe(false);
        expect(await store.setProgress("other", unreported, first)).toBe(false);
      });

      test("a report by a clock that is years wrong has a time near the last write", async () => {
        const { store } = await withLease();
        const { changedAtMs } = await store.readNamespace(NAMESPACE);
        for (const [years, sequence] of [
          [-60, 1],
          [100, 2],
        ] as const) {
          const now = () => Date.now() + years * 365 * 24 * 3_600_000;
          await recordReport(store, NAMESPACE, 1, reportCommand({ lastSequence: sequence }), now);
          const { lastSequence, reportedAtMs = 0 } = (await progressOf(store)) ?? {};
          expect(lastSequence).toBe(sequence);
          expect(Math.abs(reportedAtMs - changedAtMs)).toBe(GAP_MS);
        }
      });

      test("a report with another nonce than the lease's is rejected, and changes nothing", async () => {
        const { store } = await withLease();
        await expect(
          recordReport(store, NAMESPACE, 1, reportCommand({ nonce: "nonce-of-another-lease" })),
        ).rejects.toMatchObject({
          code: "holder_mismatch",
        });
        expect(await progressOf(store)).toBeNull();
      });

      test("a report on a run that was never leased is rejected", async () => {
        const { store } = await withLease();
        for (const run of [0, 5, RUN_MAX]) {
          await expect(recordReport(store, NAMESPACE, run, reportCommand())).rejects.toMatchObject({
            code: "run_not_leased",
          });
        }
      });
    });

    if (traits.remembers) {
      test("a store has everything when it is closed and opened again, and leases above it", async () => {
        const { store, reopen } = await opened();
        const { storeId, lease } = await withNamespace(store, { storeId: storeIdFrom(5) });
        await lease({ runCount: 3 });
        await recordReport(store, NAMESPACE, 6, reportCommand({ state: "closed" }));
        await store.setRetentionDays(NAMESPACE, 90);
        const record = await store.readNamespace(NAMESPACE);
        const entry = await findLease(store, NAMESPACE, 6);
        const again = await reopen();
        expect(await again.readNamespace(NAMESPACE)).toEqual(record);
        expect(await findLease(again, NAMESPACE, 6)).toEqual(entry);
        expect((await again.readRetention(NAMESPACE)).days).toBe(90);
        expect(await leasedAbove(inHand(again, { storeId }), 7)).toBe(true);
      });
    }

    test("a store can be closed twice", async () => {
      const { store } = await opened();
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });
  });
}

/** A store that can't know whether it was rolled back while it was closed is recovered first. */
async function leasedAbove({ lease, skipAhead }: StoreInHand, mark: number): Promise<boolean> {
  try {
    return (await lease()).firstRun === mark + 1;
  } catch (error) {
    expect(error).toMatchObject({ reason: "epoch_changed" });
    return (await skipAhead()) > mark;
  }
}
