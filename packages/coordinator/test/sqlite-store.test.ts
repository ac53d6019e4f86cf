/** What only the embedded store must do: be alone, be durable, and never begin anew by accident. */
import { existsSync, linkSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { copyFile, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { IS_MUTATION } from "../../../test/size-of-run.js";
import { ledgerPage } from "../src/ledger/read-ledger.js";
import { commandsFor, holder, LEASE_NONCE, NAMESPACE, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { coordinatorOn, leaseRequest, live, newPlace, newStore, type Place } from "./embedded-place.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

let place: Place;
let folder: string;
let path: string;

beforeEach(async () => {
  place = await newPlace();
  ({ folder, path } = place);
});

const opened = (create: boolean, at = path) => place.open({ create, path: at });

function openedNew(): Promise<StoreInHand> {
  return withNamespace(opened(true));
}

const refusal = (code: string, said: string) =>
  expect.objectContaining({ name: "CoordinatorError", code, message: expect.stringContaining(said) });

// Beside a mutant left out: what waits for a lock or a process takes seconds, and is not about what is mutated.
const testUnmutated = test.skipIf(IS_MUTATION);

describe("opening", () => {
  test("makes no file, and no folder, unless it may", async () => {
    path = join(folder, "deeper", "store.db");
    expect(() => opened(false)).toThrow(refusal("store_not_found", path));
    expect(await readdir(folder)).toEqual([]);
    expect(opened(true).isNew).toBe(true);
    expect(statSync(join(folder, "deeper")).mode & 0o777).toBe(0o700);
  });

  test("tells a new store from one that was there", async () => {
    const first = opened(true);
    expect(first.isNew).toBe(true);
    expect(first.isExclusive).toBe(true);
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
    expect(() => opened(false)).toThrow(refusal("store_not_found", path));
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
    await (await openedNew()).store.close();
    const database = new DatabaseSync(path);
    database.exec("PRAGMA user_version = 5");
    database.close();
    expect(() => opened(false)).toThrow(refusal("store_schema_unsupported", "version 4"));
  });

  testUnmutated("refuses a second opening, in this process and in another, until the first is closed", async () => {
    const { store } = await openedNew();
    expect(() => opened(false)).toThrow(refusal("store_locked", "another process has it open"));
    const other = live(place);
    await other.ended;
    expect(other.refusals).toEqual(["store_locked"]);
    expect(other.start).toBeUndefined();
    await store.close();
    expect(opened(false).isNew).toBe(false);
  });

  test("knows the store by whatever name it is opened, and refuses a file with two names", async () => {
    await openedNew();
    symlinkSync(path, join(folder, "link.db"));
    symlinkSync(folder, join(folder, "folder"));
    for (const other of ["link.db", join("folder", "store.db")]) {
      expect(() => opened(false, join(folder, other))).toThrow(refusal("store_locked", path));
    }
    linkSync(path, join(folder, "second.db"));
    expect(() => opened(false, join(folder, "second.db"))).toThrow(refusal("store_unavailable", "hard links"));
  });

  test.skipIf(IS_MUTATION)(
    "leases no more when its lock file is removed: somebody else may have opened the store",
    async () => {
      const { store, lease } = await openedNew();
      await rm(`${path}.lock`);
      await expect(lease()).rejects.toMatchObject({ code: "store_locked" });
      expect(() => opened(false)).toThrow(refusal("store_locked", path));
      await store.close();
      expect((await coordinatorOn(opened(false)).lease(NAMESPACE, leaseRequest())).firstRun).toBe(1);
    },
  );

  test("after the close the file alone holds everything: nothing is left in the log", async () => {
    const { store, lease } = await openedNew();
    await lease({ runCount: 7 });
    await store.close();
    await copyFile(path, join(folder, "copy.db"));
    const copy = new DatabaseSync(join(folder, "copy.db"));
    expect(copy.prepare("SELECT c FROM namespaces").get()).toEqual({ c: "7" });
    copy.close();
  });

  test("a fault of the caller stops nobody else", async () => {
    const { lease } = await openedNew();
    await expect(lease({ leaseNonce: undefined as never })).rejects.not.toMatchObject({ code: "store_unavailable" });
    expect((await lease()).firstRun).toBe(1);
  });

  testUnmutated("another program that holds the file for a moment is a passing refusal", async () => {
    const { lease } = await openedNew();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(lease()).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("busy"),
    });
    other.exec("ROLLBACK");
    other.close();
    expect((await lease()).firstRun).toBe(1);
  });
});

describe("durability", () => {
  test("leases of one turn of the event loop share one transaction", async () => {
    const { lease } = await openedNew();
    const walBytes = () => statSync(`${path}-wal`).size;
    const start = walBytes();
    await Promise.all(Array.from({ length: 64 }, () => lease()));
    const together = walBytes() - start;
    for (let leases = 0; leases < 64; leases++) await lease();
    const oneByOne = walBytes() - start - together;
    expect(oneByOne).toBeGreaterThan(20 * together);
  });

  test("within one transaction each step finds what the one before it has left, and the file holds what the last one left", async () => {
    const store = opened(true);
    const storeId = storeIdFrom(1);
    const { commands, lease, read } = inHand(store, { storeId });
    const outcomes = await Promise.allSettled([
      store.step(NAMESPACE, commands.init()),
      lease({ runCount: 2 }),
      store.report(NAMESPACE, 2, reportCommand({ lastSequence: 5 })),
      lease(),
      store.step(NAMESPACE, commands.claim(0)),
      lease(),
      store.importLeases(NAMESPACE, [entryOf(70)]),
      store.step(NAMESPACE, commands.claim(1)),
    ]);
    expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
      false,
      true,
    ]);
    expect(outcomes[5]).toMatchObject({ reason: { reason: "claimed" } });
    expect(outcomes[6]).toMatchObject({ reason: { code: "namespace_exists" } });
    const record = await read();
    expect(record).toMatchObject({ highWaterMark: 3, generation: 2, phase: 1 });
    await store.close();
    expect(await opened(false).readNamespace(NAMESPACE)).toEqual(record);
  });

  test("leases are not added to a ledger whose record is made in the same transaction", async () => {
    const store = opened(true);
    await store.importLeases(NAMESPACE, [entryOf(7)]);
    const outcomes = await Promise.allSettled([
      store.step(NAMESPACE, commandsFor(storeIdFrom(1)).recover()),
      store.importLeases(NAMESPACE, [entryOf(70)]),
    ]);
    expect(outcomes).toMatchObject([{ status: "fulfilled" }, { reason: { code: "namespace_exists" } }]);
  });

  testUnmutated(
    "a disk that takes no more stops the store for good; what was answered is on it, and the next start is a doubt",
    async () => {
      const store = await newStore();
      // A limit on the size of files stands for the full disk. 2048 blocks of 512 or 1024 bytes hold some hundred leases.
      const process = live(store, { shellPrefix: "trap '' XFSZ; ulimit -f 2048; " });
      process.say("forever 8");
      await process.ended;
      expect(process.refusals, process.stderr).toEqual(["store_unavailable", "store_unavailable"]);
      expect(process.runs.length).toBeGreaterThan(50);
      expect(new Set(process.runs).size).toBe(process.runs.length);
      expect(await readdir(store.markerFolder)).toEqual([]);
      const again = store.open();
      expect(again.restarts.get(NAMESPACE)).toBe("no_mark");
      expect((await again.readNamespace(NAMESPACE)).highWaterMark).toBeGreaterThanOrEqual(Math.max(...process.runs));
    },
  );

  test("a closed store takes no more leases", async () => {
    const { store, lease, read } = await openedNew();
    await store.close();
    await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(read()).rejects.toMatchObject({ code: "store_unavailable" });
  });

  test("leases that wait when the store closes are finished first", async () => {
    const { store, lease } = await openedNew();
    const waiting = lease();
    await store.close();
    expect((await waiting).firstRun).toBe(1);
    expect((await opened(false).readNamespace(NAMESPACE)).highWaterMark).toBe(1);
  });
});

