/** What a rotation is not led to do by clocks that went wrong, stores that lost leases, folders that were not synced, answers that came late. */
import { mkdir, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { afterEach, describe, expect, test, vi } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { lastLedgerIdOf } from "../src/lease-identity.js";
import { Ledger } from "../src/ledger.js";
import { NODE_DISK } from "../src/ledger-archive/archive-disk.js";
import { archiveFileOf } from "../src/ledger-archive/archive-file.js";
import { HotPart } from "../src/ledger-archive/hot-part.js";
import { LedgerArchive } from "../src/ledger-archive/ledger-archive.js";
import { writeDurably } from "../src/ledger-archive/write-durably.js";
import type { Store } from "../src/store.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { archivedLease } from "./archive-files.js";
import { NAMESPACE } from "./commands-for-test.js";
import {
  endLeases,
  expectWhole,
  hotLedger,
  leaseSome,
  rotated,
  rotationOf,
  storeWith,
  wholeLedger,
} from "./rotations.js";
import { recentStoreId, recover } from "./steps-for-move.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALL_NEWEST_FIRST = { belowLedgerId: 2 ** 33, limit: 100 };
const ALL_OLDEST_FIRST = { afterLedgerId: 0, limit: 100 };

afterEach(() => {
  vi.restoreAllMocks();
});

async function leased(leaseCount: number): Promise<StoreInHand & { folder: string }> {
  const inHand = await withNamespace(new MemoryStore());
  await leaseSome(inHand, leaseCount);
  return { ...inHand, folder: await folderForTest() };
}

describe("a rotation by age", () => {
  test("tells every lease of a ledger whose times do not rise with its ids", async () => {
    const [store, storeId, folder] = [new MemoryStore(), recentStoreId(), await folderForTest()];
    const nowMs = Date.now();
    const limitMs = nowMs - 7 * DAY_MS;
    // The second was leased by a clock that was ahead of the next one's.
    const times = [limitMs - DAY_MS, limitMs + HOUR_MS, limitMs - HOUR_MS, nowMs - 5_000, nowMs - 1_000];
    const whole = times.map((leasedAtMs, index) => archivedLease(index + 1, { leasedAtMs }));
    await store.importLeases(NAMESPACE, whole);
    await recover(store, storeId, { floor: whole.length });
    await inHand(store, { storeId }).jump();
    for (const days of [0, 2]) {
      await rotated(store, folder, { retention: { ageMs: 7 * DAY_MS }, now: () => nowMs + days * DAY_MS });
      const ledger = new Ledger(store, new LedgerArchive(folder));
      for (const lease of whole) expect(await ledger.findLease(NAMESPACE, lastLedgerIdOf(lease))).toEqual(lease);
      expect(await ledger.listLeases(NAMESPACE, ALL_NEWEST_FIRST)).toEqual(whole.toReversed());
      expect(await ledger.exportLeases(NAMESPACE, ALL_OLDEST_FIRST)).toEqual(whole);
    }
    expect((await store.readArchived(NAMESPACE)).through).toBe(3);
  });
});

describe("a rotation whose clock is wrong", () => {
  test.each([
    ["ahead", 1],
    ["behind", -1],
  ])("by a hundred days %s moves nothing, and goes on when it is right again", async (_, sign) => {
    const { store, folder } = await leased(40);
    await rotated(store, folder);
    const before = await hotLedger(store);
    let wrongByMs = sign * 100 * DAY_MS;
    const now = () => Date.now() + 1 + wrongByMs;
    const { rotation, events } = rotationOf(store, folder, { now, isClockWrong: true, lateEveryMs: HOUR_MS });
    await rotation.rotateAll();
    expect(events).toEqual([]);
    expect(await hotLedger(store)).toEqual(before);
    const whole = await endLeases(store, await wholeLedger(store, folder), 2);
    wrongByMs = 0;
    await rotation.rotateAll();
    expect(events).toMatchObject([{ event: "rotation", fields: { file: expect.stringMatching(/^late-/) } }]);
    await expectWhole(store, folder, whole);
  });

  test("takes no lease for an old one", async () => {
    const { store, folder } = await leased(40);
    const whole = await hotLedger(store);
    const ahead = { now: () => Date.now() + 100 * DAY_MS, isClockWrong: true };
    expect(await rotated(store, folder, { ...ahead, retention: { ageMs: DAY_MS } })).toEqual([]);
    expect(await hotLedger(store)).toEqual(whole);
  });
});

describe("the part of a ledger that stays", () => {
  /** As far as its ledger is read. */
  function listed(leases: { now: readonly LedgerEntry[] }): Store {
    return storeWith(new MemoryStore(), {
      listLeases: async (_, { belowLedgerId, limit }) =>
        leases.now
          .filter((lease) => lastLedgerIdOf(lease) < belowLedgerId)
          .toReversed()
          .slice(0, limit),
      exportLeases: async (_, { afterLedgerId, limit }) =>
        leases.now.filter((lease) => lastLedgerIdOf(lease) > afterLedgerId).slice(0, limit),
    });
  }
  const someLeases = (leaseCount: number, firstRun = 1) =>
    Array.from({ length: leaseCount }, (_, index) => archivedLease(firstRun + index));

  test("is counted anew when the store has lost the leases that were counted last", async () => {
    const leases = { now: someLeases(2_000) };
    const hotPart = new HotPart(listed(leases), NAMESPACE, { leaseCount: 1_000 });
    expect(await hotPart.due(0, 8_192, Date.now())).toHaveLength(1_000);
    leases.now = [...someLeases(500), ...someLeases(10, 70_000)];
    expect(await hotPart.due(0, 8_192, Date.now())).toEqual([]);
    leases.now = [...someLeases(500), ...someLeases(700, 70_000)];
    expect((await hotPart.due(0, 8_192, Date.now())).map(lastLedgerIdOf)).toEqual(someLeases(200).map(lastLedgerIdOf));
  });

  test("holds the newest lease, whatever was counted", async () => {
    const leases = { now: someLeases(2_000) };
    const hotPart = new HotPart(listed(leases), NAMESPACE, { leaseCount: 2 });
    expect(await hotPart.due(0, 8_192, Date.now())).toHaveLength(1_998);
    leases.now = [...someLeases(5), ...someLeases(1, 2_000)];
    expect((await hotPart.due(0, 8_192, Date.now())).map(lastLedgerIdOf)).not.toContain(2_000);
  });
});

test("a file is on the disk with its folders, also when somebody was killed who had just made them", async () => {
  const root = await folderForTest();
  const folder = join(root, NAMESPACE, "uuid");
  await mkdir(folder, { recursive: true });
  const synced = await syncedPlaces();
  const leases = [archivedLease(1)];
  await writeDurably(NODE_DISK, folder, await archiveFileOf({ kind: "segment", first: 1, last: 1 }, leases, 0), leases);
  for (const place of [folder, dirname(folder), root]) expect(synced).toContain((await stat(place)).ino);
});

test("an export that a store answers late holds the leases that another coordinator moved meanwhile", async () => {
  const { store, folder, ...more } = await leased(20);
  await endAll(store);
  await rotated(store, folder);
  await leaseSome({ store, ...more }, 20);
  await endAll(store);
  const archive = new LedgerArchive(folder);
  // It knows the folder as it was before.
  const whole = await new Ledger(store, archive).exportLeases(NAMESPACE, ALL_OLDEST_FIRST);
  const late = storeWith(store, {
    exportLeases: (...asked) => rotated(store, folder).then(() => store.exportLeases(...asked)),
  });
  expect(await new Ledger(late, archive).exportLeases(NAMESPACE, ALL_OLDEST_FIRST)).toEqual(whole);
});

async function endAll(store: Store): Promise<void> {
  for (const lease of await hotLedger(store)) {
    const report = { nonce: lease.nonce, lastSequence: 16_000, state: "closed" } as const;
    await store.report(NAMESPACE, lastLedgerIdOf(lease), report);
  }
}

/** Inodes of the files and folders that are synced from now on. */
async function syncedPlaces(): Promise<readonly number[]> {
  const places: number[] = [];
  const handle = await open(import.meta.filename, "r");
  const prototype = Object.getPrototypeOf(handle) as typeof handle;
  await handle.close();
  const { sync } = prototype;
  vi.spyOn(prototype, "sync").mockImplementation(async function (this: typeof handle) {
    places.push((await this.stat()).ino);
    await sync.call(this);
  });
  return places;
}
