/**
 * Copies of an embedded store: made by hand, by a move, by a backup. None leases before an operator has said that the original is gone.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { existsSync, statSync } from "node:fs";
import { copyFile, cp, mkdir, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, test } from "vitest";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { planRecovery, recoverNamespace } from "../src/operator/recover.js";
import { backupSqliteFile } from "../src/stores/sqlite/backup.js";
import { isSameFile, steadyBirthNs } from "../src/stores/sqlite/file-identity.js";
import type { SqliteStore } from "../src/stores/sqlite/store.js";
import { commandsFor, NAMESPACE, reportCommand, SMALL_BOUNDS } from "./commands-for-test.js";
import {
  coordinatorOn,
  copyFiles,
  leaseRequest,
  live,
  type MadeStore,
  markerOf,
  markOnDisk,
  memoryFolder,
  newStore,
  temporaryFolder,
} from "./embedded-place.js";

const copied = expect.objectContaining({ code: "store_copied", message: expect.stringContaining("recover") });

/** A store that has leased runs 1 to 5, at rest. */
async function storeWithLeases(): Promise<MadeStore> {
  const store = await newStore();
  const life = live(store);
  await life.does("lease 5");
  await life.stop();
  return store;
}

describe("a copy is refused, and the original goes on densely", () => {
  test.each<[string, (store: MadeStore) => Promise<string>]>([
    [
      "the file was copied beside it",
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
  ])("%s", async (_, copy) => {
    const store = await storeWithLeases();
    const path = await copy(store);
    expect(() => store.open({ path })).toThrow(copied);
    expect(() => store.open({ path, create: true })).toThrow(copied);
    const { start } = await startOf(store);
    expect(start).toBe("unbroken");
  });

  test("so is a folder that was moved to another file system", async () => {
    const store = await storeWithLeases();
    const elsewhere = await temporaryFolder(memoryFolder());
    expect(statSync(elsewhere).dev).not.toBe(statSync(store.folder).dev);
    const path = join(elsewhere, "store.db");
    await copyFile(store.path, path);
    await rm(store.path);
    expect(() => store.open({ path })).toThrow(copied);
  });

  test("so is a file that was put where the original lay, however young", async () => {
    const store = await storeWithLeases();
    const { atime, mtime } = statSync(store.path);
    await rename(store.path, join(store.folder, "away.db"));
    await copyFile(join(store.folder, "away.db"), store.path);
    await utimes(store.path, atime, mtime);
    expect(() => store.open()).toThrow(copied);
    expect(existsSync(await markerOf(store)), "the refusal has changed nothing").toBe(true);
    await rename(join(store.folder, "away.db"), store.path);
    expect((await startOf(store)).start).toBe("unbroken");
  });
});

describe("a folder that is renamed on its file system", () => {
  test("is the same store: its next start is a doubt", async () => {
    const store = await storeWithLeases();
    const folder = join(await temporaryFolder(store.folder), "renamed");
    await mkdir(folder);
    await rename(store.path, join(folder, "store.db"));
    const { start, run } = await startOf({ ...store, path: join(folder, "store.db") });
    expect(start).toBe("no_mark");
    expect(run).toBeGreaterThan(65_536);
  });
});

describe("recover, when the original is gone", () => {
  async function copyOf(store: MadeStore): Promise<SqliteStore> {
    await copyFile(store.path, join(store.folder, "copy.db"));
    return store.open({ path: join(store.folder, "copy.db"), acceptCopy: true });
  }

  async function recover(store: SqliteStore, isApplied: boolean): Promise<void> {
    const asked = {
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
    };
    const plan = await planRecovery(asked);
    if (isApplied) await recoverNamespace(asked, plan);
  }

  test("looks without changing: every other step is refused, and so is the next opening", async () => {
    const store = await storeWithLeases();
    const copy = await copyOf(store);
    await recover(copy, false);
    const commands = commandsFor(store.storeId);
    for (const command of [
      commands.lease(),
      commands.heartbeat(),
      commands.claim(0),
      commands.confirm(0),
      commands.seal("-"),
    ]) {
      await expect(copy.step(NAMESPACE, command)).rejects.toThrow(copied);
    }
    await expect(copy.report(NAMESPACE, 1, reportCommand())).rejects.toThrow(copied);
    await copy.close();
    expect(() => store.open({ path: copy.path })).toThrow(copied);
  });

  test("makes the copy the store: it leases above everything, now and after a restart", async () => {
    const store = await storeWithLeases();
    const copy = await copyOf(store);
    await recover(copy, true);
    const before = (await copy.readNamespace(NAMESPACE)).highWaterMark;
    expect(before).toBeGreaterThan(65_536);
    await copy.close();
    const { start, run } = await startOf({ ...store, path: copy.path });
    expect(start).toBe("not_open");
    expect(run).toBeGreaterThan(before);
    expect((await startOf({ ...store, path: copy.path })).start).toBe("unbroken");
  });

  test("of a file that is no copy changes nothing of what it is", async () => {
    const store = await storeWithLeases();
    const opened = store.open({ acceptCopy: true });
    expect(opened.restarts.get(NAMESPACE)).toBe("unbroken");
    expect((await coordinatorOn(opened).lease(NAMESPACE, leaseRequest())).firstRun).toBe(6);
  });

  test("believes no marker, even one that agrees", async () => {
    const store = await storeWithLeases();
    await rename(store.path, join(store.folder, "away.db"));
    await copyFile(join(store.folder, "away.db"), store.path);
    const copy = store.open({ acceptCopy: true });
    expect(copy.restarts.get(NAMESPACE)).toBe("no_mark");
    await copy.step(NAMESPACE, commandsFor(store.storeId).recover());
    await expect(copy.step(NAMESPACE, commandsFor(store.storeId).lease())).rejects.toMatchObject({
      reason: "claimed",
    });
  });
});

describe("a backup", () => {
  test("is made while a coordinator leases, holds a moment of it, and is a copy wherever it is put", async () => {
    const store = await newStore();
    const life = live(store, { touches: true });
    life.say("forever 3");
    await life.leased(30);
    const to = join(store.folder, "backup.db");
    const { bytes } = backupSqliteFile(store.path, to);
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
    await restored.step(NAMESPACE, commandsFor(store.storeId).recover());
    await restored.close();
    const { run } = await startOf(store);
    expect(run).toBeGreaterThan(Math.max(...life.runs));
  });

  test("is made by the process that has the store open, too: lock and log stay", async () => {
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

  test("of a store that a kill has left holds what only its log held", async () => {
    const store = await newStore();
    const life = live(store);
    await life.does("lease 7");
    await life.kill();
    expect(statSync(`${store.path}-wal`).size).toBeGreaterThan(0);
    backupSqliteFile(store.path, join(store.folder, "backup.db"));
    expect(await markOnDisk(join(store.folder, "backup.db"))).toBe(7);
    expect(await startOf(store)).toEqual({ start: "unbroken", run: 8 });
  });

  test("overwrites nothing, and leaves nothing when it fails", async () => {
    const store = await newStore();
    const to = join(store.folder, "backup.db");
    await writeFile(to, "something else");
    expect(() => backupSqliteFile(store.path, to)).toThrow(TypeError);
    expect(await readFile(to, "utf8")).toBe("something else");
    await rm(to);
    const stranger = join(store.folder, "stranger.db");
    const database = new DatabaseSync(stranger);
    database.exec("CREATE TABLE t (x)");
    database.close();
    await writeFile(join(store.folder, "text.db"), "no database at all ".repeat(100));
    for (const [name, code] of [
      ["stranger.db", "store_corrupt"],
      ["text.db", "store_corrupt"],
      ["none.db", "store_not_found"],
    ] as const) {
      expect(() => backupSqliteFile(join(store.folder, name), to)).toThrow(expect.objectContaining({ code }));
    }
    expect(() => backupSqliteFile(store.path, join(store.folder, "no", "folder.db"))).toThrow(
      expect.objectContaining({ code: "store_unavailable" }),
    );
    expect((await readdir(store.folder)).filter((name) => name.startsWith("backup"))).toEqual([]);
  });
});

describe("which file it is", () => {
  test.each([
    ["inode and birth are the same", { inode: "7", birthNs: "5" }, { inode: "7", birthNs: "5" }, true],
    ["the inode was given away again", { inode: "7", birthNs: "5" }, { inode: "7", birthNs: "6" }, false],
    ["the inode is another", { inode: "7", birthNs: "5" }, { inode: "8", birthNs: "5" }, false],
    ["births are not kept here", { inode: "7", birthNs: null }, { inode: "7", birthNs: "6" }, true],
    [
      "births are not kept here, and the inode is another",
      { inode: "7", birthNs: null },
      { inode: "8", birthNs: "6" },
      false,
    ],
    ["it is a backup", { inode: "backup", birthNs: null }, { inode: "7", birthNs: "6" }, false],
  ])("%s", (_, kept, found, isSame) => {
    expect(isSameFile(kept, found)).toBe(isSame);
  });

  test("a birth that moves when the file changes is none", () => {
    expect(steadyBirthNs(5n, 5n)).toBe("5");
    expect(steadyBirthNs(5n, 6n)).toBeNull();
    expect(steadyBirthNs(0n, 0n)).toBeNull();
  });
});

/** How a process finds the store, and the run that it then leases. */
async function startOf(store: MadeStore): Promise<{ start: string | undefined; run: number | undefined }> {
  const life = live(store);
  const [run] = await life.does("lease 1");
  await life.stop();
  expect(life.refusals).toEqual([]);
  return { start: life.start, run };
}
