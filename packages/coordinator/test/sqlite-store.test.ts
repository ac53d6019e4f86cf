/** What only the embedded store must do: be the only one, be durable, and never be made again by accident. */
import { linkSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { copyFile, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { IS_MUTATION } from "../../../test/size-of-run.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import type { StepCommand } from "../src/guard/commands.js";
import { importLeases } from "../src/ledger/ledger-changes.js";
import { ledgerPage } from "../src/ledger/read-ledger.js";
import { planRecovery, recoverNamespace } from "../src/operator/recover.js";
import type { SqliteStore } from "../src/stores/sqlite/store.js";
import { commandsFor, holder, LEASE_NONCE, NAMESPACE, SMALL_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { executeSql, live, markOnDisk, newPlace, newStore, type Place } from "./embedded-place.js";
import { preparedFor, stepOn } from "./steps-for-test.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

let place: Place;
let folder: string;
let path: string;

beforeEach(async () => {
  place = await newPlace();
  ({ folder, path } = place);
});

const opened = (create: boolean, at = path) => place.open({ create, path: at });

function openedNew(): Promise<StoreInHand> {
  return withNamespace(opened(true));
}

const refusal = (code: string, said: string) =>
  expect.objectContaining({ name: "CoordinatorError", code, message: expect.stringContaining(said) });

// Left out in a mutation run: what waits for a lock or a process takes seconds, and is not about what is mutated.
const testUnmutated = test.skipIf(IS_MUTATION);

test("a store without `create` makes no file and no directory", async () => {
  path = join(folder, "deeper", "store.db");
  expect(() => opened(false)).toThrow(refusal("store_not_found", path));
  expect(await readdir(folder)).toEqual([]);
  expect(opened(true)).toMatchObject({ isNew: true, isExclusive: true });
  expect(statSync(join(folder, "deeper")).mode & 0o777).toBe(0o700);
});

test.each([
  ["an empty file", () => writeFileSync(path, "")],
  ["a database without tables", () => executeSql(path, "PRAGMA journal_mode = WAL")],
])("a store is not found in %s: a process died while it made one", async (_, make) => {
  make();
  expect(() => opened(false)).toThrow(refusal("store_not_found", path));
  expect(opened(true).isNew).toBe(true);
});

test.each([
  ["a text file", () => writeFileSync(path, "something else ".repeat(100))],
  ["a database of another program", () => executeSql(path, "CREATE TABLE t (x); INSERT INTO t VALUES (1)")],
])("a store rejects %s, and leaves it as it was", async (_, make) => {
  make();
  const before = await readFile(path);
  expect(() => opened(true)).toThrow(refusal("store_corrupt", path));
  expect(await readFile(path)).toEqual(before);
});

test("a store rejects a schema of another release", async () => {
  await (await openedNew()).store.close();
  executeSql(path, "PRAGMA user_version = 5");
  expect(() => opened(false)).toThrow(refusal("store_schema_unsupported", "version 4"));
});

testUnmutated("a store is opened once, by this process or another, until it is closed", async () => {
  const { store } = await openedNew();
  expect(() => opened(false)).toThrow(refusal("store_locked", "another process has it open"));
  const other = live(place);
  await other.ended;
  expect(other.refusals).toEqual(["store_locked"]);
  expect(other.start).toBeUndefined();
  await store.close();
  expect(opened(false).isNew).toBe(false);
});

test("a store finds its lock by every link to the file, and rejects a file with two names", async () => {
  await openedNew();
  symlinkSync(path, join(folder, "link.db"));
  symlinkSync(folder, join(folder, "folder"));
  for (const other of ["link.db", join("folder", "store.db")]) {
    expect(() => opened(false, join(folder, other))).toThrow(refusal("store_locked", path));
  }
  linkSync(path, join(folder, "second.db"));
  expect(() => opened(false, join(folder, "second.db"))).toThrow(refusal("store_unavailable", "hard links"));
});

testUnmutated(
  "a store leases no more when its lock file is removed: another coordinator may have opened it",
  async () => {
    const { store, lease } = await openedNew();
    await rm(`${path}.lock`);
    await expect(lease()).rejects.toMatchObject({ code: "store_locked" });
    expect(() => opened(false)).toThrow(refusal("store_locked", path));
    await store.close();
    // Another process may have had the store open.
    expect(opened(false).restarts.get(NAMESPACE)).toBe("lock_changed");
  },
);

test("a closed store leaves nothing in the log: the file alone has everything", async () => {
  const { store, lease } = await openedNew();
  await lease({ runCount: 7 });
  await store.close();
  const { size } = statSync(`${path}-wal`, { throwIfNoEntry: false }) ?? { size: 0 };
  expect(size).toBe(0);
  expect(await markOnDisk(path)).toBe(7);
});

test("a store rejects a wrong lease without failing the next one", async () => {
  const { lease } = await openedNew();
  await expect(lease({ leaseNonce: undefined as never })).rejects.not.toMatchObject({ code: "store_unavailable" });
  expect((await lease()).firstRun).toBe(1);
});

testUnmutated("a store fails only while another program locks the file", async () => {
  const { lease } = await openedNew();
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(lease()).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("busy"),
  });
  other.exec("ROLLBACK");
  other.close();
  expect((await lease()).firstRun).toBe(1);
});

test("leases of one event-loop iteration share one transaction", async () => {
  const { lease } = await openedNew();
  const walBytes = () => statSync(`${path}-wal`).size;
  const start = walBytes();
  await Promise.all(Array.from({ length: 64 }, () => lease()));
  const together = walBytes() - start;
  for (let leases = 0; leases < 64; leases++) await lease();
  const oneByOne = walBytes() - start - together;
  expect(oneByOne).toBeGreaterThan(20 * together);
});

test("steps of one transaction find what the one before has left, and the file has what the last one left", async () => {
  const store = opened(true);
  const { commands, lease: leased, read } = await withNamespace(store);
  // The first lease makes the ledger, on which later ones rest.
  await leased();
  const prepared = (command: StepCommand) => preparedFor(store, NAMESPACE, command);
  const lease = await prepared(commands.lease({ runCount: 2 }));
  const claim = await prepared(commands.claim(0));
  const second = { ...entryOf(2), runCount: 2 };
  const outcomes = await Promise.allSettled([
    store.apply(NAMESPACE, ...lease),
    store.setProgress(NAMESPACE, second, { run: 3, lastSequence: 5, state: "open", reportedAtMs: 1 }),
    store.apply(NAMESPACE, ...lease),
    store.apply(NAMESPACE, ...claim),
    store.apply(NAMESPACE, ...lease),
    store.apply(NAMESPACE, ...claim),
    store.appendLeases(NAMESPACE, 5, [entryOf(70)]),
  ]);
  expect(outcomes).toMatchObject([
    { value: { highWaterMark: 3 } },
    { value: true },
    { value: { highWaterMark: 5 } },
    { value: { highWaterMark: 5 } },
    { value: { keys: { fields: { c: "5", g: "1", p: "1" }, ledgerMark: 5 } } },
    { value: { keys: { fields: { c: "5", g: "1", p: "1" }, ledgerMark: 5 } } },
    { value: false },
  ]);
  const record = await read();
  expect(record).toMatchObject({ highWaterMark: 5, generation: 1, phase: 1 });
  await store.close();
  expect(await opened(false).readNamespace(NAMESPACE)).toEqual(record);
});

test("leases are not added to a ledger whose record is made in the same transaction", async () => {
  const store = opened(true);
  await importLeases(store, NAMESPACE, [entryOf(7)]);
  const recovery = await preparedFor(store, NAMESPACE, commandsFor(storeIdFrom(1)).recover());
  const outcomes = await Promise.allSettled([
    store.apply(NAMESPACE, ...recovery),
    importLeases(store, NAMESPACE, [entryOf(70)]),
  ]);
  expect(outcomes).toMatchObject([{ status: "fulfilled" }, { reason: { code: "namespace_exists" } }]);
});

testUnmutated(
  "a full disk ends leasing permanently; what was leased is on it, and the next start recovers",
  async () => {
    const store = await newStore();
    // A limit on the size of files stands for the full disk. 2048 blocks of 512 or 1024 bytes hold some hundred leases.
    const process = live(store, { shellPrefix: "trap '' XFSZ; ulimit -f 2048; " });
    process.say("forever 8");
    await process.ended;
    expect(process.refusals, process.stderr).toEqual(["store_unavailable", "store_unavailable"]);
    expect(process.runs.length).toBeGreaterThan(50);
    expect(new Set(process.runs).size).toBe(process.runs.length);
    expect(await readdir(store.markerFolder)).toEqual([]);
    const again = store.open();
    expect(again.restarts.get(NAMESPACE)).toBe("no_mark");
    expect((await again.readNamespace(NAMESPACE)).highWaterMark).toBeGreaterThanOrEqual(Math.max(...process.runs));
  },
);

test("a store that is closed completes the leases before, and rejects those after", async () => {
  const { store, commands, lease, read } = await openedNew();
  const waiting = store.apply(NAMESPACE, ...(await preparedFor(store, NAMESPACE, commands.lease())));
  await store.close();
  expect(await waiting).toMatchObject({ highWaterMark: 1 });
  for (const use of [lease, read]) await expect(use()).rejects.toMatchObject({ code: "store_unavailable" });
  expect((await opened(false).readNamespace(NAMESPACE)).highWaterMark).toBe(1);
});

describe("a copy that an operator accepts", () => {
  const isCopied = { code: "store_copied" };

  /** In the place of the original, with a marker that agrees. */
  async function copied() {
    const { store, storeId, commands, lease } = await openedNew();
    await lease({ runCount: 5 });
    await store.close();
    await rename(path, join(folder, "away.db"));
    await copyFile(join(folder, "away.db"), path);
    expect(() => opened(false)).toThrow(refusal("store_copied", path));
    return { copy: place.open({ acceptCopy: true }), storeId, commands };
  }

  const asked = (store: SqliteStore) => ({
    store,
    namespace: NAMESPACE,
    checkpointFile: NO_CHECKPOINT_FILE,
    storeId: undefined,
    floors: [],
    nodeCount: undefined,
    isClockChecked: false,
    watchMs: 0,
    pause: async () => {},
    bounds: SMALL_BOUNDS,
  });

  test("an accepted copy rejects every change but recover, reports that it is a copy, and ignores the marker", async () => {
    const { copy, commands } = await copied();
    expect(copy.restarts.get(NAMESPACE)).toBe("no_mark");
    expect((await planRecovery(asked(copy))).isHealthy).toBe(false);
    const steps = [commands.lease(), commands.heartbeat(), commands.claim(0), commands.confirm(0), commands.seal("-")];
    for (const step of steps) await expect(stepOn(copy, NAMESPACE, step)).rejects.toBeDefined();
    const claim = await preparedFor(copy, NAMESPACE, commands.claim(0));
    const trim = { record: undefined, trimmedThrough: 0, through: 0, leasedAtMs: 0, leases: [] };
    const [lease] = (await copy.leases(NAMESPACE, { direction: "oldest_first", limit: 1 })) as [LedgerEntry];
    const progress = { run: lease.firstRun, lastSequence: 1, state: "open", reportedAtMs: 1 } as const;
    for (const change of [
      () => copy.apply(NAMESPACE, ...claim),
      () => copy.setProgress(NAMESPACE, lease, progress),
      () => copy.appendLeases(NAMESPACE, 5, []),
      () => copy.setRetentionDays(NAMESPACE, 90),
      () => copy.trimLedger(NAMESPACE, trim),
    ]) {
      await expect(change()).rejects.toMatchObject(isCopied);
    }
    const [finding] = await copy.preflight();
    expect(finding).toMatchObject({ ...isCopied, remedy: expect.stringContaining("`callnumber recover ") });
    await copy.close();
    expect(() => opened(false)).toThrow(refusal("store_copied", path));
  });

  test("an accepted copy leases above every earlier run once it is recovered", async () => {
    const { copy, storeId, commands } = await copied();
    const recovery = await preparedFor(copy, NAMESPACE, commands.recover(), { bounds: SMALL_BOUNDS });
    const outcomes = await Promise.allSettled([
      copy.setRetentionDays(NAMESPACE, 90),
      copy.apply(NAMESPACE, ...recovery),
      copy.setRetentionDays(NAMESPACE, 90),
    ]);
    expect(outcomes).toMatchObject([{ reason: isCopied }, { status: "fulfilled" }, { status: "fulfilled" }]);
    await expect(stepOn(copy, NAMESPACE, commands.lease())).rejects.toMatchObject({ reason: "claimed" });
    await copy.setRetentionDays(NAMESPACE, 0);
    expect((await copy.preflight()).map(({ code }) => code)).not.toContain("store_copied");
    await recoverNamespace(asked(copy), await planRecovery(asked(copy)));
    const mark = (await copy.readNamespace(NAMESPACE)).highWaterMark;
    expect(mark).toBeGreaterThan(65_536);
    await copy.close();
    const again = opened(false);
    expect(again.restarts.get(NAMESPACE)).toBe("not_open");
    expect(await inHand(again, { storeId, bounds: SMALL_BOUNDS }).skipAhead()).toBeGreaterThanOrEqual(mark);
    await again.close();
    expect(opened(false).restarts.get(NAMESPACE)).toBe("unbroken");
  });

  test("an accepted copy stays a copy when its recovery is rejected or undone", async () => {
    const { copy, commands } = await copied();
    const foreign = stepOn(copy, NAMESPACE, commandsFor(storeIdFrom(1)).recover());
    await expect(foreign).rejects.toMatchObject({ code: "store_id_mismatch" });
    const recovery = await preparedFor(copy, NAMESPACE, commands.recover());
    await Promise.allSettled([
      copy.apply(NAMESPACE, ...recovery),
      // No error of ours: it undoes the whole transaction.
      copy.appendLeases("other", 0, [null as never]),
    ]);
    await expect(copy.setRetentionDays(NAMESPACE, 90)).rejects.toMatchObject(isCopied);
    await copy.close();
    expect(() => opened(false)).toThrow(refusal("store_copied", path));
  });

  test("the original continues without skipping runs when an operator accepts it as a copy", async () => {
    const { store, storeId, lease } = await openedNew();
    await lease({ runCount: 5 });
    await store.close();
    const original = place.open({ acceptCopy: true });
    expect(original.restarts.get(NAMESPACE)).toBe("unbroken");
    expect((await inHand(original, { storeId }).lease()).firstRun).toBe(6);
  });
});

test("an edited record fails every operation that reads it", async () => {
  const { store, storeId } = await openedNew();
  await store.close();
  executeSql(path, "UPDATE namespaces SET c = '9'");
  const edited = opened(false);
  for (const use of [
    () => edited.readNamespace(NAMESPACE),
    () => stepOn(edited, NAMESPACE, commandsFor(storeId).lease()),
  ]) {
    await expect(use()).rejects.toMatchObject({ code: "store_corrupt" });
  }
});

test("a search through the ledger does not delay leases", async () => {
  const { store, lease } = await openedNew();
  await lease({ holder: { ...holder, name: "of the oldest lease" } });
  await Promise.all(Array.from({ length: 1_200 }, () => lease()));
  const order: string[] = [];
  const search = ledgerPage(store, NAMESPACE, { limit: 1, holder: "of the oldest lease" }).then(() =>
    order.push("searched"),
  );
  const leased = lease().then(() => order.push("leased"));
  await Promise.all([search, leased]);
  expect(order).toEqual(["leased", "searched"]);
});

function entryOf(firstRun: number): LedgerEntry {
  const lease = { version: 0, firstRun, runCount: 1, leasedAtMs: 1_790_000_000_000 + firstRun, holder };
  return { ...lease, coordinator: "old", nonce: LEASE_NONCE, progress: null };
}
