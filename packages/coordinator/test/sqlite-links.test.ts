/**
 * Whose file a store may be: one file by whatever name, its owner's alone, and never one that a link makes where nobody named it.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { existsSync, realpathSync } from "node:fs";
import { chmod, chown, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { realPathOf } from "../src/platform/real-path.js";
import { backupSqliteFile } from "../src/stores/sqlite/backup.js";
import { faultOfOwner } from "../src/stores/sqlite/file-checks.js";
import { newPlace, type Place } from "./embedded-place.js";

let place: Place;
let named: string;
let away: string;

beforeEach(async () => {
  place = await newPlace();
  [named, away] = [join(place.folder, "named"), join(place.folder, "away")];
  await mkdir(named);
  await mkdir(away);
});

const refusal = (code: string, ...said: string[]) =>
  expect.objectContaining({
    name: "CoordinatorError",
    code,
    message: expect.stringMatching(said.map((words) => words.replaceAll(/[.+]/g, "\\$&")).join(".*")),
  });

describe("a link that leads nowhere", () => {
  test("is not made into a store, nor into a lock: by its second name another process would take another lock", async () => {
    const [link, target] = [join(named, "store.db"), join(away, "real.db")];
    await symlink(target, link);
    expect(() => place.open({ create: true, path: link })).toThrow(
      refusal("store_unavailable", `${link} is a link to ${target}`, "name the place itself"),
    );
    expect(() => place.open({ create: false, path: link })).toThrow(refusal("store_not_found", `a link to ${target}`));
    expect([await readdir(named), await readdir(away)]).toEqual([["store.db"], []]);
  });

  test("is refused among the folders above as well, however many are still to be made", async () => {
    await symlink(join(away, "unmounted"), join(named, "disk"));
    for (const path of [join(named, "disk", "store.db"), join(named, "disk", "deep", "er", "store.db")]) {
      expect(() => place.open({ create: true, path })).toThrow(
        refusal("store_unavailable", `${named}/disk is a link to`),
      );
    }
    expect(await readdir(away)).toEqual([]);
  });

  test("is refused where it leads round to itself", async () => {
    await symlink(join(named, "b.db"), join(named, "a.db"));
    await symlink(join(named, "a.db"), join(named, "b.db"));
    expect(() => place.open({ create: true, path: join(named, "a.db") })).toThrow(refusal("store_unavailable", "link"));
  });

  test("is no lock of a store: behind it a file for everybody would be made", async () => {
    const path = join(named, "store.db");
    await symlink(join(away, "lock"), `${path}.lock`);
    expect(() => place.open({ create: true, path })).toThrow(refusal("store_unavailable", "store.db.lock is a link"));
    expect(await readdir(away)).toEqual([]);
  });

  test("is no place for a backup, which overwrites nothing: the link would be gone", async () => {
    const path = join(named, "store.db");
    await place.open({ create: true, path }).close();
    const to = join(named, "backup.db");
    await symlink(join(away, "backup.db"), to);
    expect(() => backupSqliteFile(path, to)).toThrow(/backup\.db exists already/);
    expect(existsSync(join(away, "backup.db"))).toBe(false);
  });
});

describe("a link that leads to a folder", () => {
  test("gives a store that is to be made the same path as one that was", async () => {
    await symlink(away, join(named, "disk"));
    const path = join(named, "disk", "deep", "store.db");
    expect(realPathOf(path)).toBe(join(realpathSync(away), "deep", "store.db"));
    const store = place.open({ create: true, path });
    expect(() => place.open({ create: false, path: join(away, "deep", "store.db") })).toThrow(
      refusal("store_locked", join(away, "deep", "store.db")),
    );
    await store.close();
    expect((await stat(join(away, "deep", "store.db"))).mode & 0o777).toBe(0o600);
  });
});

describe("a file that was there", () => {
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
  ])("of mode %o, of user %s, with %s bytes, for user %s", (mode, uid, size, processUid, fault) => {
    const found = faultOfOwner({ mode: 0o100000 | mode, uid, size }, "/s.db", processUid);
    if (fault === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(fault);
  });

  test("and that everybody may write is no store, and nothing is made of it", async () => {
    const path = join(named, "store.db");
    await writeFile(path, "");
    await chmod(path, 0o666);
    expect(() => place.open({ create: true, path })).toThrow(refusal("store_unavailable", "mode is 0666"));
    expect([await readFile(path, "utf8"), await readdir(named)]).toEqual(["", ["store.db"]]);
  });

  test.skipIf(process.geteuid?.() !== 0)("and that another user has put there becomes no store of root's", async () => {
    const path = join(named, "store.db");
    await writeFile(path, "", { mode: 0o600 });
    await chown(path, 1001, 1001);
    expect(() => place.open({ create: true, path })).toThrow(refusal("store_unavailable", "the user with id 1001"));
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
  ])("and has the mode %o is leased from, with the findings", async (mode, found) => {
    const path = join(named, "store.db");
    await place.open({ create: true, path }).close();
    await chmod(path, mode);
    const findings = await place.open({ create: false, path }).preflight();
    expect(findings.map(({ override }) => override)).toEqual(found);
  });
});

describe("a place that can't be a store's", () => {
  test("that is a directory is refused as one", async () => {
    for (const create of [true, false]) {
      expect(() => place.open({ create, path: named })).toThrow(refusal("store_unavailable", "it is a directory"));
    }
  });

  test("that is no regular file is refused", () => {
    expect(() => place.open({ create: true, path: "/dev/null" })).toThrow(refusal("store_unavailable", "regular file"));
  });

  test("that can't be reached is not reported as missing", () => {
    const path = join(named, "x".repeat(300), "store.db");
    expect(() => place.open({ create: false, path })).toThrow(refusal("store_unavailable", "ENAMETOOLONG"));
  });

  test.skipIf(process.geteuid?.() === 0)("in a directory of another user is not reported as missing", async () => {
    await chmod(named, 0);
    expect(() => place.open({ create: false, path: join(named, "store.db") })).toThrow(
      refusal("store_unavailable", "EACCES", "the user that the store belongs to"),
    );
  });

  test.skipIf(process.platform !== "linux")("in /proc is refused, and not waited for", () => {
    expect(() => place.open({ create: true, path: "/proc/callnumber/store.db" })).toThrow(
      refusal("store_unavailable", "ENOENT"),
    );
  });
});
