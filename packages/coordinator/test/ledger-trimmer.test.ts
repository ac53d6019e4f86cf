/** What trims a ledger: each lease is in the store or in a file, whatever fails, and reads show where. */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { importLeases, recordReport } from "../src/ledger/ledger-changes.js";
import { LEDGER_TRIM_LEASES_MAX, LedgerFiles } from "../src/retention/ledger-trimmer.js";
import { MemoryStore } from "../src/stores/memory.js";
import { holder, LEASE_NONCE, NAMESPACE, reportCommand } from "./commands-for-test.js";
import { recentStoreId, recover } from "./steps-for-move.js";
import { stepOn } from "./steps-for-test.js";
import { inHand, ledgerOf, type StoreInHand, withNamespace } from "./store-in-hand.js";
import {
  DAY_MS,
  failingOnce,
  heartbeatUntil,
  leasesInFiles,
  RETENTION_DAYS,
  storeWith,
  syncedPlaces,
  trimmed,
  trimmerOf,
} from "./trims.js";

let directory: string;

beforeEach(async () => {
  directory = await folderForTest();
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Leases of one run each, so that runs and ledger ids are the same. */
async function leased(leaseCount: number, store = new MemoryStore()): Promise<StoreInHand> {
  const own = await withNamespace(store);
  for (let count = 0; count < leaseCount; count++) await own.lease();
  await store.setRetentionDays(NAMESPACE, RETENTION_DAYS);
  return own;
}

/** What the memory store would be after a restore of what it is now. */
async function copyOf({ store, storeId }: StoreInHand): Promise<MemoryStore> {
  const copy = new MemoryStore();
  await importLeases(copy, NAMESPACE, await ledgerOf(store));
  await recover(copy, storeId);
  await inHand(copy, { storeId }).skipAhead();
  await copy.setRetentionDays(NAMESPACE, RETENTION_DAYS);
  return copy;
}

function runsIn(leases: readonly LedgerEntry[]): readonly number[] {
  return leases.map(lastLedgerIdOf);
}

test("a trim moves all old leases but the newest into a file of the namespace and store", async () => {
  const { store, storeId } = await leased(5);
  const whole = await ledgerOf(store);
  expect(await trimmed(store, directory)).toEqual([
    { event: "ledger_trimmed", fields: { namespace: NAMESPACE, leaseCount: 4, version: 0, upToRun: 4 } },
  ]);
  expect(runsIn(await ledgerOf(store))).toEqual([5]);
  expect(leasesInFiles(directory)).toEqual(whole.slice(0, 4));
  const [name = "", ...others] = await readdir(directory);
  expect(others).toEqual([]);
  expect(name).toMatch(new RegExp(`^main\\.${storeId.split(".")[0]}\\.[0-9a-f]{16}\\.ndjson$`));
  expect(await trimmed(store, directory)).toEqual([]);
});

test("a trim runs in steps and logs once", async () => {
  const leaseCount = 2 * LEDGER_TRIM_LEASES_MAX + 7;
  const { store } = await leased(leaseCount);
  const trims = vi.spyOn(store, "trimLedger");
  expect(await trimmed(store, directory)).toMatchObject([{ fields: { leaseCount: leaseCount - 1 } }]);
  expect(trims).toHaveBeenCalledTimes(3);
  expect(runsIn(leasesInFiles(directory))).toEqual(Array.from({ length: leaseCount - 1 }, (_, index) => index + 1));
});

test("a trim leaves leases that are younger than the retention, and a namespace without one", async () => {
  const { store } = await leased(5);
  const whole = await ledgerOf(store);
  const now = () => Date.now() + (RETENTION_DAYS - 1) * DAY_MS;
  expect(await trimmed(store, directory, { now })).toEqual([]);
  await store.setRetentionDays(NAMESPACE, 0);
  expect(await trimmed(store, directory)).toEqual([]);
  expect(await ledgerOf(store)).toEqual(whole);
  expect(await readdir(directory)).toEqual([]);
});

test("a trim stops at the first lease that its holder still reports on, and continues when that has ended", async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  const { store: idle } = await leased(6, new MemoryStore({ now }));
  const store = heartbeatUntil(idle, now);
  await recordReport(store, NAMESPACE, 2, reportCommand({ state: "open" }), now);
  nowMs += (RETENTION_DAYS - 1) * DAY_MS;
  await recordReport(store, NAMESPACE, 4, reportCommand({ state: "open" }), now);
  await recordReport(store, NAMESPACE, 5, reportCommand({ state: "closed" }), now);
  nowMs += 2 * DAY_MS;
  await trimmed(store, directory, { now });
  expect(runsIn(await ledgerOf(store))).toEqual([4, 5, 6]);
  await recordReport(store, NAMESPACE, 4, reportCommand({ state: "exhausted" }), now);
  await trimmed(store, directory, { now });
  expect(runsIn(await ledgerOf(store))).toEqual([6]);
  expect([...runsIn(leasesInFiles(directory))].sort()).toEqual([1, 2, 3, 4, 5]);
});

test("a trim stores the latest time of its leases, where a clock was ahead once", async () => {
  const [store, storeId] = [new MemoryStore(), recentStoreId()];
  const times = [1_000, 3_000, 2_000, 4_000];
  const entry = { version: 0, runCount: 1, holder, coordinator: "c", nonce: LEASE_NONCE, progress: null };
  const leases: LedgerEntry[] = [];
  for (const leasedAtMs of times) leases.push({ ...entry, firstRun: leases.length + 1, leasedAtMs });
  await importLeases(store, NAMESPACE, leases);
  await recover(store, storeId, { floor: 4 });
  await inHand(store, { storeId }).skipAhead();
  await store.setRetentionDays(NAMESPACE, RETENTION_DAYS);
  await trimmed(store, directory);
  expect(await store.readRetention(NAMESPACE)).toMatchObject({ through: 3, leasedAtMs: 3_000 });
});

test("the trimmer runs at the start, and until it is stopped", async () => {
  const { store } = await leased(3);
  const { trimmer, events } = trimmerOf(store, directory, { everyMs: 5 });
  trimmer.start();
  await expect.poll(() => events.length).toBe(1);
  await trimmer.stop();
  expect(runsIn(leasesInFiles(directory))).toEqual([1, 2]);
});

test("a trim by two coordinators at the same time loses no lease", async () => {
  const own = await leased(1_200);
  const whole = await ledgerOf(own.store);
  const trimmers = [trimmerOf(own.store, directory), trimmerOf(own.store, directory)];
  await Promise.all(trimmers.map(({ trimmer }) => trimmer.trimAll()));
  await trimmed(own.store, directory);
  expect(runsIn(await ledgerOf(own.store))).toEqual([1_200]);
  expect([...new Set(runsIn(leasesInFiles(directory)))].sort((one, other) => one - other)).toEqual(
    runsIn(whole.slice(0, -1)),
  );
});

test("a trim of a store that was restored writes its leases again", async () => {
  const own = await leased(5);
  const restored = await copyOf(own);
  await trimmed(own.store, directory);
  await trimmed(restored, directory);
  expect([...runsIn(leasesInFiles(directory))].sort()).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  expect(await restored.readRetention(NAMESPACE)).toMatchObject({ through: 4 });
});

test("the trimmer trims nothing without a directory, which is logged once for a namespace with a retention", async () => {
  const { store } = await leased(5);
  await withNamespace(store, { namespace: "other" });
  const { trimmer, events } = trimmerOf(store, undefined);
  for (let count = 0; count < 3; count++) await trimmer.trimAll();
  const fields = { namespace: NAMESPACE, days: RETENTION_DAYS, reason: expect.any(String) };
  expect(events).toEqual([{ event: "ledger_not_trimmed", fields }]);
  expect(await ledgerOf(store)).toHaveLength(5);
});

test("the trimmer never makes a missing directory; leasing continues, and so does trimming later", async () => {
  const { store, lease } = await leased(5);
  const missing = join(directory, "disk");
  const { trimmer, events } = trimmerOf(store, missing);
  await trimmer.trimAll();
  expect(events).toMatchObject([{ event: "ledger_trim_failed", fields: { namespace: NAMESPACE, code: "ENOENT" } }]);
  expect(existsSync(missing)).toBe(false);
  expect(await ledgerOf(store)).toHaveLength(5);
  await lease();
  await mkdir(missing);
  await trimmer.trimAll();
  expect(runsIn(leasesInFiles(missing))).toEqual([1, 2, 3, 4, 5]);
});

test.each([
  ["ahead", 1],
  ["behind", -1],
])("the trimmer trims nothing by a clock that is a hundred days %s", async (_, sign) => {
  const { store } = await leased(5);
  const now = () => Date.now() + sign * 100 * DAY_MS;
  expect(await trimmed(store, directory, { now, isClockWrong: true })).toEqual([]);
  expect(await ledgerOf(store)).toHaveLength(5);
});

test("the trimmer trims nothing of a namespace that is sealed or recovering", async () => {
  const { store, commands } = await leased(5);
  await stepOn(store, NAMESPACE, commands.seal(FORKED_SEAL));
  expect(await trimmed(store, directory)).toEqual([]);
  await stepOn(store, NAMESPACE, commands.recover());
  expect(await trimmed(store, directory)).toEqual([]);
  expect(await ledgerOf(store)).toHaveLength(5);
});

test("the trimmer trims nothing when a report comes after its reading; the next trim writes what was reported", async () => {
  const { store } = await leased(5);
  const reported = storeWith(store, {
    trimLedger: async (namespace, trim) => {
      await recordReport(store, NAMESPACE, 2, reportCommand({ lastSequence: 77, state: "closed" }));
      return await store.trimLedger(namespace, trim);
    },
  });
  await trimmed(reported, directory);
  expect(await ledgerOf(store)).toHaveLength(5);
  await trimmed(store, directory);
  expect(runsIn(await ledgerOf(store))).toEqual([5]);
  expect(leasesInFiles(directory)).toContainEqual(
    expect.objectContaining({ firstRun: 2, progress: expect.objectContaining({ lastSequence: 77 }) }),
  );
});

test("the trimmer trims nothing in a store that rejects every trim, and the file does not grow", async () => {
  const { store } = await leased(5);
  const refusing = storeWith(store, {
    trimLedger: async () => {
      throw new CoordinatorError("store_unavailable", "its ACL does not let this user do that");
    },
  });
  const { trimmer, events } = trimmerOf(refusing, directory);
  for (let count = 0; count < 3; count++) await trimmer.trimAll();
  const failed = { event: "ledger_trim_failed", fields: { code: "store_unavailable" } };
  expect(events).toMatchObject([failed, failed, failed]);
  expect(runsIn(leasesInFiles(directory))).toEqual([1, 2, 3, 4]);
});

describe("a file of leases", () => {
  const lease = { firstRun: 1, nonce: "n" } as LedgerEntry;

  test("an archive file is synced, a new one with its directory, before it counts as written", async () => {
    const synced = await syncedPlaces(directory);
    const files = new LedgerFiles(directory);
    for (let count = 0; count < 2; count++) await files.append(NAMESPACE, "uuid.1.2.3", [lease]);
    const [name = ""] = await readdir(directory);
    expect(synced()).toEqual([name, directory, name]);
  });

  test("an archive file that fails within a line keeps its earlier lines and gets no more", async () => {
    const files = new LedgerFiles(directory);
    await files.append(NAMESPACE, "uuid.1.2.3", [lease]);
    const [first = ""] = await readdir(directory);
    await failingOnce('{"firstRun":');
    await expect(files.append(NAMESPACE, "uuid.1.2.3", [lease])).rejects.toMatchObject({ code: "ENOSPC" });
    expect(await readFile(join(directory, first), "utf8")).toBe(`${JSON.stringify(lease)}\n`);
    await files.append(NAMESPACE, "uuid.1.2.3", [lease]);
    expect(await readdir(directory)).toHaveLength(2);
    expect(leasesInFiles(directory)).toEqual([lease, lease]);
  });

  test("an archive file is removed when its first write fails", async () => {
    await failingOnce("");
    await expect(new LedgerFiles(directory).append(NAMESPACE, "uuid.1.2.3", [lease])).rejects.toThrow();
    expect(await readdir(directory)).toEqual([]);
  });
});

describe("a run whose lease was trimmed", () => {
  const numberOf = (run: number) => encodeCallNumber({ version: 0, run, sequence: 3 });

  async function coordinatorOfTrimmed() {
    const own = await leased(6);
    await trimmed(own.store, directory);
    const { leasedAtMs } = await own.store.readRetention(NAMESPACE);
    const part = { upToVersion: 0, upToRun: 5, lastLeasedAtMs: leasedAtMs };
    return { ...own, part, coordinator: new Coordinator({ store: own.store, name: "test" }) };
  }

  test("inspect reports a trimmed run as leased at or before that time, and as possible", async () => {
    const { coordinator, part } = await coordinatorOfTrimmed();
    for (const run of [1, 5]) {
      const answer = await coordinator.inspect(NAMESPACE, numberOf(run));
      expect(answer).toMatchObject({ verdict: "trimmed", trimmed: part });
      expect(answer.explanation).toContain(`at or before ${new Date(part.lastLeasedAtMs).toISOString()}`);
      expect(answer.explanation).toContain("--ledger-dir");
      expect(await coordinator.canExist(NAMESPACE, numberOf(run))).toBe(true);
    }
    expect(await coordinator.inspect(NAMESPACE, numberOf(6))).toMatchObject({ verdict: "unreported" });
    expect(await coordinator.inspect(NAMESPACE, numberOf(7))).toMatchObject({ reason: "above_mark" });
    expect(await coordinator.inspect(NAMESPACE, numberOf(0))).toMatchObject({ reason: "below_first_run" });
  });

  test("inspect reports the same when the run is trimmed during the search", async () => {
    const { store } = await leased(6);
    const racing = storeWith(store, {
      leases: async (...asked) => {
        await trimmed(store, directory);
        return await store.leases(...asked);
      },
    });
    const coordinator = new Coordinator({ store: racing, name: "test" });
    expect(await coordinator.inspect(NAMESPACE, numberOf(2))).toMatchObject({ verdict: "trimmed" });
  });

  test("a trimmed run has another error than a run that was never leased", async () => {
    const { coordinator } = await coordinatorOfTrimmed();
    const error = await coordinator.run(NAMESPACE, 5).catch((one: CoordinatorError) => one);
    expect(error).toMatchObject({ code: "lease_trimmed", message: expect.stringContaining("--ledger-dir") });
    expect((error as CoordinatorError).message.length).toBeLessThanOrEqual(200);
    for (const run of [0, 7])
      await expect(coordinator.run(NAMESPACE, run)).rejects.toMatchObject({ code: "run_not_leased" });
  });

  test("a report on a trimmed run is rejected and changes nothing", async () => {
    const { coordinator, store } = await coordinatorOfTrimmed();
    const before = await ledgerOf(store);
    const report = (run: number) =>
      coordinator.report(NAMESPACE, run, { nonce: LEASE_NONCE, lastSequence: 1, state: "open" });
    await expect(report(5)).rejects.toMatchObject({ code: "report_expired" });
    await expect(report(7)).rejects.toMatchObject({ code: "run_not_leased" });
    expect(await ledgerOf(store)).toEqual(before);
    await report(6);
  });

  test("a trimmed part ends the list of leases, unless only later ones were requested", async () => {
    const { coordinator, lease, part } = await coordinatorOfTrimmed();
    await lease();
    const runs = (query: object) => coordinator.runs(NAMESPACE, { limit: 2, ...query });
    const first = await runs({});
    expect(first).toMatchObject({ leases: [{ firstRun: 7 }, { firstRun: 6 }], nextCursor: "6", trimmed: null });
    expect(await runs({ cursor: "6" })).toMatchObject({ leases: [], nextCursor: null, trimmed: part });
    expect(await runs({ limit: 3 })).toMatchObject({ nextCursor: null, trimmed: part });
    expect(await runs({ limit: 3, fromRun: 5 })).toMatchObject({ trimmed: part });
    expect(await runs({ limit: 3, fromRun: 6 })).toMatchObject({ trimmed: null });
    expect(await runs({ limit: 3, leasedFromMs: part.lastLeasedAtMs })).toMatchObject({ trimmed: part });
    expect(await runs({ limit: 3, leasedFromMs: part.lastLeasedAtMs + 60_000 })).toMatchObject({ trimmed: null });
  });
});
