/**
 * Copies of an embedded store: of a file, by a move, by a backup. None leases before an operator recovers it, because the original is gone.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { existsSync, statSync } from "node:fs";
import { copyFile, cp, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { backupSqliteFile } from "../src/stores/sqlite/backup.js";
import { isSameFile, steadyBirthNs } from "../src/stores/sqlite/file-identity.js";
import { commandsFor, NAMESPACE, SMALL_BOUNDS } from "./commands-for-test.js";
import {
  coordinatorOn,
  copyFiles,
  executeSql,
  leaseRequest,
  live,
  type MadeStore,
  markerOf,
  markOnDisk,
  memoryFolder,
  newStore,
  temporaryFolder,
} from "./embedded-place.js";
import { stepOn } from "./steps-for-test.js";

const copied = expect.objectContaining({ code: "store_copied", message: expect.stringContaining("recover") });

/** A store that has leased runs 1 to 5, at rest. */
async function storeWithLeases(): Promise<MadeStore> {
  const store = await newStore();
  const life = live(store);
  await life.does("lease 5");
  await life.stop();
  return store;
}

test.each<[string, (store: MadeStore) => Promise<string>]>([
  [
    "the file was copied into the same directory",
    async ({ path, folder }) => {
      await copyFile(path, join(folder, "copy.db"));
      return join(folder, "copy.db");
    },
  ],
  [
    "the folder was copied, with all times and modes",
    async ({ folder }) => {
      const other = await temporaryFolder(tmpdir());
      await cp(folder, other, { recursive: true, preserveTimestamps: true });
      return join(other, "store.db");
    },
  ],
  [
    "it was copied while it leased, with its log",
    async (store) => {
      const life = live(store);
      await life.does("lease 1");
      await copyFiles(store.path, join(store.folder, "copy.db"));
      await life.stop();
      return join(store.folder, "copy.db");
    },
  ],
])("a copy is rejected, and the original continues without skipping runs, when %s", async (_, copy) => {
  const store = await storeWithLeases();
  const path = await copy(store);
  expect(() => store.open({ path })).toThrow(copied);
  expect(() => store.open({ path, create: true })).toThrow(copied);
  expect((await startOf(store)).start).toBe("unbroken");
});

test("a copy of a store on another file system is rejected", async () => {
  const store = await storeWithLeases();
  const elsewhere = await temporaryFolder(memoryFolder());
  expect(statSync(elsewhere).dev).not.toBe(statSync(store.folder).dev);
  const path = join(elsewhere, "store.db");
  await copyFile(store.path, path);
  await rm(store.path);
  expect(() => store.open({ path })).toThrow(copied);
});

test("a copy in the place of the original, with its times, is rejected", async () => {
  const store = await storeWithLeases();
  const { atime, mtime } = statSync(store.path);
  await rename(store.path, join(store.folder, "away.db"));
  await copyFile(join(store.folder, "away.db"), store.path);
  await utimes(store.path, atime, mtime);
  expect(() => store.open()).toThrow(copied);
  expect(existsSync(await markerOf(store)), "the rejection has changed nothing").toBe(true);
  await rename(join(store.folder, "away.db"), store.path);
  expect((await startOf(store)).start).toBe("unbroken");
});

test("a backup is made while a coordinator leases, has one moment of it, and is a copy wherever it is put", async () => {
  const store = await newStore();
  const life = live(store, { touches: true });
  life.say("forever 3");
  await life.leased(30);
  const to = join(store.folder, "backup.db");
  const { bytes, namespaces } = backupSqliteFile(store.path, to);
  expect(namespaces).toEqual([{ namespace: NAMESPACE, storeId: store.storeId }]);
  const answered = life.runs.length;
  await life.leased(answered + 30);
  expect(life.refusals).toEqual([]);
  await life.kill();
  expect(statSync(to)).toMatchObject({ size: bytes, mode: 0o100600 });
  expect((await readdir(store.folder)).filter((name) => name.startsWith("backup"))).toEqual(["backup.db"]);
  const mark = await markOnDisk(to);
  expect(mark).toBeGreaterThanOrEqual(30);
  expect(() => store.open({ path: to })).toThrow(copied);

  // Written over the store itself it keeps inode and birth, and still is no original.
  await copyFile(to, store.path);
  await rm(`${store.path}-wal`);
  expect(() => store.open()).toThrow(copied);
  const restored = store.open({ acceptCopy: true });
  await stepOn(restored, NAMESPACE, commandsFor(store.storeId).recover(), { bounds: SMALL_BOUNDS, now: Date.now });
  await restored.close();
  const { run } = await startOf(store);
  expect(run).toBeGreaterThan(Math.max(...life.runs));
});

