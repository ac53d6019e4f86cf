/**
 * The definition of a store: what every adapter of the port must do, with its reasons. A store of your own passes this suite
 * or is none.
 */
import { CALL_NUMBER_BITS, RUN_MAX, SEQUENCE_BITS } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { afterEach, describe, expect, test } from "vitest";
import type { LeaseCommand, ReportCommand, Store } from "../src/store.js";
import { newStoreId } from "../src/store-id.js";

interface StoreForTest {
  readonly store: Store;
  /** Closes the store and opens it again. */
  reopen(): Promise<Store>;
  remove(): Promise<void>;
}

/** Opens an empty store. */
export type OpenForTest = () => Promise<StoreForTest>;

const NAMESPACE = "main";
const ABOVE_ALL = 2 ** (CALL_NUMBER_BITS - SEQUENCE_BITS);
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists", step: "1" } };

export function storeIdFrom(firstRun: number): string {
  return newStoreId({ firstRun, initialisedAtMs: 1_700_000_000_000, rate: 2 });
}

export function leaseCommand(command: Partial<LeaseCommand> = {}): LeaseCommand {
  return { runCount: 1, floor: 0, holder, coordinator: "test", nonce: "nonce-0123456789", ...command };
}

export function reportCommand(command: Partial<ReportCommand> = {}): ReportCommand {
  return { nonce: "nonce-0123456789", lastSequence: 10, state: "open", ...command };
}

