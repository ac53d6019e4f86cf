/** Rotation: the older part of a ledger goes into files, and whoever reads the ledger notices nothing of it. */
import { mkdir, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { afterEach, describe, expect, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { Coordinator } from "../src/coordinator.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { lastLedgerIdOf } from "../src/lease-identity.js";
import { Ledger } from "../src/ledger.js";
import { type ArchiveDisk, NODE_DISK } from "../src/ledger-archive/archive-disk.js";
import { archiveFileOf } from "../src/ledger-archive/archive-file.js";
import { type ArchiveName, nameIn } from "../src/ledger-archive/archive-name.js";
import { hasEnded } from "../src/ledger-archive/later-progress.js";
import { LedgerArchive } from "../src/ledger-archive/ledger-archive.js";
import type { Store } from "../src/store.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import {
  endLeases,
  expectWhole,
  hotLedger,
  KEEP_LEASES,
  leaseSome,
  rotated,
  rotationOf,
  SEGMENT_LEASES,
  wholeLedger,
} from "./rotations.js";
import { recentStoreId, recover } from "./steps-for-move.js";
import type { OpenForTest } from "./store-contract.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";
import { openMemory, openRedis, openSqlite } from "./stores-for-test.js";

const STORES: readonly [name: string, open: OpenForTest][] = [
  ["memory", openMemory],
  ["embedded", openSqlite],
  ["Redis", openRedis],
];
const DAY_MS = 24 * 3_600_000;
const UNAVAILABLE = { code: "ledger_archive_unavailable" };

const toRemove: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const remove of toRemove.splice(0)) await remove();
});

async function leased(
  open: OpenForTest,
  leaseCount: number,
  storeId = storeIdFrom(1),
): Promise<StoreInHand & { folder: string }> {
  const { store, remove } = await open({ bounds: SHORT_BOUNDS });
  toRemove.push(remove);
  const inHand = await withNamespace(store, { storeId });
  await leaseSome(inHand, leaseCount);
  return { ...inHand, folder: await folderForTest() };
}

async function filesIn(folder: string, storeId: string): Promise<readonly string[]> {
  return (await readdir(join(folder, NAMESPACE, storeId.split(".")[0] as string))).sort();
}

