/**
 * The definition of a store: what every adapter of the port must do, with its reasons. A store of your own passes this suite
 * or is none. Here: namespaces, leases, the ledger, reports; the other steps of the guard stand in step-contract.ts.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { ledgerEntrySchema } from "@callnumber/protocol/schemas";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { afterEach, describe, expect, test } from "vitest";
import { type Bounds, EPS_MS } from "../src/guard/bounds.js";
import { findLease, firstLeaseSince } from "../src/ledger/read-ledger.js";
import type { LeaseQuery, Store } from "../src/stores/store.js";
import { describeAdvance } from "./advance-contract.js";
import {
  commandsFor,
  holder,
  LEASE_NONCE,
  NAMESPACE,
  RECEIPT_KEY,
  reportCommand,
  storeIdFrom,
} from "./commands-for-test.js";
import { describeLabels } from "./labels-contract.js";
import { describeSteps } from "./step-contract.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

export interface OpenOptions {
  /** The coordinator's clock; a store within the process has no other. */
  readonly now?: () => number;
  readonly bounds?: Bounds;
}

interface StoreForTest {
  readonly store: Store;
  /** Closes the store and opens it again. */
  reopen(): Promise<Store>;
  remove(): Promise<void>;
}

/** Opens an empty store. */
export type OpenForTest = (options?: OpenOptions) => Promise<StoreForTest>;

export interface StoreTraits {
  /** Whether it outlives its process. */
  readonly remembers: boolean;
  /** Whether it has no clock but the coordinator's. */
  readonly sharesClock: boolean;
}