/** A store that ends with its process has no `remembers` to pass. */
export function describeStoreContract(
  name: string,
  open: OpenForTest,
  { remembers }: { readonly remembers: boolean },
): void {
  describe(`the ${name} store`, () => {
    const toRemove: (() => Promise<void>)[] = [];

    async function opened() {
      const { store, reopen, remove } = await open();
      toRemove.push(remove);
      return { store, reopen };
    }

    async function withNamespace(firstRun = 1): Promise<Store> {
      const { store } = await opened();
      await store.createNamespace(NAMESPACE, storeIdFrom(firstRun));
      return store;
    }

    afterEach(async () => {
      for (const remove of toRemove.splice(0)) await remove();
    });

    describe("namespaces", () => {
      test("are made once, with the mark right below the first run", async () => {
        const { store } = await opened();
        const storeId = storeIdFrom(100);
        const record = await store.createNamespace(NAMESPACE, storeId);
        expect(record).toEqual({
          namespace: NAMESPACE,
          storeId,
          version: 0,
          firstRun: 100,
          highWaterMark: 99,
          changedAtMs: 1_700_000_000_000,
        });
        expect(await store.readNamespace(NAMESPACE)).toEqual(record);
      });

      test("are never made again, not even with the same id, and the refusal changes nothing", async () => {
        const store = await withNamespace();
        await store.lease(NAMESPACE, leaseCommand({ runCount: 5 }));
        const before = await store.readNamespace(NAMESPACE);
        for (const storeId of [before.storeId, storeIdFrom(1)]) {
          await expect(store.createNamespace(NAMESPACE, storeId)).rejects.toMatchObject({
            code: "namespace_already_initialised",
          });
        }
        expect(await store.readNamespace(NAMESPACE)).toEqual(before);
        expect((await store.lease(NAMESPACE, leaseCommand())).firstRun).toBe(6);
      });

      test("that were not made are refused by every operation, with the command that makes them", async () => {
        const store = await withNamespace();
        const operations = [
          () => store.readNamespace("other"),
          () => store.lease("other", leaseCommand()),
          () => store.report("other", 1, reportCommand()),
          () => store.findLease("other", 1),
          () => store.listLeases("other", { belowLedgerId: ABOVE_ALL, limit: 10 }),
          () => store.firstLeaseSince("other", 0),
        ];
        for (const operation of operations) {
          await expect(operation()).rejects.toMatchObject({
            code: "namespace_not_initialised",
            message: expect.stringContaining("callnumber init --namespace other"),
          });
        }
      });

      test("are separate spaces: each has its own runs, and the list names them in order", async () => {
        const store = await withNamespace();
        await store.createNamespace("a", storeIdFrom(7));
        await store.lease(NAMESPACE, leaseCommand({ runCount: 3 }));
        expect((await store.lease("a", leaseCommand())).firstRun).toBe(7);
        expect((await store.lease(NAMESPACE, leaseCommand())).firstRun).toBe(4);
        expect(await store.findLease("a", 3)).toBeUndefined();
        expect(await store.listNamespaces()).toEqual(["a", "main"]);
      });

      test("an empty store lists none", async () => {
        const { store } = await opened();
        expect(await store.listNamespaces()).toEqual([]);
      });
    });

    describe("leases", () => {
      test("are contiguous, rise without a gap, and begin at the first run", async () => {
        const store = await withNamespace(42);
        const first = await store.lease(NAMESPACE, leaseCommand({ runCount: 3 }));
        const second = await store.lease(NAMESPACE, leaseCommand({ runCount: 64 }));
        const third = await store.lease(NAMESPACE, leaseCommand());
        expect([first, second, third].map(({ firstRun, runCount }) => [firstRun, runCount])).toEqual([
          [42, 3],
          [45, 64],
          [109, 1],
        ]);
        expect(first).toMatchObject({ storeId: (await store.readNamespace(NAMESPACE)).storeId, version: 0 });
        expect((await store.readNamespace(NAMESPACE)).highWaterMark).toBe(109);
      });

      test("asked for at the same time never share a run", async () => {
        const store = await withNamespace();
        const sizes = Array.from({ length: 200 }, (_, index) => (index % 7) + 1);
        const granted = await Promise.all(sizes.map((runCount) => store.lease(NAMESPACE, leaseCommand({ runCount }))));
        const runs = granted.flatMap(({ firstRun, runCount }) =>
          Array.from({ length: runCount }, (_, offset) => firstRun + offset),
        );
        const sum = sizes.reduce((total, size) => total + size, 0);
        expect(runs.sort((a, b) => a - b)).toEqual(Array.from({ length: sum }, (_, index) => index + 1));
      });

      test("at the end of the run space are cut short, then refused, and never wrap", async () => {
        const store = await withNamespace(RUN_MAX - 4);
        expect(await store.lease(NAMESPACE, leaseCommand({ runCount: 3 }))).toMatchObject({
          firstRun: RUN_MAX - 4,
          runCount: 3,
        });
        expect(await store.lease(NAMESPACE, leaseCommand({ runCount: 64 }))).toMatchObject({
          firstRun: RUN_MAX - 1,
          runCount: 2,
        });
        for (const runCount of [1, 64]) {
          await expect(store.lease(NAMESPACE, leaseCommand({ runCount }))).rejects.toMatchObject({
            code: "run_space_exhausted",
          });
        }
        expect((await store.readNamespace(NAMESPACE)).highWaterMark).toBe(RUN_MAX);
        expect(await store.findLease(NAMESPACE, RUN_MAX)).toMatchObject({ firstRun: RUN_MAX - 1, runCount: 2 });
      });

      test("can take the very last run alone", async () => {
        const store = await withNamespace(RUN_MAX);
        expect(await store.lease(NAMESPACE, leaseCommand({ runCount: 2 }))).toMatchObject({
          firstRun: RUN_MAX,
          runCount: 1,
        });
        await expect(store.lease(NAMESPACE, leaseCommand())).rejects.toMatchObject({ code: "run_space_exhausted" });
      });

      test("are refused when the caller knows of a greater run than the store, and nothing moves", async () => {
        const store = await withNamespace();
        await store.lease(NAMESPACE, leaseCommand({ runCount: 10 }));
        await expect(store.lease(NAMESPACE, leaseCommand({ floor: 11 }))).rejects.toMatchObject({
          code: "store_went_back",
        });
        expect((await store.lease(NAMESPACE, leaseCommand({ floor: 10 }))).firstRun).toBe(11);
      });

      test("bear times that never go back", async () => {
        const store = await withNamespace();
        const times: number[] = [];
        for (let lease = 0; lease < 5; lease++) times.push((await store.lease(NAMESPACE, leaseCommand())).leasedAtMs);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect(times[0]).toBeGreaterThanOrEqual(1_700_000_000_000);
        expect((await store.readNamespace(NAMESPACE)).changedAtMs).toBe(times[4]);
      });

      test("bear times that never go back, even when the clock stands before the time of init", async () => {
        const { store } = await opened();
        const initialisedAtMs = Date.now() + 3_600_000;
        await store.createNamespace(NAMESPACE, newStoreId({ firstRun: 1, initialisedAtMs, rate: 2 }));
        expect((await store.lease(NAMESPACE, leaseCommand())).leasedAtMs).toBe(initialisedAtMs);
      });
    });

    describe("the ledger", () => {
      test("holds each lease with all that was said of its holder, found by each of its runs", async () => {
        const store = await withNamespace(10);
        const odd = { name: 'Ä "quoted" {brace} 書', host: "h\\n", pid: 0, labels: {} };
        const { leasedAtMs } = await store.lease(
          NAMESPACE,
          leaseCommand({ runCount: 3, holder: odd, coordinator: "c-1" }),
        );
        await store.lease(NAMESPACE, leaseCommand());
        const expected: LedgerEntry = {
          version: 0,
          firstRun: 10,
          runCount: 3,
          leasedAtMs,
          holder: odd,
          coordinator: "c-1",
          progress: null,
        };
        for (const run of [10, 11, 12]) expect(await store.findLease(NAMESPACE, run)).toEqual(expected);
        expect(await store.findLease(NAMESPACE, 13)).toMatchObject({ firstRun: 13, holder });
        for (const run of [0, 9, 14, RUN_MAX]) expect(await store.findLease(NAMESPACE, run)).toBeUndefined();
      });

      test("is listed newest first, below a ledger id, up to a limit", async () => {
        const store = await withNamespace();
        for (let lease = 0; lease < 5; lease++) await store.lease(NAMESPACE, leaseCommand({ runCount: 2 }));
        const firstRunsOf = async (belowLedgerId: number, limit: number) =>
          (await store.listLeases(NAMESPACE, { belowLedgerId, limit })).map(({ firstRun }) => firstRun);
        expect(await firstRunsOf(ABOVE_ALL, 10)).toEqual([9, 7, 5, 3, 1]);
        expect(await firstRunsOf(ABOVE_ALL, 2)).toEqual([9, 7]);
        expect(await firstRunsOf(8, 2)).toEqual([5, 3]);
        expect(await firstRunsOf(9, 2)).toEqual([7, 5]);
        expect(await firstRunsOf(2, 10)).toEqual([]);
        expect(await firstRunsOf(0, 10)).toEqual([]);
      });

      test("finds the first lease of a time or later", async () => {
        const store = await withNamespace();
        expect(await store.firstLeaseSince(NAMESPACE, 0)).toBeUndefined();
        const times: number[] = [];
        for (let lease = 0; lease < 40; lease++) {
          times.push((await store.lease(NAMESPACE, leaseCommand({ runCount: (lease % 3) + 1 }))).leasedAtMs);
          if (lease % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        }
        const newestFirst = await store.listLeases(NAMESPACE, { belowLedgerId: ABOVE_ALL, limit: 100 });
        for (const timeMs of [0, ...times, ...times.map((time) => time + 1), times.at(-1)! + 60_000]) {
          const expected = newestFirst.findLast(({ leasedAtMs }) => leasedAtMs >= timeMs);
          expect(await store.firstLeaseSince(NAMESPACE, timeMs)).toEqual(expected);
        }
      });
    });

    describe("reports", () => {
      async function withLease(): Promise<Store> {
        const store = await withNamespace();
        await store.lease(NAMESPACE, leaseCommand({ runCount: 4 }));
        return store;
      }
      const progressOf = async (store: Store) => (await store.findLease(NAMESPACE, 1))?.progress;

      test("tell how far a lease got", async () => {
        const store = await withLease();
        await store.report(NAMESPACE, 2, reportCommand({ lastSequence: 0 }));
        expect(await progressOf(store)).toMatchObject({ run: 2, lastSequence: 0, state: "open" });
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 16_383, state: "exhausted" }));
        const told = await progressOf(store);
        expect(told).toMatchObject({ run: 3, lastSequence: 16_383, state: "exhausted" });
        expect(told?.reportedAtMs).toBeGreaterThan(1_700_000_000_000);
      });

      test("may say that nothing was used", async () => {
        const store = await withLease();
        await store.report(NAMESPACE, 1, reportCommand({ lastSequence: null, state: "closed" }));
        expect(await progressOf(store)).toMatchObject({ run: 1, lastSequence: null, state: "closed" });
      });

      test("never take progress back, in whatever order they arrive, and closed stays closed", async () => {
        const store = await withLease();
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 100 }));
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 99 }));
        await store.report(NAMESPACE, 2, reportCommand({ lastSequence: 16_383, state: "exhausted" }));
        expect(await progressOf(store)).toMatchObject({ run: 3, lastSequence: 100, state: "open" });
        await store.report(NAMESPACE, 3, reportCommand({ lastSequence: 50, state: "closed" }));
        expect(await progressOf(store)).toMatchObject({ run: 3, lastSequence: 100, state: "closed" });
        await store.report(NAMESPACE, 4, reportCommand({ lastSequence: 7, state: "open" }));
        expect(await progressOf(store)).toMatchObject({ run: 4, lastSequence: 7, state: "closed" });
      });

      test("are for one lease only", async () => {
        const store = await withLease();
        for (let lease = 0; lease < 130; lease++)
          await store.lease(NAMESPACE, leaseCommand({ nonce: `nonce-of-lease-${lease}` }));
        for (let lease = 0; lease < 130; lease += 3) {
          await store.report(
            NAMESPACE,
            5 + lease,
            reportCommand({ nonce: `nonce-of-lease-${lease}`, lastSequence: lease }),
          );
        }
        const entries = await store.listLeases(NAMESPACE, { belowLedgerId: ABOVE_ALL, limit: 500 });
        expect(entries).toHaveLength(131);
        for (const { firstRun, progress } of entries) {
          const lease = firstRun - 5;
          const expected = lease >= 0 && lease % 3 === 0 ? { run: firstRun, lastSequence: lease } : null;
          if (expected === null) expect(progress).toBeNull();
          else expect(progress).toMatchObject(expected);
        }
      });

      test("with another nonce than the lease's are refused, and change nothing", async () => {
        const store = await withLease();
        await expect(
          store.report(NAMESPACE, 1, reportCommand({ nonce: "nonce-of-somebody-else" })),
        ).rejects.toMatchObject({
          code: "not_the_holder",
        });
        expect(await progressOf(store)).toBeNull();
      });

      test("on runs that nobody holds are refused", async () => {
        const store = await withLease();
        for (const run of [0, 5, RUN_MAX]) {
          await expect(store.report(NAMESPACE, run, reportCommand())).rejects.toMatchObject({ code: "run_not_leased" });
        }
      });
    });

    if (remembers) {
      test("remembers everything when it is closed and opened again", async () => {
        const { store, reopen } = await opened();
        await store.createNamespace(NAMESPACE, storeIdFrom(5));
        await store.lease(NAMESPACE, leaseCommand({ runCount: 3 }));
        await store.report(NAMESPACE, 6, reportCommand({ state: "closed" }));
        const record = await store.readNamespace(NAMESPACE);
        const entry = await store.findLease(NAMESPACE, 6);
        const again = await reopen();
        expect(await again.readNamespace(NAMESPACE)).toEqual(record);
        expect(await again.findLease(NAMESPACE, 6)).toEqual(entry);
        expect((await again.lease(NAMESPACE, leaseCommand())).firstRun).toBe(8);
      });
    }

    test("can be closed twice", async () => {
      const { store } = await opened();
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });
  });
}
