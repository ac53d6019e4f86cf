/**
 * The lock file of an embedded store. A later process may not see or remove a marker: once it has leased, the marker is void, because it
 * has changed the lock file. A process that only reads voids nothing.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { statSync } from "node:fs";
import { chmod, copyFile, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { getuid } from "node:process";
import { beforeEach, expect, test } from "vitest";
import { NAMESPACE } from "./commands-for-test.js";
import { copyFiles, markerOf, memoryFolder, newPlace, type Place, temporaryFolder } from "./embedded-place.js";
import { inHand, withNamespace } from "./store-in-hand.js";

let place: Place;

beforeEach(async () => {
  place = await newPlace();
});

/** A store that has leased once and is closed; its marker stays. */
async function closedStore(at = place): Promise<void> {
  const { store, lease } = await withNamespace(at.open({ create: true }));
  await lease();
  await store.close();
}

/** How the next opening is judged, which leases nothing. */
async function nextStart(options: Parameters<Place["open"]>[0] = {}): Promise<string | undefined> {
  const store = place.open(options);
  const start = store.restarts.get(NAMESPACE);
  await store.close();
  return start;
}

async function settleAndClose(store: ReturnType<Place["open"]>): Promise<void> {
  const { storeId } = await store.readNamespace(NAMESPACE);
  await inHand(store, { storeId }).skipAhead();
  await store.close();
}

/** Leases where the marker can't be found or removed: in a container with another /dev/shm, or as another user. */
async function leaseElsewhere(): Promise<void> {
  const store = place.open({ machine: { markerFolders: [await temporaryFolder(memoryFolder())] } });
  await settleAndClose(store);
}

test("a marker is void after another process leased that could not see it, although the file was put back", async () => {
  await closedStore();
  const old = join(place.folder, "old.db");
  await copyFiles(place.path, old);
  await leaseElsewhere();
  await copyFiles(old, place.path);
  expect(await nextStart()).toBe("lock_changed");
  await leaseElsewhere();
  await copyFiles(old, place.path);
  expect(await nextStart(), "nothing has made the old marker valid").toBe("lock_changed");
});

test("a process that only reads leaves marker and lock file as they are", async () => {
  await closedStore();
  const before = [statSync(`${place.path}.lock`).ctimeMs, await readFile(await markerOf(place))];
  for (const markerFolders of [[place.markerFolder], [await temporaryFolder(memoryFolder())], []]) {
    const store = place.open({ machine: { markerFolders } });
    await store.preflight();
    await store.readNamespace(NAMESPACE);
    await store.close();
  }
  expect([statSync(`${place.path}.lock`).ctimeMs, await readFile(await markerOf(place))]).toEqual(before);
  expect(await nextStart()).toBe("unbroken");
});

test("a store that fails to open leaves no lock", async () => {
  await closedStore();
  const clockOffsetMs = () => {
    throw new Error("no clock");
  };
  const refusal = expect.objectContaining({ code: "store_unavailable", message: expect.stringContaining("no clock") });
  expect(() => place.open({ machine: { ...place.machine, clockOffsetMs } })).toThrow(refusal);
  expect(await nextStart()).toBe("unbroken");
});

test.skipIf(getuid?.() === 0)("a store is not opened without the right to write its lock file", async () => {
  await closedStore();
  await chmod(`${place.path}.lock`, 0o400);
  expect(() => place.open()).toThrow(expect.objectContaining({ code: "store_unavailable" }));
});

test("no marker is kept where the time of a change of the lock file stands still", async () => {
  const machine = { ...place.machine, changedNsOf: () => 5n };
  const store = place.open({ create: true, machine });
  await withNamespace(store);
  expect(await store.preflight()).toMatchObject([{ what: expect.stringContaining("file system does not note") }]);
  await store.close();
  expect(await readdir(place.markerFolder)).toEqual([]);
});

test("the marker in a directory that is no longer the first one is valid, and moves with the next commit", async () => {
  await closedStore();
  const first = await temporaryFolder(memoryFolder());
  const machine = { markerFolders: [first, place.markerFolder] };
  const store = place.open({ machine });
  expect(store.restarts.get(NAMESPACE)).toBe("unbroken");
  await settleAndClose(store);
  expect([(await readdir(first)).length, await readdir(place.markerFolder)]).toEqual([1, []]);
});

test("none of several markers is valid", async () => {
  await closedStore();
  const second = await temporaryFolder(memoryFolder());
  await copyFile(await markerOf(place), (await markerOf(place)).replace(place.markerFolder, second));
  expect(await nextStart({ machine: { markerFolders: [place.markerFolder, second] } })).toBe("no_mark");
});

test("the marker of a store with another name is not found when the store is rolled back to its first name", async () => {
  await closedStore();
  const [old, other, another] = ["old.db", "other.db", "another.db"].map((name) => join(place.folder, name)) as [
    string,
    string,
    string,
  ];
  const anotherStore = place.open({ path: another, create: true });
  await withNamespace(anotherStore);
  await anotherStore.close();
  await copyFiles(place.path, old);
  await rename(place.path, other);
  const renamed = place.open({ path: other });
  expect(renamed.restarts.get(NAMESPACE)).toBe("no_mark");
  await settleAndClose(renamed);
  await copyFiles(old, other);
  await rename(other, place.path);
  expect(await nextStart()).toBe("no_mark");
  expect(await nextStart({ path: another })).toBe("unbroken");
});

test("the marker is void on a machine without a boot id, and removed by the next commit", async () => {
  await closedStore();
  const machine = { ...place.machine, bootId: undefined as never };
  const store = place.open({ machine });
  expect(store.restarts.get(NAMESPACE)).toBe("no_mark");
  await settleAndClose(store);
  expect(await readdir(place.markerFolder)).toEqual([]);
});