describe.each(STORES)("the ledger of the %s store", (_, open) => {
  test("reads the same after each rotation as before, in every way", async () => {
    const { store, storeId, folder, ...more } = await leased(open, 57);
    let whole = await hotLedger(store);
    const events = await rotated(store, folder);
    await expectWhole(store, folder, whole);
    expect(events.length).toBe(6);
    expect(events[0]?.fields).toMatchObject({ namespace: NAMESPACE, fromLedgerId: 1, bytes: expect.any(Number) });
    const hot = await hotLedger(store);
    // Those that are kept, and those that have not ended.
    expect(hot.filter(hasEnded).length).toBeLessThanOrEqual(KEEP_LEASES);
    expect(hot.map(lastLedgerIdOf)).toEqual(expect.arrayContaining(whole.slice(-KEEP_LEASES).map(lastLedgerIdOf)));

    await leaseSome({ store, storeId, ...more }, 20);
    whole = [
      ...whole,
      ...(await hotLedger(store)).filter(
        (lease) => lastLedgerIdOf(lease) > lastLedgerIdOf(whole.at(-1) as LedgerEntry),
      ),
    ];
    await expectWhole(store, folder, whole, "with new leases");
    await rotated(store, folder);
    await expectWhole(store, folder, whole, "rotated again");
    expect(await rotated(store, folder)).toEqual([]);
    const { through } = await store.readArchived(NAMESPACE);
    expect(await filesIn(folder, storeId)).toSatisfy((names: string[]) => nameIn(names.at(-1) ?? "")?.last === through);
  });

  test("takes reports on leases that had not ended, which leave the store when they have", async () => {
    const { store, storeId, folder } = await leased(open, 57);
    await rotated(store, folder);
    let whole = await wholeLedger(store, folder);
    const before = (await hotLedger(store)).length;
    whole = await endLeases(store, whole, 2);
    await expectWhole(store, folder, whole, "reported on");
    expect(await rotated(store, folder)).toMatchObject([{ fields: { file: expect.stringMatching(/^late-/) } }]);
    await expectWhole(store, folder, whole, "with a late file");
    const between = (await hotLedger(store)).length;
    expect(between).toBeLessThan(before - 5);
    whole = await endLeases(store, whole, 1_000);
    await rotated(store, folder);
    await expectWhole(store, folder, whole, "with all of them");
    expect((await hotLedger(store)).length).toBeLessThan(between);
    const late = (await filesIn(folder, storeId)).filter((name) => name.startsWith("late-"));
    expect(late, "the later file takes the earlier one over").toHaveLength(1);
  });

  test("keeps a report that comes between the reading of a lease and its cut", async () => {
    const { store, folder } = await leased(open, 30);
    const whole = await hotLedger(store);
    const target = whole.find((lease) => hasEnded(lease)) as LedgerEntry;
    const disk: ArchiveDisk = {
      ...NODE_DISK,
      async rename(path, newPath) {
        await NODE_DISK.rename(path, newPath);
        await store.report(NAMESPACE, lastLedgerIdOf(target), {
          nonce: target.nonce,
          lastSequence: 16_383,
          state: "closed",
        });
      },
    };
    await new Promise((resolve) => setTimeout(resolve, 2));
    await rotated(store, folder, { disk });
    const told = await new Ledger(store, new LedgerArchive(folder)).findLease(NAMESPACE, lastLedgerIdOf(target));
    expect(told?.progress).toMatchObject({ lastSequence: 16_383 });
    await rotated(store, folder);
    await expectWhole(store, folder, await wholeLedger(store, folder));
    const later = await new Ledger(store, new LedgerArchive(folder)).findLease(NAMESPACE, lastLedgerIdOf(target));
    expect(later).toEqual(told);
  });

  test("rotated by two at once is whole, and every file that is left is one that reads", async () => {
    const { store, folder } = await leased(open, 97);
    const whole = await hotLedger(store);
    await Promise.all([1, 2, 3].map(() => rotationOf(store, folder).rotation.rotateAll()));
    await expectWhole(store, folder, whole, "two at once");
    await rotated(store, folder);
    await expectWhole(store, folder, whole, "and once more");
    expect((await hotLedger(store)).filter(hasEnded).length).toBeLessThanOrEqual(KEEP_LEASES);
  });

  test("of a store that was restored has all that either life knew, each lease once, and is rotated again", async () => {
    const { store: lost, storeId, folder, lease } = await leased(open, 43, recentStoreId());
    await rotated(lost, folder);
    const backup = await hotLedger(lost);
    const { through } = await lost.readArchived(NAMESPACE);
    await leaseSome({ store: lost, storeId, lease } as StoreInHand, 40);
    await rotated(lost, folder);
    const whole = await endLeases(lost, await wholeLedger(lost, folder), 3);
    await rotated(lost, folder);
    const forgotten = await wholeLedger(lost, folder);
    expect(forgotten).toEqual(whole);

    const { store, remove } = await open({ bounds: SHORT_BOUNDS });
    toRemove.push(remove);
    await store.importLeases(NAMESPACE, backup);
    await store.cutLedger(NAMESPACE, { storeId, archivedThrough: 0, through, leases: [] });
    await recover(store, storeId, { floor: lastLedgerIdOf(whole.at(-1) as LedgerEntry) });
    // What the lost store had not archived is lost with it; all else is there.
    const archivedToo = (await lost.readArchived(NAMESPACE)).through;
    const known = new Set([
      ...backup.map(lastLedgerIdOf),
      ...whole.map(lastLedgerIdOf).filter((id) => id <= archivedToo),
    ]);
    const expected = whole.filter((lease) => known.has(lastLedgerIdOf(lease)));
    const stillOpen = expected.filter(
      (lease) => !hasEnded(lease) && !backup.some((one) => lastLedgerIdOf(one) === lastLedgerIdOf(lease)),
    );
    await expectWhole(store, folder, expected, "restored");
    await inHand(store, { storeId }).jump();
    for (let count = 0; count < 6; count++) await leaseAboveJump(inHand(store, { storeId }));
    const after = [...expected, ...(await hotLedger(store)).slice(-6)];
    await rotated(store, folder);
    await expectWhole(store, folder, after, "and rotated again");
    expect(stillOpen.length).toBeGreaterThan(0);
  });
});

