/**
 * A store's file that is reached by a second name: lock and log of the second name lie elsewhere, so that two processes could lease the same runs.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { shellWord } from "@callnumber/protocol/operator";
import { beforeEach, describe, expect, test } from "vitest";
import { type MountedFile, mountUnavailable, withMounted } from "../../../test/mounted-file.js";
import { backupSqliteFile } from "../src/stores/sqlite/backup.js";
import { mountPointsIn } from "../src/stores/sqlite/file-checks.js";
import { live, type MadeStore, newStore } from "./embedded-place.js";

let place: MadeStore;
let elsewhere: string;
let second: MadeStore;

beforeEach(async () => {
  place = await newStore();
  elsewhere = join(place.folder, "else where");
  await mkdir(elsewhere);
  second = { ...place, path: join(elsewhere, "store.db") };
});

const storeLocked = expect.objectContaining({ code: "store_locked" });

describe("a file that another process has open", () => {
  test("is refused in the directory that it was moved to", async () => {
    const first = live(place);
    await first.does("lease 3");
    await rename(place.path, second.path);
    expect(() => second.open({ path: second.path })).toThrow(storeLocked);
    await first.kill();
    expect(await second.open({ path: second.path }).listNamespaces()).toEqual(["main"]);
  });

  test("is not changed by a log that was left beside another name of it", async () => {
    const first = live(place);
    await first.does("lease 1");
    await copyFile(`${place.path}-wal`, `${second.path}-wal`);
    await first.stop();
    const next = live(place);
    await next.does("lease 3");
    await rename(place.path, second.path);
    const before = await readFile(second.path);
    const log = statSync(`${second.path}-wal`);
    expect(() => second.open({ path: second.path })).toThrow(storeLocked);
    expect(await readFile(second.path)).toEqual(before);
    expect(statSync(`${second.path}-wal`)).toEqual(log);
    await next.kill();
  });

  test("can be backed up while it is leased from", async () => {
    const first = live(place);
    await first.does("lease 3");
    backupSqliteFile(place.path, join(elsewhere, "backup.db"));
    expect(await first.does("lease 1")).toEqual([4]);
    await first.stop();
  });
});

describe.skipIf(mountUnavailable() !== undefined)("a file that is mounted alone", () => {
  const refusalWith = async (options: Partial<MountedFile>) => {
    await writeFile(second.path, "");
    const mounted = withMounted({ file: place.path, secondName: second.path, ...options });
    const process = live(second, { shellPrefix: `exec ${mounted.map(shellWord).join(" ")} "$0" "$@"; ` });
    await process.opened();
    expect(process.start).toBeUndefined();
    return process.refusals;
  };

  test("is refused, and nothing is made beside it", async () => {
    expect(await refusalWith({})).toEqual(["store_unavailable"]);
    expect(await readdir(elsewhere)).toEqual(["store.db"]);
  });

  test("is refused when another process has it open and the system does not show the mount", async () => {
    const first = live(place);
    await first.does("lease 3");
    expect(await refusalWith({ isProcHidden: true })).toEqual(["store_locked"]);
    expect(existsSync(`${second.path}-wal`)).toBe(false);
    expect(await first.does("lease 1")).toEqual([4]);
    await first.stop();
  });

  test("is not backed up", async () => {
    await writeFile(second.path, "");
    const [command = "", ...words] = withMounted({ file: place.path, secondName: second.path });
    const program =
      "const { backupSqliteFile } = await import(process.argv[1]); backupSqliteFile(...process.argv.slice(2));";
    const module = new URL("../dist/stores/sqlite/backup.js", import.meta.url).href;
    const backup = [
      process.execPath,
      "--input-type=module",
      "--eval",
      program,
      module,
      second.path,
      `${second.path}.copy`,
    ];
    const { stderr } = spawnSync(command, [...words, ...backup], { encoding: "utf8" });
    expect(stderr).toContain("is mounted as a single file");
    expect(await readdir(elsewhere)).toEqual(["store.db"]);
  });
});

test("mount points are read with the characters that the system writes as octal numbers", () => {
  const text =
    "36 35 98:0 /mnt1 /a\\040b\\011c\\012d\\134e rw,noatime master:1 - ext3 /dev/root rw\n" +
    "37 35 98:0 /x /data/store.db rw - ext3 /dev/root rw\n";
  expect([...mountPointsIn(text)]).toEqual(["/a b\tc\nd\\e", "/data/store.db", ""]);
});
