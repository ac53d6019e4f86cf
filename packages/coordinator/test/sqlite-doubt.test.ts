/**
 * What the embedded store notices while it is open: a clock that leaps, a record that another hand has changed, files that go away.
 * And what it makes of a long silence.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { DEFAULT_BOUNDS } from "../src/guard/bounds.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { offsetBetween, thisMachine } from "../src/stores/sqlite/machine.js";
import { SqliteStore } from "../src/stores/sqlite/store.js";
import { NAMESPACE, SMALL_BOUNDS } from "./commands-for-test.js";
import {
  coordinatorOn,
  leaseRequest,
  live,
  newPlace,
  newStore,
  type Place,
  temporaryFolder,
} from "./embedded-place.js";
import { withNamespace } from "./store-in-hand.js";

const { epsMs } = SMALL_BOUNDS;
const DAY_MS = 86_400_000;

let place: Place;

beforeEach(async () => {
  place = await newPlace();
});

describe("a clock that leaps beside the monotonic one", () => {
  test.each([1, -1])("by more than eps between two steps (%s): a doubt, in every namespace", async (direction) => {
    let offsetMs = 5e12;
    const machine = { ...place.machine, clockOffsetMs: () => offsetMs };
    const store = place.open({ create: true, machine });
    const one = await withNamespace(store);
    const two = await withNamespace(store, { namespace: "lists" });
    expect((await one.lease()).firstRun).toBe(1);
    offsetMs += direction * epsMs;
    expect((await one.lease()).firstRun).toBe(2);
    offsetMs += direction * (epsMs + 1);
    await expect(one.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    await expect(one.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    await expect(two.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    expect(await one.jump()).toBeGreaterThan(65_536);
    await expect(two.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
  });

  test("is settled by the coordinator with a jump, and the next restart is dense again", async () => {
    let offsetMs = 5e12;
    const machine = { ...place.machine, clockOffsetMs: () => offsetMs };
    const store = place.open({ create: true, machine });
    const coordinator = coordinatorOn(store);
    await coordinator.initNamespace(NAMESPACE, { rate: 16 });
    expect((await coordinator.lease(NAMESPACE, leaseRequest())).firstRun).toBe(1);
    offsetMs += 3_600_000;
    await expect(coordinator.lease(NAMESPACE, leaseRequest())).rejects.toMatchObject({ code: "run_ceiling_reached" });
    const { highWaterMark } = await store.readNamespace(NAMESPACE);
    expect(highWaterMark).toBeGreaterThan(65_536);
    await store.close();
    expect(place.open({ machine }).restarts.get(NAMESPACE)).toBe("unbroken");
  });

  test("is not seen where a process was only halted between reading the two", () => {
    // The first readings are 3 s apart; a quick pair follows.
    const monotonic = [0, 3_000, 3_001, 3_001.5, 3_002, 3_002];
    const offset = offsetBetween(
      () => 1_000_000 + (monotonic[0] as number),
      () => monotonic.shift() as number,
    );
    expect(Math.abs(offset - 1_000_000)).toBeLessThan(1);
  });

  test("on this machine two readings agree, in this process and in another one", async () => {
    const { clockOffsetMs } = thisMachine();
    expect(Math.abs(clockOffsetMs() - clockOffsetMs())).toBeLessThan(epsMs);
    const store = await newStore();
    expect(store.open().restarts.get(NAMESPACE)).toBe("unbroken");
  });
});

describe("a record that another hand has changed", () => {
  test("to an older state of itself, while the store is open: a doubt, whatever the caller remembers", async () => {
    const store = place.open({ create: true });
    const { lease } = await withNamespace(store);
    await lease();
    const other = new DatabaseSync(place.path);
    const row = other.prepare("SELECT * FROM namespaces").get() as Record<string, string | number>;
    const ledger = other.prepare("SELECT max(last_ledger_id) AS mark FROM leases").get() as { mark: number };
    await lease({ runCount: 5 });
    other.exec(`DELETE FROM leases WHERE last_ledger_id > ${ledger.mark}`);
    other.prepare("UPDATE namespaces SET c = ?, t = ?, k = ?").run(row["c"], row["t"], row["k"]);
    other.close();
    await expect(lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    await expect(lease()).rejects.toMatchObject({ reason: "epoch_changed" });
  });

  test("in one field: nothing is leased, and nothing is written", async () => {
    const store = place.open({ create: true });
    const { lease } = await withNamespace(store);
    await lease();
    const other = new DatabaseSync(place.path);
    other.exec("UPDATE namespaces SET c = '0'");
    other.close();
    await expect(lease()).rejects.toMatchObject({ code: "store_corrupt" });
  });
});

describe("files that go away while the store is open", () => {
  test("another file in the place of its own: it leases no more", async () => {
    const store = place.open({ create: true });
    const { lease } = await withNamespace(store);
    await lease();
    await rename(place.path, join(place.folder, "away.db"));
    await writeFile(place.path, "");
    for (let times = 0; times < 2; times++) {
      await expect(lease()).rejects.toMatchObject({
        code: "store_copied",
        message: expect.stringContaining(place.path),
      });
    }
  });

  test("the log, thrown away as by a program that thinks it is alone: it leases no more, and the next life jumps", async () => {
    const store = await newStore();
    const first = live(store);
    await first.does("lease 3");
    await rm(`${store.path}-wal`);
    expect(await first.does("lease 3")).toEqual([]);
    expect(first.refusals).toEqual(["store_unavailable", "store_unavailable"]);
    const second = live(store);
    const [run] = await second.does("lease 1");
    expect(second.start).toBe("other_record");
    expect(run).toBeGreaterThan(65_536);
  });

  test("the lock stays, although its own process opens and closes the database file", async () => {
    const store = await newStore();
    const first = live(store);
    await first.does("lease 1");
    await first.does("read");
    const second = live(store);
    await second.ended;
    expect(second.refusals).toEqual(["store_locked"]);
    expect(await first.does("lease 1")).toEqual([2]);
  });
});

describe("a silence", () => {
  /** Leases once at an instant, in a coordinator of its own. */
  async function leaseAt(nowMs: number, checkpointDir: string | undefined, create = false): Promise<number> {
    const now = () => nowMs;
    const store = new SqliteStore({ path: place.path, create, now, machine: place.machine });
    const checkpointFileOf = (namespace: string) =>
      openCheckpointFile({
        folder: checkpointDir as string,
        place: { group: "sqlite", addresses: [place.path] },
        namespace,
      });
    const remembering = checkpointDir === undefined ? {} : { checkpointFileOf };
    const coordinator = new Coordinator({ store, name: "test", now, bounds: DEFAULT_BOUNDS, ...remembering });
    try {
      if (create) await coordinator.initNamespace(NAMESPACE);
      return (await coordinator.lease(NAMESPACE, { ...leaseRequest(), sentAtMs: nowMs })).firstRun;
    } finally {
      await coordinator.stopHeartbeat();
      await store.close();
    }
  }

  const startMs = Date.now();

  test.each([
    ["up to the gap is none", 300_000, 2],
    ["longer than the gap is a doubt, although the marker agrees", 300_001, "run_ceiling_reached"],
    ["of 31 days needs an operator", 31 * DAY_MS, "manual_recovery_required"],
  ])("%s", async (_, silenceMs, expected) => {
    expect(await leaseAt(startMs, undefined, true)).toBe(1);
    const next = leaseAt(startMs + silenceMs, undefined);
    if (typeof expected === "number") expect(await next).toBe(expected);
    else await expect(next).rejects.toMatchObject({ code: expected });
  });

  test("of 31 days with a checkpoint that agrees is a doubt like any other", async () => {
    const checkpointDir = await temporaryFolder(place.folder);
    expect(await leaseAt(startMs, checkpointDir, true)).toBe(1);
    const laterMs = startMs + 31 * DAY_MS;
    await expect(leaseAt(laterMs, checkpointDir)).rejects.toMatchObject({ code: "run_ceiling_reached" });
    expect(await leaseAt(laterMs + 10_000, checkpointDir)).toBeGreaterThan(2 * 31 * 86_400);
  });
});

test("each opening is an epoch that no record knows, unless the marker agrees", async () => {
  const machine = { markerFolders: [] };
  const first = place.open({ create: true, machine });
  const { storeId } = await withNamespace(first);
  await first.close();
  for (let start = 0; start < 3; start++) {
    const store = place.open({ machine, bounds: { ...SMALL_BOUNDS } });
    const heartbeat = {
      step: "heartbeat",
      storeId,
      nonce: randomUUID(),
      isSilenceAccepted: false,
      floor: 0,
      generationMin: 0,
    } as const;
    await expect(store.step(NAMESPACE, heartbeat)).rejects.toMatchObject({ reason: "epoch_changed" });
    await store.close();
  }
});