test("a record that was edited is refused by each that reads it", async () => {
  const { store, storeId } = await openedNew();
  await store.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE namespaces SET c = '9'");
  database.close();
  const edited = opened(false);
  const trim = { storeId, trimmedThrough: 0, through: 0, leasedAtMs: 0, leases: [] };
  for (const read of [() => edited.readNamespace(NAMESPACE), () => edited.trimLedger(NAMESPACE, trim)]) {
    await expect(read()).rejects.toMatchObject({ code: "store_corrupt" });
  }
});

test("a search through the ledger lets leases through that come meanwhile", async () => {
  const { store, lease } = await openedNew();
  await Promise.all(Array.from({ length: 1_200 }, () => lease()));
  const order: string[] = [];
  const search = ledgerPage(store, NAMESPACE, { limit: 1, holder: "nobody" }).then(() => order.push("searched"));
  const leased = lease().then(() => order.push("leased"));
  await Promise.all([search, leased]);
  expect(order).toEqual(["leased", "searched"]);
});

function entryOf(run: number): LedgerEntry {
  const leasedAtMs = 1_790_000_000_000 + run;
  return {
    version: 0,
    firstRun: run,
    runCount: 1,
    leasedAtMs,
    holder,
    coordinator: "old",
    nonce: LEASE_NONCE,
    progress: null,
  };
}
