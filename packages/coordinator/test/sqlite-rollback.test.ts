/**
 * What the embedded store detects while it is open: a leap of the clock, a record that another program changed, removed files.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { offsetBetween, thisMachine } from "../src/stores/sqlite/machine.js";
import { NAMESPACE, SMALL_BOUNDS } from "./commands-for-test.js";
import { coordinatorOn, leaseRequest, live, newPlace, newStore, type Place } from "./embedded-place.js";
import { withNamespace } from "./store-in-hand.js";

const { epsMs } = SMALL_BOUNDS;

let place: Place;

beforeEach(async () => {
  place = await newPlace();
});

describe("a leap of the wall clock", () => {
  /** A store on a machine whose clock offset a test sets. */
  function storeWithClock() {
    const clock = { offsetMs: 5e12 };
    const machine = { ...place.machine, clockOffsetMs: () => clock.offsetMs };
    return { clock, machine, store: place.open({ create: true, machine }) };
  }

  test.each([1, -1])(
    "a leap of the wall clock by more than eps between two steps (%s) ends leasing in every namespace",
    async (direction) => {
      const { clock, store } = storeWithClock();
      const one = await withNamespace(store);
      const two = await withNamespace(store, { namespace: "lists" });
      const leapt = { reason: "epoch_changed" };
      expect((await one.lease()).firstRun).toBe(1);
      clock.offsetMs += direction * epsMs;
      expect((await one.lease()).firstRun).toBe(2);
      clock.offsetMs += direction * (epsMs + 1);
      for (const { lease } of [one, one, two]) await expect(lease()).rejects.toMatchObject(leapt);
      expect(await one.skipAhead()).toBeGreaterThan(65_536);
      await expect(two.lease()).rejects.toMatchObject(leapt);
    },
  );

  test("the coordinator recovers after a leap of the wall clock, and the next restart skips no runs", async () => {
    const { clock, machine, store } = storeWithClock();
    const coordinator = coordinatorOn(store);
    await coordinator.initNamespace(NAMESPACE, { rate: 16 });
    expect((await coordinator.lease(NAMESPACE, leaseRequest())).firstRun).toBe(1);
    clock.offsetMs += 3_600_000;
    // The mark is at the ceiling of a moment from now: only a machine that stands still for that long leases above it.
    const next = await coordinator.lease(NAMESPACE, leaseRequest()).catch((error: unknown) => error);
    if (next instanceof Error) expect(next).toMatchObject({ code: "run_ceiling_reached" });
    else expect(next).toMatchObject({ firstRun: expect.toSatisfy((run: number) => run > 65_536) });
    const { highWaterMark } = await store.readNamespace(NAMESPACE);
    expect(highWaterMark).toBeGreaterThan(65_536);
    await store.close();
    expect(place.open({ machine }).restarts.get(NAMESPACE)).toBe("unbroken");
  });

  test("a leap of the wall clock is not reported when the process was only stopped between reading the two clocks", () => {
    // The first readings are 3 s apart; a quick pair follows.
    const monotonic = [0, 3_000, 3_001, 3_001.5, 3_002, 3_002];
    const offset = offsetBetween(
      () => 1_000_000 + (monotonic[0] as number),
      () => monotonic.shift() as number,
    );
    expect(Math.abs(offset - 1_000_000)).toBeLessThan(1);
  });

  test("a leap of the wall clock is not reported on this machine, in this process or in another one", async () => {
    const { clockOffsetMs } = thisMachine();
    expect(Math.abs(clockOffsetMs() - clockOffsetMs())).toBeLessThan(epsMs);
    const store = await newStore();
    expect(store.open().restarts.get(NAMESPACE)).toBe("unbroken");
  });
});

test("a record that another program changed to an earlier state of itself ends leasing", async () => {
  const { lease } = await withNamespace(place.open({ create: true }));
  await lease();
  const other = new DatabaseSync(place.path);
  const row = other.prepare("SELECT * FROM namespaces").get() as Record<string, string | number>;
  await lease({ runCount: 5 });
  other.exec("DELETE FROM leases WHERE last_ledger_id > 1");
  other.prepare("UPDATE namespaces SET c = ?, t = ?, k = ?").run(row["c"], row["t"], row["k"]);
  other.close();
  for (let tries = 0; tries < 2; tries++) await expect(lease()).rejects.toMatchObject({ reason: "epoch_changed" });
});

test("an open store leases no more when another file is in the place of its own", async () => {
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

test("an open store leases no more when its log was removed, and the next start skips ahead", async () => {
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

test("an open store stays locked when its own process opens and closes the database file", async () => {
  const store = await newStore();
  const first = live(store);
  await first.does("lease 1");
  await first.does("read");
  const second = live(store);
  await second.ended;
  expect(second.refusals).toEqual(["store_locked"]);
  expect(await first.does("lease 1")).toEqual([2]);
});