describe("a rotation", () => {
  test("keeps what is younger than said, also where it is more than so many leases; and the newest in any case", async () => {
    const { store, folder } = await leased(openMemory, 40);
    const ageMs = 10 * DAY_MS;
    expect(await rotated(store, folder, { retention: { leaseCount: 1, ageMs } })).toEqual([]);
    const later = () => Date.now() + 11 * DAY_MS;
    await rotated(store, folder, { retention: { leaseCount: 30, ageMs }, now: later });
    expect((await store.readArchived(NAMESPACE)).through).toBe(
      lastLedgerIdOf((await wholeLedger(store, folder))[9] as LedgerEntry),
    );
    const whole = await wholeLedger(store, folder);
    await rotated(store, folder, { retention: { ageMs }, now: later });
    expect((await store.readArchived(NAMESPACE)).through).toBe(lastLedgerIdOf(whole.at(-2) as LedgerEntry));
  });

  test("waits for a whole segment, but not for longer than a day", async () => {
    const { store, folder } = await leased(openMemory, KEEP_LEASES + 9);
    const waiting = { partialAfterMs: DAY_MS };
    expect(await rotated(store, folder, waiting)).toEqual([]);
    const tomorrow = { ...waiting, now: () => Date.now() + DAY_MS + 60_000 };
    expect(await rotated(store, folder, tomorrow)).toHaveLength(1);
    await leaseSome(inHand(store, { storeId: (await store.readNamespace(NAMESPACE)).storeId }), 15);
    expect(await rotated(store, folder, tomorrow), "a whole one").toHaveLength(1);
    expect(await rotated(store, folder, tomorrow), "the rest waits for its own day").toHaveLength(0);
  });

  test("lets leases go after ninety days of silence; a report that comes still later is told so", async () => {
    const { store, folder } = await leased(openMemory, 30);
    const whole = await hotLedger(store);
    await rotated(store, folder);
    const open = (await hotLedger(store)).find((lease) => !hasEnded(lease)) as LedgerEntry;
    await rotated(store, folder, { now: () => Date.now() + 91 * DAY_MS });
    await expectWhole(store, folder, whole);
    expect((await hotLedger(store)).map(lastLedgerIdOf)).not.toContain(lastLedgerIdOf(open));
    const coordinator = new Coordinator({ store, name: "test", ledgerArchive: new LedgerArchive(folder) });
    const report = { nonce: open.nonce, lastSequence: 4, state: "open" } as const;
    await expect(coordinator.report(NAMESPACE, lastLedgerIdOf(open), report)).rejects.toMatchObject({
      code: "report_too_late",
    });
    const skipped = lastLedgerIdOf(whole.at(-1) as LedgerEntry) + 1;
    await expect(coordinator.report(NAMESPACE, skipped, report)).rejects.toMatchObject({ code: "run_not_leased" });
  });

  test("stops at an empty folder in place of the one that it has filled", async () => {
    const { store, folder } = await leased(openMemory, 30);
    await rotated(store, folder);
    const kept = await hotLedger(store);
    await leaseSome(inHand(store, { storeId: (await store.readNamespace(NAMESPACE)).storeId }), 20);
    const before = await hotLedger(store);
    const empty = await folderForTest();
    for (const other of [empty, join(empty, "missing")]) {
      const { rotation, events } = rotationOf(store, other);
      await rotation.rotateAll();
      expect(events).toMatchObject([{ event: "rotation_failed", fields: { namespace: NAMESPACE, ...UNAVAILABLE } }]);
    }
    expect(await hotLedger(store)).toEqual(before);
    expect(await readdir(empty)).toEqual([]);
    expect(kept.length).toBeLessThan(before.length);
  });

  test("never makes the ledger folder itself: it may be a disk that is not mounted", async () => {
    const { store, folder } = await leased(openMemory, 30);
    const { rotation, events } = rotationOf(store, join(folder, "missing"));
    await rotation.rotateAll();
    expect(events).toMatchObject([{ event: "rotation_failed" }]);
    expect(await readdir(folder)).toEqual([]);
    expect((await store.readArchived(NAMESPACE)).through).toBe(0);
  });

  const full = () => Promise.reject(Object.assign(new Error("no space"), { code: "ENOSPC", syscall: "write" }));
  const failing: readonly [what: string, disk: Partial<ArchiveDisk>][] = [
    ["the disk is full", { write: full }],
    [
      "the disk is full in the middle of a file",
      { write: (path, bytes) => NODE_DISK.write(path, bytes.subarray(0, 99)).then(full) },
    ],
    ["the file does not get its name", { rename: full }],
    [
      "a byte reads otherwise than it was written",
      {
        readWhole: (path) =>
          NODE_DISK.readWhole(path).then((bytes) =>
            Buffer.from(bytes.map((byte, at) => (at === 50 ? byte ^ 1 : byte))),
          ),
      },
    ],
  ];

  test.each(failing)("cuts nothing when %s, tells it, leaves nothing, and goes on later", async (__, deeds) => {
    const { store, storeId, folder } = await leased(openMemory, 30);
    const whole = await hotLedger(store);
    const { rotation, events } = rotationOf(store, folder, { disk: { ...NODE_DISK, ...deeds } });
    await rotation.rotateAll();
    expect(events).toMatchObject([{ event: "rotation_failed" }]);
    expect(await hotLedger(store)).toEqual(whole);
    expect(await filesIn(folder, storeId)).toEqual([]);
    await rotated(store, folder);
    await expectWhole(store, folder, whole);
  });

  test.each([
    ["all", true],
    ["less", false],
  ])(
    "that somebody else outran removes its own file only when the other one tells as much: it tells %s",
    async (__, isAll) => {
      const { store, storeId, folder } = await leased(openMemory, SEGMENT_LEASES + KEEP_LEASES);
      const due = (await hotLedger(store)).slice(0, SEGMENT_LEASES);
      const through = lastLedgerIdOf(due.at(-1) as LedgerEntry);
      let own = "";
      const disk: ArchiveDisk = {
        ...NODE_DISK,
        async rename(path, newPath) {
          await NODE_DISK.rename(path, newPath);
          own = basename(newPath);
          await writeRival(newPath, isAll ? due : due.slice(1));
          await store.cutLedger(NAMESPACE, { storeId, archivedThrough: 0, through, leases: [] });
        },
      };
      await rotated(store, folder, { disk });
      const files = await filesIn(folder, storeId);
      expect(files).toHaveLength(isAll ? 1 : 2);
      expect(files.includes(own)).toBe(!isAll);
      await expectWhole(store, folder, await hotLedger(store));
    },
  );

  test("removes what others left unfinished when it is a day old, and nothing else", async () => {
    const { store, storeId, folder } = await leased(openMemory, 30);
    await rotated(store, folder);
    const own = join(folder, NAMESPACE, storeId.split(".")[0] as string);
    const names = [1, 2].map((digit) => `.0000000${digit}-0000-0000-0000-000000000000.unfinished`);
    for (const name of [...names, "notes.txt"]) await writeFile(join(own, name), "x");
    await utimes(join(own, names[0] as string), 1, 1);
    await utimes(join(own, "notes.txt"), 1, 1);
    await rotated(store, folder);
    const left = await readdir(own);
    expect(left).not.toContain(names[0]);
    expect(left).toEqual(expect.arrayContaining([names[1], "notes.txt"]));
  });

  test("changes nothing while the namespace is sealed", async () => {
    const { store, folder, commands } = await leased(openMemory, 30);
    await store.step(NAMESPACE, commands.seal(FORKED_SEAL));
    expect(await rotated(store, folder)).toEqual([]);
    expect((await store.readArchived(NAMESPACE)).through).toBe(0);
  });
});