test("a backup is made by the process that has the store open, too, without dropping its lock", async () => {
  const store = await newStore();
  const opened = store.open();
  const coordinator = coordinatorOn(opened);
  expect((await coordinator.lease(NAMESPACE, leaseRequest())).firstRun).toBe(1);
  backupSqliteFile(store.path, join(store.folder, "backup.db"));
  const other = live(store);
  await other.ended;
  expect(other.refusals).toEqual(["store_locked"]);
  expect((await coordinator.lease(NAMESPACE, leaseRequest())).firstRun).toBe(2);
});

test("a backup of a store after a kill includes what only its log has", async () => {
  const store = await newStore();
  const life = live(store);
  await life.does("lease 7");
  await life.kill();
  expect(statSync(`${store.path}-wal`).size).toBeGreaterThan(0);
  backupSqliteFile(store.path, join(store.folder, "backup.db"));
  expect(await markOnDisk(join(store.folder, "backup.db"))).toBe(7);
  expect(await startOf(store)).toEqual({ start: "unbroken", run: 8 });
});

test("a backup overwrites nothing, and leaves nothing when it fails", async () => {
  const store = await newStore();
  const to = join(store.folder, "backup.db");
  await writeFile(to, "something else");
  expect(() => backupSqliteFile(store.path, to)).toThrow(TypeError);
  expect(await readFile(to, "utf8")).toBe("something else");
  await rm(to);
  executeSql(join(store.folder, "other-program.db"), "CREATE TABLE t (x)");
  await writeFile(join(store.folder, "text.db"), "no database at all ".repeat(100));
  for (const [name, code] of [
    ["other-program.db", "store_corrupt"],
    ["text.db", "store_corrupt"],
    ["none.db", "store_not_found"],
  ] as const) {
    expect(() => backupSqliteFile(join(store.folder, name), to)).toThrow(expect.objectContaining({ code }));
  }
  const nowhere = join(store.folder, "no");
  expect(() => backupSqliteFile(store.path, join(nowhere, "folder.db"))).toThrow(
    new TypeError(`the backup ${join(nowhere, "folder.db")} can't be made: there is no directory ${nowhere}`),
  );
  expect((await readdir(store.folder)).filter((name) => name.startsWith("backup"))).toEqual([]);
});

test.each([
  ["the inode and birth time are the same", { inode: "7", birthNs: "5" }, { inode: "7", birthNs: "5" }, true],
  ["the inode was used again", { inode: "7", birthNs: "5" }, { inode: "7", birthNs: "6" }, false],
  ["the inode is another", { inode: "7", birthNs: "5" }, { inode: "8", birthNs: "5" }, false],
  ["there are no birth times", { inode: "7", birthNs: null }, { inode: "7", birthNs: "6" }, true],
  [
    "there are no birth times, and the inode is another",
    { inode: "7", birthNs: null },
    { inode: "8", birthNs: "6" },
    false,
  ],
  ["it is a backup", { inode: "backup", birthNs: null }, { inode: "7", birthNs: "6" }, false],
])("a file is compared with the kept identity when %s", (_, kept, found, isSame) => {
  expect(isSameFile(kept, found)).toBe(isSame);
});

test("a birth time that moves when the file changes is not kept", () => {
  expect([steadyBirthNs(5n, 5n), steadyBirthNs(5n, 6n), steadyBirthNs(0n, 0n)]).toEqual(["5", null, null]);
});

/** How a process judges its start on the store, and the run that it then leases. */
async function startOf(store: MadeStore): Promise<{ start: string | undefined; run: number | undefined }> {
  const life = live(store);
  const [run] = await life.does("lease 1");
  await life.stop();
  expect(life.refusals).toEqual([]);
  return { start: life.start, run };
}
