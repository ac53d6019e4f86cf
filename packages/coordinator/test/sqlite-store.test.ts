/** What only the embedded store must do: be alone, be durable, and never begin anew by accident. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, linkSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { copyFile, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SqliteStore } from "../src/stores/sqlite-store.js";
import { leaseCommand, storeIdFrom } from "./store-contract.js";

let folder: string;
let path: string;
const open: SqliteStore[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  path = join(folder, "store.db");
});

afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  await rm(folder, { recursive: true });
});

function opened(create: boolean): SqliteStore {
  const store = new SqliteStore({ path, create });
  open.push(store);
  return store;
}

async function newStore(): Promise<SqliteStore> {
  const store = opened(true);
  await store.createNamespace("main", storeIdFrom(1));
  return store;
}

const refusal = (code: string, said: string) =>
  expect.objectContaining({ name: "CoordinatorError", code, message: expect.stringContaining(said) });

describe("opening", () => {
  test("makes no file, and no folder, unless it may", async () => {
    path = join(folder, "deeper", "store.db");
    expect(() => opened(false)).toThrow(refusal("store_missing", path));
    expect(await readdir(folder)).toEqual([]);
    expect(opened(true).isNew).toBe(true);
    expect(statSync(join(folder, "deeper")).mode & 0o777).toBe(0o700);
  });

  test("tells a new store from one that was there", async () => {
    const first = await newStore();
    expect(first.isNew).toBe(true);
    await first.close();
    expect(opened(true).isNew).toBe(false);
  });

  test.each([
    ["an empty file", () => writeFileSync(path, "")],
    [
      "a database without tables",
      () => {
        const database = new DatabaseSync(path);
        database.exec("PRAGMA journal_mode = WAL");
        database.close();
      },
    ],
  ])("%s counts as no store: a process died while it made one", async (_, make) => {
    make();
    expect(() => opened(false)).toThrow(refusal("store_missing", path));
    expect(opened(true).isNew).toBe(true);
  });

  test.each([
    ["a text file", "store_corrupt", () => writeFileSync(path, "something else ".repeat(100))],
    [
      "the database of another program",
      "store_corrupt",
      () => {
        const database = new DatabaseSync(path);
        database.exec("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
        database.close();
      },
    ],
    ["a folder", "store_unavailable", () => mkdirSync(path)],
  ])("refuses %s with %s, and leaves it as it was", async (_, code, make) => {
    make();
    const before = existsSync(path) && statSync(path).isFile() ? await readFile(path) : null;
    expect(() => opened(true)).toThrow(refusal(code, path));
    if (before !== null) expect(await readFile(path)).toEqual(before);
  });

  test("refuses a schema of another release", async () => {
    await (await newStore()).close();
    const database = new DatabaseSync(path);
    database.exec("PRAGMA user_version = 2");
    database.close();
    expect(() => opened(false)).toThrow(refusal("store_unknown_schema", "version 2"));
  });

  test("refuses a second opening, in this process and in another, until the first is closed", async () => {
    const first = await newStore();
    expect(() => opened(false)).toThrow(refusal("store_locked", "stop it first"));
    const other = leasing(path, 1);
    await other.ended;
    expect(other.stderr()).toContain("store_locked");
    expect(other.lines()).toEqual([]);
    await first.close();
    expect(opened(false).isNew).toBe(false);
  });

  test("knows the store by whatever name it is opened, and refuses a file with two names", async () => {
    await newStore();
    symlinkSync(path, join(folder, "link.db"));
    symlinkSync(folder, join(folder, "folder"));
    for (const other of ["link.db", join("folder", "store.db")]) {
      expect(() => new SqliteStore({ path: join(folder, other), create: false })).toThrow(
        refusal("store_locked", path),
      );
    }
    linkSync(path, join(folder, "second.db"));
    expect(() => new SqliteStore({ path: join(folder, "second.db"), create: false })).toThrow(
      refusal("store_unavailable", "hard links"),
    );
  });

  test("leases no more when its lock file is removed: somebody else may have opened the store", async () => {
    const store = await newStore();
    await rm(`${path}.lock`);
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_locked" });
    const second = opened(false);
    expect((await second.lease("main", leaseCommand())).firstRun).toBe(1);
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_locked" });
  });

  test("a file copied after the close holds the last run", async () => {
    const store = await newStore();
    await store.lease("main", leaseCommand({ runCount: 7 }));
    await store.close();
    await copyFile(path, join(folder, "copy.db"));
    const copy = new SqliteStore({ path: join(folder, "copy.db"), create: false });
    open.push(copy);
    expect((await copy.readNamespace("main")).highWaterMark).toBe(7);
  });

  test("a fault of the caller stops nobody else", async () => {
    const store = await newStore();
    await expect(store.lease("main", leaseCommand({ nonce: undefined as never }))).rejects.not.toMatchObject({
      code: "store_unavailable",
    });
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(1);
  });

  test("another program that holds the file for a moment is a passing refusal", async () => {
    const store = await newStore();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("busy"),
    });
    other.exec("ROLLBACK");
    other.close();
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(1);
  });

  test("the lock outlives a process that opens and closes the database file beside it", async () => {
    await newStore();
    new DatabaseSync(path, { readOnly: true }).close();
    expect(() => opened(false)).toThrow(refusal("store_locked", path));
  });
});

describe("durability", () => {
  test("leases of one turn of the event loop share one transaction", async () => {
    const store = await newStore();
    const walBytes = () => statSync(`${path}-wal`).size;
    const start = walBytes();
    await Promise.all(Array.from({ length: 64 }, () => store.lease("main", leaseCommand())));
    const together = walBytes() - start;
    for (let lease = 0; lease < 64; lease++) await store.lease("main", leaseCommand());
    const oneByOne = walBytes() - start - together;
    expect(oneByOne).toBeGreaterThan(20 * together);
  });

  test("a refusal fails its own request only, not those that share its transaction", async () => {
    const store = await newStore();
    const outcomes = await Promise.allSettled([
      store.lease("main", leaseCommand()),
      store.lease("other", leaseCommand()),
      store.lease("main", leaseCommand({ floor: 99 })),
      store.lease("main", leaseCommand()),
    ]);
    expect(
      outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value.firstRun : outcome.reason.code)),
    ).toEqual([1, "namespace_not_initialised", "store_went_back", 2]);
  });

  test("after kill -9 at any moment, no run that was answered is leased again", async () => {
    await (await newStore()).close();
    const answered = new Set<number>();
    for (let round = 0; round < 12; round++) {
      const process = leasing(path, 1 + (round % 3) * 31);
      await process.leased(1 + round * 40);
      process.child.kill("SIGKILL");
      await process.ended;
      for (const line of process.lines().filter((text) => /^\d+$/.test(text))) {
        const run = Number(line);
        if (answered.has(run)) expect.fail(`run ${run} was leased twice`);
        answered.add(run);
      }
      const store = opened(false);
      const { highWaterMark } = await store.readNamespace("main");
      expect(highWaterMark).toBeGreaterThanOrEqual(Math.max(...answered));
      expect(await store.findLease("main", highWaterMark)).toMatchObject({ firstRun: highWaterMark });
      expect(await store.findLease("main", highWaterMark + 1)).toBeUndefined();
      await store.close();
    }
    expect(answered.size).toBeGreaterThan(1000);
  });

  test("a disk that takes no more stops the store for good; what was answered is on it", async () => {
    await (await newStore()).close();
    // A limit on the size of files stands for the full disk. 2048 blocks of 512 or 1024 bytes hold some hundred leases.
    const process = leasing(path, 8, "trap '' XFSZ; ulimit -f 2048; ");
    await process.ended;
    const lines = process.lines();
    expect(lines.slice(-2), process.stderr()).toEqual(["failed store_unavailable", "again store_unavailable"]);
    const answered = lines.filter((line) => /^\d+$/.test(line)).map(Number);
    expect(answered.length).toBeGreaterThan(50);
    expect(new Set(answered).size).toBe(answered.length);
    const { highWaterMark } = await opened(false).readNamespace("main");
    expect(highWaterMark).toBeGreaterThanOrEqual(Math.max(...answered));
  });

  test("a closed store takes no more leases", async () => {
    const store = await newStore();
    await store.close();
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(store.readNamespace("main")).rejects.toMatchObject({ code: "store_unavailable" });
  });

  test("leases that wait when the store closes are finished first", async () => {
    const store = await newStore();
    const waiting = store.lease("main", leaseCommand());
    await store.close();
    expect((await waiting).firstRun).toBe(1);
    expect((await opened(false).readNamespace("main")).highWaterMark).toBe(1);
  });
});

interface Leasing {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  lines(): string[];
  stderr(): string;
  /** Resolves when so many lines were written, or the process ended. */
  leased(count: number): Promise<void>;
}

function leasing(store: string, atOnce: number, shellPrefix = ""): Leasing {
  const script = join(import.meta.dirname, "leasing-process.mjs");
  const child = spawn("sh", ["-c", `${shellPrefix}exec "$0" "$@"`, process.execPath, script, store, String(atOnce)]);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    err += chunk;
  });
  const ended = once(child, "close");
  // A line may be cut by the kill: only whole ones count.
  const lines = () =>
    out
      .slice(0, out.lastIndexOf("\n") + 1)
      .split("\n")
      .slice(0, -1)
      .filter((line) => line !== "ready");
  return {
    child,
    ended,
    lines,
    stderr: () => err,
    async leased(count) {
      while (lines().length < count && child.exitCode === null) {
        await Promise.race([once(child.stdout, "data"), ended]);
      }
    },
  };
}