describe("a ledger that was rotated", () => {
  async function rotatedStore(): Promise<{
    store: Store;
    folder: string;
    whole: readonly LedgerEntry[];
    through: number;
  }> {
    const { store, folder } = await leased(openMemory, 50);
    const whole = await hotLedger(store);
    await rotated(store, folder);
    return { store, folder, whole, through: (await store.readArchived(NAMESPACE)).through };
  }

  test("is not told of without its folder, but for what stands in the store", async () => {
    const { store, folder, whole, through } = await rotatedStore();
    const ended = whole.find(hasEnded) as LedgerEntry;
    const newest = whole.at(-1) as LedgerEntry;
    const unreadable = join(folder, "missing");
    for (const ledger of [new Ledger(store, undefined), new Ledger(store, new LedgerArchive(unreadable))]) {
      await expect(ledger.findLease(NAMESPACE, lastLedgerIdOf(ended))).rejects.toMatchObject(UNAVAILABLE);
      expect(await ledger.findLease(NAMESPACE, lastLedgerIdOf(newest))).toEqual(newest);
      await expect(ledger.listLeases(NAMESPACE, { belowLedgerId: through, limit: 5 })).rejects.toMatchObject(
        UNAVAILABLE,
      );
      await expect(ledger.exportLeases(NAMESPACE, { afterLedgerId: 0, limit: 5 })).rejects.toMatchObject(UNAVAILABLE);
      await expect(ledger.firstLeaseSince(NAMESPACE, 0)).rejects.toMatchObject(UNAVAILABLE);
    }
    const blind = new Ledger(store, undefined);
    expect(await blind.listLeases(NAMESPACE, { belowLedgerId: 2 ** 33, limit: 2 })).toHaveLength(2);
    expect(await blind.findLease(NAMESPACE, lastLedgerIdOf(newest) + 1)).toBeUndefined();
    expect(await blind.firstLeaseSince(NAMESPACE, Date.now() + DAY_MS)).toBeUndefined();
  });

  test("is inspected, shown and counted as a whole one, also while its folder is away where that is not asked for", async () => {
    const { store, folder, whole } = await rotatedStore();
    const ended = whole.find(hasEnded) as LedgerEntry;
    const seeing = new Coordinator({ store, name: "test", ledgerArchive: new LedgerArchive(folder) });
    expect(await seeing.run(NAMESPACE, lastLedgerIdOf(ended))).toMatchObject({ lease: ended });
    const status = await seeing.status(NAMESPACE);
    await rename(folder, `${folder}-away`);
    const blind = new Coordinator({ store, name: "test", ledgerArchive: new LedgerArchive(folder) });
    await expect(blind.run(NAMESPACE, lastLedgerIdOf(ended))).rejects.toMatchObject(UNAVAILABLE);
    const told = await blind.status(NAMESPACE);
    expect(told).toMatchObject({ highWaterMark: status.highWaterMark, guard: { state: "open" }, rates: [] });
    expect(status.rates.length).toBeGreaterThan(0);
    await rm(`${folder}-away`, { recursive: true });
    await mkdir(folder);
  });

  test("of a store without a clock line tells a run that was skipped as skipped", async () => {
    const store = new MemoryStore();
    const inHand = await withNamespace(store, { storeId: recentStoreId() });
    const folder = await folderForTest();
    await leaseSome(inHand, 20);
    const skipped = (await inHand.read()).highWaterMark + 1;
    await inHand.jump();
    await new Promise((resolve) => setTimeout(resolve, 1));
    const { storeId } = await store.readNamespace(NAMESPACE);
    expect(storeId).not.toBe(storeIdFrom(1));
    await rotated(store, folder);
    expect(await new Ledger(store, new LedgerArchive(folder)).findLease(NAMESPACE, skipped)).toBeUndefined();
  });
});

/** A file of the same range beside the one at `path`, with a lesser name. */
async function writeRival(path: string, leases: readonly LedgerEntry[]): Promise<void> {
  const own = nameIn(basename(path)) as ArchiveName;
  for (;;) {
    const { name, bytes } = await archiveFileOf(own, leases, 0);
    if (name.name < own.name) return await writeFile(join(dirname(path), name.name), bytes);
  }
}

/** Waits until the line has risen above the jump. */
async function leaseAboveJump(inHand: StoreInHand): Promise<void> {
  try {
    await leaseSome(inHand, 1);
  } catch (error) {
    const { code, retryAfterMs } = error as { code?: string; retryAfterMs?: number };
    if (code !== "line_reached") throw error;
    await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
    await leaseAboveJump(inHand);
  }
}
