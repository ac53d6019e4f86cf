/** The restart marker as a file in a directory that every user may write to, and the kinds of file systems that matter to a store. */
import { spawnSync } from "node:child_process";
import { linkSync, statSync } from "node:fs";
import {
  chmod,
  chown,
  copyFile,
  cp,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { getuid } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { RestartMark } from "../src/guard/restart-decision.js";
import { isMemoryBacked, type Machine, networkFileSystemOf, thisMachine } from "../src/stores/sqlite/machine.js";
import { RestartMarker, removeRestartMarker } from "../src/stores/sqlite/restart-marker.js";
import { NAMESPACE, PROOF_KEY } from "./commands-for-test.js";
import { executeSql, markerOf, memoryFolder, newPlace, type Place, temporaryFolder } from "./embedded-place.js";
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

function clockShiftedBy(shiftMs: number): Pick<Machine, "clockOffsetMs"> {
  return { clockOffsetMs: () => thisMachine().clockOffsetMs() + shiftMs };
}

async function changeBit(path: string, at: number): Promise<void> {
  const bytes = await readFile(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  await writeFile(path, bytes);
}

/** How the next opening is judged, which leases nothing. */
async function nextStart(options: Parameters<Place["open"]>[0] = {}): Promise<string | undefined> {
  const store = place.open(options);
  const start = store.restarts.get(NAMESPACE);
  await store.close();
  return start;
}

test("the marker is readable by its owner alone, and has no secrets", async () => {
  await closedStore();
  const path = await markerOf(place);
  expect(statSync(path)).toMatchObject({ mode: 0o100600, nlink: 1 });
  const text = await readFile(path, "utf8");
  expect(text).toContain('"highWaterMark":1');
  expect(text).not.toContain(PROOF_KEY);
  expect(text).not.toContain(place.folder);
});

test.each<[string, (marker: string, away: string) => Promise<unknown>]>([
  ["a link to a file that says the truth", (marker, away) => symlink(away, marker)],
  ["a file with a second name", async (marker, away) => linkSync(away, marker)],
  [
    "a file that others may read",
    async (marker, away) => {
      await copyFile(away, marker);
      await chmod(marker, 0o644);
    },
  ],
  ["a pipe without a writer", async (marker) => spawnSync("sh", ["-c", 'mkfifo -m 600 "$0"', marker])],
  ["a file that is far too long", (marker) => writeFile(marker, Buffer.alloc(3_000_000), { mode: 0o600 })],
])("the marker is ignored when it is %s, whose target stays as it was", async (_, lay) => {
  await closedStore();
  const marker = await markerOf(place);
  const moved = join(await temporaryFolder(memoryFolder()), "away");
  await rename(marker, moved);
  const before = await readFile(moved);
  await lay(marker, moved);
  expect(await nextStart()).toBe("no_mark");
  expect(await readFile(moved)).toEqual(before);
});

test.each<[string, string, (marker: string) => Promise<unknown>, Partial<Machine>?]>([
  ["was removed", "no_mark", (marker) => rm(marker)],
  ["was emptied", "no_mark", (marker) => truncate(marker, 0)],
  ["has one changed bit", "no_mark", (marker) => changeBit(marker, 200)],
  [
    "is that of another store",
    "mark_put_back",
    async (marker) => {
      const other = await newPlace();
      await closedStore(other);
      await copyFile(await markerOf(other), marker);
    },
  ],
  ["is of another boot", "other_boot", async () => {}, { bootId: "another boot" }],
  ["is of another clock offset", "clock_leapt", async () => {}, clockShiftedBy(3_000)],
  ["is of another clock offset, backward", "clock_leapt", async () => {}, clockShiftedBy(-3_000)],
])("the marker does not make a restart unbroken when it %s", async (_, start, change, machine) => {
  await closedStore();
  await change(await markerOf(place));
  expect(await nextStart({ machine: { ...place.machine, ...machine } })).toBe(start);
});

test.runIf(getuid?.() === 0)("the marker is ignored when another user owns it (as root)", async () => {
  await closedStore();
  await chown(await markerOf(place), 4711, 4711);
  expect(await nextStart()).toBe("no_mark");
});

test("the marker is kept in the next directory when its place is occupied", async () => {
  await closedStore();
  const marker = await markerOf(place);
  const second = await temporaryFolder(memoryFolder());
  const machine = { markerFolders: [place.markerFolder, second] };
  await rename(marker, `${marker}.away`);
  await mkdir(marker);
  const alone = place.open();
  expect(await alone.preflight()).toMatchObject([{ what: expect.stringContaining(marker) }]);
  await alone.close();
  const store = place.open({ machine });
  expect(store.restarts.get(NAMESPACE)).toBe("no_mark");
  await settleAndClose(store);
  expect(await readdir(second)).toHaveLength(1);
  expect(await nextStart({ machine })).toBe("unbroken");
});

test("the marker of any store is removed when it was not written for 30 days, and not before", async () => {
  await closedStore();
  const own = await markerOf(place);
  const named = (name: string) => join(place.markerFolder, name);
  const files = [named("callnumber-young.restart"), named("callnumber-old.restart"), named("something else")] as const;
  const [young, old, another] = files;
  for (const path of files) await writeFile(path, "", { mode: 0o600 });
  const monthAgo = new Date(Date.now() - 30 * 24 * 3_600_000 - 60_000);
  for (const path of [old, another]) await utimes(path, monthAgo, monthAgo);
  await settleAndClose(place.open());
  expect((await readdir(place.markerFolder)).map(named).sort()).toEqual([own, young, another].sort());
});

test("the marker does not make a restart unbroken when its directory is a copy that was made at once", async () => {
  await closedStore();
  const copy = `${place.markerFolder}.copy`;
  await cp(place.markerFolder, copy, { recursive: true, preserveTimestamps: true });
  await rm(place.markerFolder, { recursive: true });
  await rename(copy, place.markerFolder);
  expect(await nextStart()).toBe("mark_put_back");
});

test("a marker that was put back is noticed next to a namespace whose last write is in the future", async () => {
  const now = () => Date.now() + 600_000;
  const future = place.open({ create: true, now });
  await withNamespace(future, { namespace: "ahead", now });
  await future.close();
  await closedStore();
  const marker = await markerOf(place);
  await delay(2_100);
  await copyFile(marker, `${place.path}.marker`);
  await copyFile(`${place.path}.marker`, marker);
  expect(await nextStart()).toBe("mark_put_back");
});

test("a marker that was overwritten in place while two namespaces lease is not the marker of the idle one", async () => {
  const store = place.open({ create: true });
  const { lease } = await withNamespace(store);
  const lists = await withNamespace(store, { namespace: "lists" });
  const marker = await markerOf(place);
  await copyFile(marker, join(place.folder, "old.restart"));
  await lists.lease();
  await copyFile(join(place.folder, "old.restart"), marker);
  await lease();
  const text = await readFile(await markerOf(place), "utf8");
  expect(text.match(/"namespace":"[a-z]+"/g)).toEqual(['"namespace":"main"']);
  await store.close();
  expect([...place.open().restarts]).toEqual([
    ["lists", "no_mark"],
    [NAMESPACE, "unbroken"],
  ]);
});

test("a marker that another process removed is there again after the next lease", async () => {
  const store = place.open({ create: true });
  const { lease } = await withNamespace(store);
  await lease();
  await rm(await markerOf(place));
  await lease();
  await store.close();
  expect(await nextStart()).toBe("unbroken");
});

test("the marker is removed by `removeRestartMarker` through every link to the store, and no other is", async () => {
  await closedStore();
  const other = join(place.markerFolder, "callnumber-other.restart");
  await writeFile(other, "", { mode: 0o600 });
  const link = join(place.folder, "link.db");
  await symlink(place.path, link);
  removeRestartMarker(join(place.folder, "none.db"), place.machine);
  expect(await readdir(place.markerFolder)).toHaveLength(2);
  removeRestartMarker(link, { markerFolders: [join(place.folder, "nowhere"), place.markerFolder] });
  expect(await readdir(place.markerFolder)).toEqual(["callnumber-other.restart"]);
  expect(await nextStart()).toBe("no_mark");
});

test("the marker is compared for each namespace, and loses those that disagree", async () => {
  const store = place.open({ create: true });
  await withNamespace(store);
  await withNamespace(store, { namespace: "lists" });
  await withNamespace(store, { namespace: "news" });
  await store.close();
  const before = await readFile(await markerOf(place), "utf8");
  const sql = "DELETE FROM namespaces WHERE name = 'news'; UPDATE namespaces SET c = '9' WHERE name = 'lists'";
  executeSql(place.path, sql);
  const again = place.open();
  expect([...again.restarts]).toEqual([[NAMESPACE, "unbroken"]]);
  await settleAndClose(again);
  const after = await readFile(await markerOf(place), "utf8");
  expect([before, after].map((text) => text.match(/"namespace":"[a-z]+"/g))).toEqual([
    ['"namespace":"main"', '"namespace":"lists"', '"namespace":"news"'],
    ['"namespace":"main"'],
  ]);
});

test("the marker has a slot for each namespace that fits the longest mark", () => {
  const longest = (letter: string): RestartMark => ({
    bootId: "12345678-1234-1234-1234-123456789012",
    clockOffsetMs: -1_234_567_890_123.1235,
    lockChangedNs: "1790000000000000000",
    namespace: letter.repeat(63),
    storeId: `12345678-1234-1234-1234-123456789012.${2 ** 30 - 1}.${1e15 - 1}.16`,
    version: 7,
    highWaterMark: 2 ** 30 - 1,
    generation: 1e15 - 1,
    checksum: "f".repeat(40),
  });
  const machine = { ...thisMachine(), ...place.machine };
  const marker = new RestartMarker(place.path, machine);
  const marks = [longest("a"), longest("b"), longest("c")];
  marker.write(marks);
  const changed = { ...longest("b"), highWaterMark: 1 };
  marker.write([changed]);
  marker.close();
  const { found } = new RestartMarker(place.path, machine);
  expect([...found.marks.values()]).toMatchObject([marks[0] as object, changed, marks[2] as object]);
  expect(new RestartMarker(`${place.path}.other`, machine).found.marks.size).toBe(0);
});

describe("findings", () => {
  async function findings(options: Parameters<Place["open"]>[0]): Promise<readonly (string | undefined)[]> {
    const store = place.open(options);
    const found = await store.preflight();
    await store.close();
    for (const { code } of found) expect(code).toBeUndefined();
    return found.map(({ what, override }) => override ?? what);
  }

  test("findings are none for a sound store", async () => {
    await closedStore();
    expect(await findings({})).toEqual([]);
  });

  test("findings report that there is no marker, and a network file system", async () => {
    await closedStore();
    const machine = { ...place.machine, markerFolders: [place.folder] };
    expect(await findings({ machine })).toEqual(["no-restart-marker"]);
    const notToBeListed = { ...place.machine, markerFolders: [await markerOf(place)] };
    expect(await findings({ machine: notToBeListed })).toEqual(["no-restart-marker"]);
    const onNetwork = { ...place.machine, fileSystemTypeOf: () => 0x6969 };
    place = { ...place, path: join(place.folder, "other.db") };
    const options = { path: place.path, create: true, machine: onNetwork, allowNetworkFileSystem: true };
    expect(await findings(options)).toEqual(["no-restart-marker", "network-file-system"]);
  });

  test("findings report a store that changed while it was closed", async () => {
    await closedStore();
    const marker = await markerOf(place);
    const old = join(place.folder, "old.restart");
    const store = place.open();
    const { lease } = inHand(store, await store.readNamespace(NAMESPACE));
    await lease();
    await copyFile(marker, old);
    await lease();
    await store.close();
    await copyFile(old, marker);
    expect(await findings({})).toEqual([expect.stringContaining("had changed when it was opened (main)")]);
    await rm(marker);
    await copyFile(old, marker);
    expect(await findings({})).toEqual([expect.stringContaining("marker of the store")]);
  });
});

test("memory-backed file systems are distinguished from others", () => {
  expect(isMemoryBacked(memoryFolder(), thisMachine())).toBe(true);
  expect(isMemoryBacked("/proc", thisMachine())).toBe(false);
  expect(isMemoryBacked(join(place.folder, "missing"), thisMachine())).toBe(false);
  expect(networkFileSystemOf(memoryFolder(), thisMachine())).toBeUndefined();
});

test.each([
  ["NFS", 0x6969],
  ["CIFS", 0xff534d42],
  ["CIFS", 0xff534d42 | 0],
  ["SMB2", 0xfe534d42],
  ["FUSE", 0x65735546],
  ["9P", 0x01021997],
  ["Ceph", 0x00c36400],
])("a store on %s (%i) is rejected before any file is made, unless it is allowed", async (name, type) => {
  const machine = { ...place.machine, fileSystemTypeOf: () => type };
  place = { ...place, path: join(place.folder, "deeper", "store.db") };
  const { path } = place;
  expect(() => place.open({ path, create: true, machine })).toThrow(
    expect.objectContaining({ code: "store_unavailable", message: expect.stringContaining(name) }),
  );
  expect(await readdir(place.folder)).toEqual([]);
  const { lease } = await withNamespace(place.open({ path, create: true, machine, allowNetworkFileSystem: true }));
  expect((await lease()).firstRun).toBe(1);
});

test("the store, its log and its lock are readable by their owner alone", async () => {
  await withNamespace(place.open({ create: true }));
  for (const part of ["", "-wal", "-shm", ".lock"]) {
    expect(statSync(`${place.path}${part}`).mode & 0o777, part).toBe(0o600);
  }
});

async function settleAndClose(store: ReturnType<Place["open"]>): Promise<void> {
  const { storeId } = await store.readNamespace(NAMESPACE);
  await inHand(store, { storeId }).skipAhead();
  await store.close();
}
