/**
 * Which file may be a store, and by which name: one file with one name, of this user alone. By a second name, lock and log would be
 * elsewhere, and two processes could lease the same runs.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { spawnSync } from "node:child_process";
import { existsSync, realpathSync, statSync } from "node:fs";
import { chmod, chown, copyFile, mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { shellWord } from "@callnumber/protocol/api";
import { beforeEach, describe, expect, test } from "vitest";
import { type MountedFile, mountUnavailable, withMounted } from "../../../test/mounted-file.js";
import { realPathOf } from "../src/platform/real-path.js";
import { backupSqliteFile } from "../src/stores/sqlite/backup.js";
import { faultOfOwner, mountPointsIn } from "../src/stores/sqlite/file-checks.js";
import { live, type MadeStore, newPlace, newStore, type Place } from "./embedded-place.js";

let place: Place;
let named: string;
let away: string;

beforeEach(async () => {
  place = await newPlace();
  [named, away] = [join(place.folder, "named"), join(place.folder, "away")];
  await mkdir(named);
  await mkdir(away);
});

const rejection = (code: string, ...parts: string[]) =>
  expect.objectContaining({
    name: "CoordinatorError",
    code,
    message: expect.stringMatching(parts.map((text) => text.replaceAll(/[.+]/g, "\\$&")).join(".*")),
  });

test("a link without a target is rejected: another process would take another lock by the other name", async () => {
  const [link, target] = [join(named, "store.db"), join(away, "real.db")];
  await symlink(target, link);
  expect(() => place.open({ create: true, path: link })).toThrow(
    rejection("store_unavailable", `${link} is a link to ${target}`, "name the place itself"),
  );
  expect(() => place.open({ create: false, path: link })).toThrow(rejection("store_not_found", `a link to ${target}`));
  expect([await readdir(named), await readdir(away)]).toEqual([["store.db"], []]);
});

test("a link without a target is rejected among the parent directories, too", async () => {
  await symlink(join(away, "unmounted"), join(named, "disk"));
  for (const path of [join(named, "disk", "store.db"), join(named, "disk", "deep", "er", "store.db")]) {
    expect(() => place.open({ create: true, path })).toThrow(
      rejection("store_unavailable", `${named}/disk is a link to`),
    );
  }
  expect(await readdir(away)).toEqual([]);
});

test("a link to itself is rejected", async () => {
  await symlink(join(named, "b.db"), join(named, "a.db"));
  await symlink(join(named, "a.db"), join(named, "b.db"));
  expect(() => place.open({ create: true, path: join(named, "a.db") })).toThrow(rejection("store_unavailable", "link"));
});

test("a link is rejected as a lock: its target would be readable by every user", async () => {
  const path = join(named, "store.db");
  await symlink(join(away, "lock"), `${path}.lock`);
  expect(() => place.open({ create: true, path })).toThrow(rejection("store_unavailable", "store.db.lock is a link"));
  expect(await readdir(away)).toEqual([]);
});

test("a backup never replaces a link without a target", async () => {
  const path = join(named, "store.db");
  await place.open({ create: true, path }).close();
  const to = join(named, "backup.db");
  await symlink(join(away, "backup.db"), to);
  expect(() => backupSqliteFile(path, to)).toThrow(/backup\.db exists already/);
  expect(existsSync(join(away, "backup.db"))).toBe(false);
});

test("a link to a directory gives a new store the same path as an existing one", async () => {
  await symlink(away, join(named, "disk"));
  const path = join(named, "disk", "deep", "store.db");
  expect(realPathOf(path)).toBe(join(realpathSync(away), "deep", "store.db"));
  const store = place.open({ create: true, path });
  expect(() => place.open({ create: false, path: join(away, "deep", "store.db") })).toThrow(
    rejection("store_locked", join(away, "deep", "store.db")),
  );
  await store.close();
  expect(statSync(join(away, "deep", "store.db")).mode & 0o777).toBe(0o600);
});

test.each([
  [0o600, 1000, 0, 1000, undefined],
  [0o660, 1000, 9, 1000, undefined],
  [0o600, 0, 9, 1000, undefined],
  [0o600, 1000, 9, 0, undefined],
  [0o602, 1000, 9, 1000, /mode is 0602.*chmod 600 \/s\.db$/],
  [0o666, 1000, 9, 0, /mode is 0666/],
  [0o660, 1001, 9, 1000, /belongs to the user with id 1001.*runs as 1000.*chown 1000 \/s\.db$/],
  [0o600, 1001, 0, 0, /belongs to the user with id 1001.*runs as 0/],
  [0o777, 1001, 9, undefined, undefined],
])(
  "an existing file of mode %o, of user %s, with %s bytes, is checked for user %s",
  (mode, uid, size, processUid, fault) => {
    const found = faultOfOwner({ mode: 0o100000 | mode, uid, size }, "/s.db", processUid);
    if (fault === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(fault);
  },
);

test("an existing file that every user may write is rejected, and stays as it was", async () => {
  const path = join(named, "store.db");
  await writeFile(path, "");
  await chmod(path, 0o666);
  expect(() => place.open({ create: true, path })).toThrow(rejection("store_unavailable", "mode is 0666"));
  expect([await readFile(path, "utf8"), await readdir(named)]).toEqual(["", ["store.db"]]);
});

test.skipIf(process.geteuid?.() !== 0)("an existing file of another user becomes no store of root", async () => {
  const path = join(named, "store.db");
  await writeFile(path, "", { mode: 0o600 });
  await chown(path, 1001, 1001);
  expect(() => place.open({ create: true, path })).toThrow(rejection("store_unavailable", "the user with id 1001"));
  await rename(path, `${path}.away`);
  await place.open({ create: true, path }).close();
  await chown(path, 1001, 1001);
  await place.open({ create: false, path }).close();
});

test.each([
  [0o600, []],
  [0o640, []],
  [0o660, ["open-store-file"]],
  [0o644, ["open-store-file"]],
])("an existing file of mode %o is opened, with findings", async (mode, found) => {
  const path = join(named, "store.db");
  await place.open({ create: true, path }).close();
  await chmod(path, mode);
  const findings = await place.open({ create: false, path }).preflight();
  expect(findings.map(({ override }) => override)).toEqual(found);
});

test("a path of a directory is rejected", async () => {
  for (const create of [true, false]) {
    expect(() => place.open({ create, path: named })).toThrow(rejection("store_unavailable", "it is a directory"));
  }
});

test("a path of no regular file is rejected", () => {
  expect(() => place.open({ create: true, path: "/dev/null" })).toThrow(rejection("store_unavailable", "regular file"));
});

test("an unreachable path is not reported as missing", () => {
  const path = join(named, "x".repeat(300), "store.db");
  expect(() => place.open({ create: false, path })).toThrow(rejection("store_unavailable", "ENAMETOOLONG"));
});

test.skipIf(process.geteuid?.() === 0)("a path in a directory of another user is not reported as missing", async () => {
  await chmod(named, 0);
  expect(() => place.open({ create: false, path: join(named, "store.db") })).toThrow(
    rejection("store_unavailable", "EACCES", "the user that the store belongs to"),
  );
});

test.skipIf(process.platform !== "linux")("a path in /proc is rejected without a wait", () => {
  expect(() => place.open({ create: true, path: "/proc/callnumber/store.db" })).toThrow(
    rejection("store_unavailable", "ENOENT"),
  );
});

describe("a second name of a store", () => {
  let store: MadeStore;
  let second: MadeStore;

  beforeEach(async () => {
    store = await newStore();
    second = { ...store, path: join(away, "store.db") };
  });

  const storeLocked = expect.objectContaining({ code: "store_locked" });

  test("a store file that another process has open is rejected in the directory that it was moved to", async () => {
    const first = live(store);
    await first.does("lease 3");
    await rename(store.path, second.path);
    expect(() => second.open({ path: second.path })).toThrow(storeLocked);
    await first.kill();
    expect(await second.open({ path: second.path }).listNamespaces()).toEqual(["main"]);
  });

  test("a store file that another process has open is not changed by a log next to another name of it", async () => {
    const first = live(store);
    await first.does("lease 1");
    await copyFile(`${store.path}-wal`, `${second.path}-wal`);
    await first.stop();
    const next = live(store);
    await next.does("lease 3");
    await rename(store.path, second.path);
    const before = await readFile(second.path);
    const log = statSync(`${second.path}-wal`);
    expect(() => second.open({ path: second.path })).toThrow(storeLocked);
    expect(await readFile(second.path)).toEqual(before);
    expect(statSync(`${second.path}-wal`)).toEqual(log);
    await next.kill();
  });

  describe.skipIf(mountUnavailable() !== undefined)("a file that is mounted as a single file", () => {
    const rejectionOf = async (options: Partial<MountedFile>) => {
      await writeFile(second.path, "");
      const mounted = withMounted({ file: store.path, secondName: second.path, ...options });
      const process = live(second, { shellPrefix: `exec ${mounted.map(shellWord).join(" ")} "$0" "$@"; ` });
      await process.opened();
      expect(process.start).toBeUndefined();
      return process.refusals;
    };

    test("a file that is mounted as a single file is rejected, and no file is made next to it", async () => {
      expect(await rejectionOf({})).toEqual(["store_unavailable"]);
      expect(await readdir(away)).toEqual(["store.db"]);
    });

    test("a file mounted as a single file is rejected when another process has it open and the mount is not shown", async () => {
      const first = live(store);
      await first.does("lease 3");
      expect(await rejectionOf({ isProcHidden: true })).toEqual(["store_locked"]);
      expect(existsSync(`${second.path}-wal`)).toBe(false);
      expect(await first.does("lease 1")).toEqual([4]);
      await first.stop();
    });

    test("a file that is mounted as a single file is not backed up", async () => {
      await writeFile(second.path, "");
      const [command = "", ...words] = withMounted({ file: store.path, secondName: second.path });
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
      expect(await readdir(away)).toEqual(["store.db"]);
    });
  });
});

test("mount points are read with the characters that the system writes as octal numbers", () => {
  const text =
    "36 35 98:0 /mnt1 /a\\040b\\011c\\012d\\134e rw,noatime master:1 - ext3 /dev/root rw\n" +
    "37 35 98:0 /x /data/store.db rw - ext3 /dev/root rw\n";
  expect([...mountPointsIn(text)]).toEqual(["/a b\tc\nd\\e", "/data/store.db", ""]);
});