export function describeStoreContract(name: string, open: OpenForTest, traits: StoreTraits): void {
  describe(`the ${name} store`, () => {
    const toRemove: (() => Promise<void>)[] = [];

    async function opened(options: OpenOptions = {}) {
      const { store, reopen, remove } = await open(options);
      toRemove.push(remove);
      return { store, reopen };
    }

    async function storeFrom(firstRun = 1, options: OpenOptions = {}): Promise<StoreInHand> {
      const { store } = await opened(options);
      return withNamespace(store, { storeId: storeIdFrom(firstRun) });
    }

    afterEach(async () => {
      for (const remove of toRemove.splice(0)) await remove();
    });

    describe("namespaces", () => {
      test("are made once, with the mark right below the first run", async () => {
        const { store } = await opened();
        const storeId = storeIdFrom(100);
        const before = Date.now();
        const { after } = await store.step(NAMESPACE, commandsFor(storeId).init({ nodeCount: 1 }));
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
          receiptKey: RECEIPT_KEY,
        });
        expect(after).toMatchObject({ storeId, version: 0, highWaterMark: 99, generation: 0, nodeCount: 1 });
        expect(after.changedAtMs).toBeGreaterThanOrEqual(before);
      });

      test("are never made again, not even with the same id, and the refusal changes nothing", async () => {
        const { store, storeId, lease } = await storeFrom();
        await lease({ runCount: 5 });
        const before = await store.readNamespace(NAMESPACE);
        for (const id of [storeId, storeIdFrom(1)]) {
          await expect(store.step(NAMESPACE, commandsFor(id).init())).rejects.toMatchObject({
            code: "namespace_exists",
          });
        }
        expect(await store.readNamespace(NAMESPACE)).toEqual(before);
        expect((await lease()).firstRun).toBe(6);
      });

      test("that were not made are refused by every operation, with the command that makes them", async () => {
        const { store, commands } = await storeFrom();
        const operations = [
          () => store.readNamespace("other"),
          () => store.step("other", commands.lease()),
          () => store.step("other", commands.heartbeat()),
          () => store.step("other", commands.claim(0)),
          () => store.step("other", commands.confirm(0)),
          () => store.step("other", commands.seal("moved")),
          () => store.step("other", commands.advance(0)),
          () => store.report("other", 1, reportCommand()),
          () => findLease(store, "other", 1),
          () => store.leases("other", { direction: "newest_first", limit: 10 }),
          () => firstLeaseSince(store, "other", 0),
        ];
        for (const operation of operations) {
          await expect(operation()).rejects.toMatchObject({
            code: "namespace_not_found",
            message: expect.stringContaining("callnumber init --store STORE_URL --namespace other"),
          });
        }
      });

      test("are separate spaces: each has its own runs, and the list names them in order", async () => {
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
      test("are contiguous, rise without a gap, and begin at the first run", async () => {
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

      test("keep by which token they were asked for, where one was", async () => {
        const { store, lease } = await storeFrom();
        for (const tokenId of ["01234567", undefined, "89abcdef", "01234567"]) await lease({ tokenId });
        const leases = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 10 });
        expect(leases.map((entry) => entry.tokenId)).toEqual(["01234567", undefined, "89abcdef", "01234567"]);
        expect(leases.map((entry) => "tokenId" in entry)).toEqual([true, false, true, true]);
      });

      test("asked for at the same time never share a run", async () => {
        const { lease } = await storeFrom();
        const sizes = Array.from({ length: 200 }, (_, index) => (index % 7) + 1);
        const granted = await Promise.all(sizes.map((runCount) => lease({ runCount })));
        const runs = granted.flatMap(({ firstRun, runCount }) =>
          Array.from({ length: runCount }, (_, offset) => firstRun + offset),
        );
        const sum = sizes.reduce((total, size) => total + size, 0);
        expect(runs.sort((a, b) => a - b)).toEqual(Array.from({ length: sum }, (_, index) => index + 1));
      });

      test("asked for at the same moment are each judged and written as if they had come one after the other", async () => {
        const { store, lease, commands, read } = await storeFrom();
        const other = { name: "other", host: "h", pid: 1, labels: {} };
        const outcomes = await Promise.allSettled([
          lease({ runCount: 3 }),
          lease({ floor: 4 }),
          lease({ floor: 3, held: 3, holder: other, leaseNonce: "nonce-of-the-other" }),
          lease({ held: 5 }),
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
        await store.report(NAMESPACE, 4, reportCommand({ nonce: "nonce-of-the-other" }));
        await expect(store.report(NAMESPACE, 5, reportCommand({ nonce: "nonce-of-the-other" }))).rejects.toThrow();
        const { after } = await store.step(NAMESPACE, commands.lease({ floor: 68 }));
        expect(after.highWaterMark).toBe(69);
      });

      test("asked for at the same moment bear each its own nonce and its own mark", async () => {
        const { store, commands } = await storeFrom();
        const asked = [1, 5, 2].map((runCount) => commands.lease({ runCount }));
        const outcomes = await Promise.all(asked.map((command) => store.step(NAMESPACE, command)));
        for (const [index, { after, check, runCount }] of outcomes.entries()) {
          const { nonce } = asked[index]!;
          expect([after.nonce, check.nonce, runCount]).toEqual([nonce, nonce, asked[index]!.runCount]);
        }
        expect(outcomes.map(({ after }) => after.highWaterMark)).toEqual([1, 6, 8]);
      });

      test("asked for at the same moment as another step keep their place before or behind it", async () => {
        const { store, lease, commands } = await storeFrom();
        const outcomes = await Promise.allSettled([
          lease({ runCount: 2 }),
          lease(),
          store.step(NAMESPACE, commands.claim(0)),
          lease(),
          store.step(NAMESPACE, commands.heartbeat()),
        ]);
        expect(outcomes).toMatchObject([
          { value: { firstRun: 1 } },
          { value: { firstRun: 3 } },
          { value: { after: { highWaterMark: 3, generation: 1 } } },
          { reason: { reason: "claimed" } },
          { reason: { reason: "claimed" } },
        ]);
      });

      test("asked for at the same moment get what is left of the run space, each from the mark of the one before", async () => {
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

      test("asked for at the same moment stop at the clock line, whoever comes after the last run below it", async () => {
        const { store } = await opened();
        // At first the line is at run 4, and then rises by one a second.
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

      test("at the end of the run space are cut short, then refused, and never wrap", async () => {
        const { store, lease, read } = await storeFrom(RUN_MAX - 4);
        expect(await lease({ runCount: 3 })).toMatchObject({ firstRun: RUN_MAX - 4, runCount: 3 });
        expect(await lease({ runCount: 64 })).toMatchObject({ firstRun: RUN_MAX - 1, runCount: 2 });
        for (const runCount of [1, 64]) {
          await expect(lease({ runCount })).rejects.toMatchObject({ code: "run_space_exhausted" });
        }
        expect((await read()).highWaterMark).toBe(RUN_MAX);
        expect(await findLease(store, NAMESPACE, RUN_MAX)).toMatchObject({ firstRun: RUN_MAX - 1, runCount: 2 });
      });

      test("that fit the run space to the last run are not cut", async () => {
        const { lease } = await storeFrom(RUN_MAX - 4);
        expect(await lease({ runCount: 5 })).toMatchObject({ firstRun: RUN_MAX - 4, runCount: 5 });
        await expect(lease()).rejects.toMatchObject({ code: "run_space_exhausted" });
      });

      test("can take the very last run alone", async () => {
        const { lease } = await storeFrom(RUN_MAX);
        expect(await lease({ runCount: 2 })).toMatchObject({ firstRun: RUN_MAX, runCount: 1 });
        await expect(lease()).rejects.toMatchObject({ code: "run_space_exhausted" });
      });

      test("bear times that never go back", async () => {
        const { lease, read } = await storeFrom();
        const before = Date.now();
        const times: number[] = [];
        for (let count = 0; count < 5; count++) times.push((await lease()).leasedAtMs);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect(times[0]).toBeGreaterThanOrEqual(before);
        expect((await read()).changedAtMs).toBe(times[4]);
      });

      test("bear times that never go back, even when a clock does", async () => {
        let offsetMs = EPS_MS / 2;
        const { lease } = await storeFrom(1, { now: () => Date.now() + offsetMs });
        const ahead = await lease();
        offsetMs = -EPS_MS / 4;
        const behind = await lease();
        expect(behind.leasedAtMs).toBeGreaterThanOrEqual(ahead.leasedAtMs);
        expect(behind.firstRun).toBe(2);
      });
    });

    describeSteps(opened, traits);
    describeLabels(opened, traits);
    describeAdvance(opened);

    describe("the ledger", () => {
      test("holds each lease with all that was said of its holder, found by each of its runs", async () => {
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

      test("is listed from a ledger id on, in either direction, up to a limit", async () => {
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

      test("has entries of the wire's shape and nothing beside it: they are answered as they are", async () => {
        const { store, lease } = await storeFrom();
        for (let count = 0; count < 3; count++) await lease({ tokenId: count === 0 ? undefined : "aabbccdd" });
        await store.report(NAMESPACE, 2, reportCommand());
        const listed = await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 });
        const exported = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 10 });
        for (const entry of [...listed, ...exported]) expect(ledgerEntrySchema.parse(entry)).toEqual(entry);
        expect([listed.length, exported.length]).toEqual([3, 3]);
      });

      test("finds the first lease of a time or later", async () => {
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

    describe("reports", () => {
      async function withLease(): Promise<StoreInHand> {
        const inHand = await storeFrom();
        await inHand.lease({ runCount: 4 });
        return inHand;
      }
      const progressOf = async (store: Store) => (await findLease(store, NAMESPACE, 1))?.progress;

      test("tell how far a lease got", async () => {
        const { store } = await withLease();
        const before = Date.now();
        await store.report(NAMESPACE, 2, reportCommand({ lastSequence: 0 }));
        expect(await progressOf(store)).toMatchObject({ run: 2, lastSequence: 0, state: "open" });
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 16_383, state: "exhausted" }));
        const told = await progressOf(store);
        expect(told).toMatchObject({ run: 3, lastSequence: 16_383, state: "exhausted" });
        expect(told?.reportedAtMs).toBeGreaterThanOrEqual(before);
      });

      test("may say that nothing was used", async () => {
        const { store } = await withLease();
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: null, state: "closed" }));
        expect(await progressOf(store)).toMatchObject({ run: 1, lastSequence: null, state: "closed" });
      });

      test("never take progress back, in whatever order they arrive, and closed stays closed", async () => {
        const { store } = await withLease();
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 100 }));
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 99 }));
        await store.report(NAMESPACE, 2, reportCommand({ lastSequence: 16_383, state: "exhausted" }));
        expect(await progressOf(store)).toMatchObject({ run: 3, lastSequence: 100, state: "open" });
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 50, state: "closed" }));
        expect(await progressOf(store)).toMatchObject({ run: 3, lastSequence: 100, state: "closed" });
        await store.report(NAMESPACE, 4, reportCommand({ lastSequence: 7, state: "open" }));
        expect(await progressOf(store)).toMatchObject({ run: 4, lastSequence: 7, state: "closed" });
      });

      test("that are equally far take the later word; no number is less than the first", async () => {
        const { store } = await withLease();
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: null }));
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: 0 }));
        expect(await progressOf(store)).toMatchObject({ run: 1, lastSequence: 0 });
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: null }));
        expect(await progressOf(store)).toMatchObject({ run: 1, lastSequence: 0, state: "open" });
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: 0, state: "exhausted" }));
        expect(await progressOf(store)).toMatchObject({ run: 1, lastSequence: 0, state: "exhausted" });
      });

      test("of a coordinator that a lease is discarded stand below every word of its holder, whichever comes first", async () => {
        const discarded = reportCommand({ lastSequence: null, state: "discarded" });
        const { store, lease } = await withLease();
        await store.report(NAMESPACE, 1, discarded);
        await store.report(NAMESPACE, 2, discarded);
        expect(await progressOf(store)).toMatchObject({ run: 2, lastSequence: null, state: "discarded" });
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: null, state: "open" }));
        const told = await progressOf(store);
        expect(told).toMatchObject({ run: 1, lastSequence: null, state: "open" });
        await store.report(NAMESPACE, 4, discarded);
        expect(await progressOf(store)).toEqual(told);
        // A note on a later run than the holder's report: the report is the holder's all the same.
        await lease({ runCount: 4 });
        await store.report(NAMESPACE, 8, discarded);
        await store.report(NAMESPACE, 6, reportCommand({ lastSequence: 3 }));
        expect((await findLease(store, NAMESPACE, 6))?.progress).toMatchObject({
          run: 6,
          lastSequence: 3,
          state: "open",
        });
      });

      test("are for one lease only", async () => {
        const { store, lease } = await withLease();
        for (let count = 0; count < 130; count++) await lease({ leaseNonce: `nonce-of-lease-${count}` });
        for (let count = 0; count < 130; count += 3) {
          const report = reportCommand({ nonce: `nonce-of-lease-${count}`, lastSequence: count });
          await store.report(NAMESPACE, 5 + count, report);
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

      test("with another nonce than the lease's are refused, and change nothing", async () => {
        const { store } = await withLease();
        await expect(
          store.report(NAMESPACE, 1, reportCommand({ nonce: "nonce-of-somebody-else" })),
        ).rejects.toMatchObject({
          code: "holder_mismatch",
        });
        expect(await progressOf(store)).toBeNull();
      });

      test("on runs that nobody holds are refused", async () => {
        const { store } = await withLease();
        for (const run of [0, 5, RUN_MAX]) {
          await expect(store.report(NAMESPACE, run, reportCommand())).rejects.toMatchObject({ code: "run_not_leased" });
        }
      });
    });

    if (traits.remembers) {
      test("remembers everything when it is closed and opened again, and leases above it", async () => {
        const { store, reopen } = await opened();
        const { storeId, lease } = await withNamespace(store, { storeId: storeIdFrom(5) });
        await lease({ runCount: 3 });
        await store.report(NAMESPACE, 6, reportCommand({ state: "closed" }));
        const record = await store.readNamespace(NAMESPACE);
        const entry = await findLease(store, NAMESPACE, 6);
        const again = await reopen();
        expect(await again.readNamespace(NAMESPACE)).toEqual(record);
        expect(await findLease(again, NAMESPACE, 6)).toEqual(entry);
        expect(await leasedAbove(inHand(again, { storeId }), 7)).toBe(true);
      });
    }

    test("can be closed twice", async () => {
      const { store } = await opened();
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });
  });
}

/** A store that can't tell whether it was restored while it was closed says so first, and is settled by a jump. */
async function leasedAbove({ lease, jump }: StoreInHand, mark: number): Promise<boolean> {
  try {
    return (await lease()).firstRun === mark + 1;
  } catch (error) {
    expect(error).toMatchObject({ reason: "epoch_changed" });
    return (await jump()) > mark;
  }
}
