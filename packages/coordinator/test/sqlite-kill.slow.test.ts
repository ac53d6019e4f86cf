/**
 * kill -9 of a process that leases from an embedded store: at random moments, and at each point between the request and the response;
 * and a restart marker that can't be written.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { NAMESPACE } from "./commands-for-test.js";
import { copyFiles, type Life, live, type MadeStore, markerOf, markOnDisk, newStore } from "./embedded-place.js";

const KILLS = 64;
/** After so many lives there is little left to find with one file. */
const LIVES_OF_A_STORE = 16;

const lineNow = ({ storeId }: MadeStore) => ceilingAt(parseStoreId(storeId) as StoreIdFields, 0, Date.now());

test(`kill -9 at ${KILLS} random moments repeats no run, and each start skips no run or skips ahead`, async () => {
  const random = seededRandom(inject("seed"));
  let [lives, denseLives, skips] = [0, 0, 0];
  while (lives < KILLS) {
    const store = await newStore();
    const answered = new Set<number>();
    let hasSkipped = false;
    for (let life = 0; life < LIVES_OF_A_STORE && !hasSkipped && lives < KILLS; life++, lives++) {
      const markFound = await markOnDisk(store.path);
      const line = lineNow(store);
      const process = live(store, { touches: random() < 0.5 });
      process.say(`forever ${1 + Math.floor(random() * 12)}`);
      await randomMoment(process, random);
      await process.kill();
      expect(process.stderr).toBe("");
      for (const run of process.runs) {
        if (answered.has(run)) expect.fail(`run ${run} was leased twice (life ${life}, ${process.start})`);
        answered.add(run);
      }
      hasSkipped = process.start !== undefined && process.start !== "unbroken";
      if (hasSkipped) skips++;
      if (process.runs.length === 0) continue;
      const first = Math.min(...process.runs);
      if (hasSkipped) expect(first).toBeGreaterThan(line);
      else {
        expect(first).toBe(markFound + 1);
        denseLives++;
      }
    }
    await expectLedgerOf(store, answered);
  }
  // Some are killed before they lease. Nearly all others are killed while the disk syncs, and that causes no recovery.
  expect(denseLives, `${skips} skips`).toBeGreaterThan(KILLS / 2);
});

test.each<[string, string, string, number]>([
  ["before the marker is written skips no run", "killed before", "unbroken", 3],
  ["while the marker is written skips ahead", "killed within", "no_mark", 3],
  ["between marker and commit skips ahead", "killed after", "other_record", 3],
  ["between commit and response discards that run alone", "unanswered", "unbroken", 4],
])("kill -9 %s", async (_, fault, start, markFound) => {
  const store = await newStore();
  const first = await fiveLeases(store, fault);
  expect(first.runs).toEqual([1, 2, 3]);
  expect(await markOnDisk(store.path)).toBe(markFound);
  const line = lineNow(store);
  const second = live(store);
  const [run] = await second.does("lease 1");
  expect(second.start).toBe(start);
  if (start === "unbroken") expect(run).toBe(markFound + 1);
  else expect(run).toBeGreaterThan(line);
});

test("a marker that can't be written is removed before the next commit, and a rolled back store skips ahead", async () => {
  const store = await newStore();
  const first = await fiveLeases(store, "full", 3);
  expect(first.runs).toEqual([1, 2, 3, 4, 5]);
  await expect(markerOf(store)).rejects.toThrow("or none");
  await copyFiles(join(store.folder, "old.db"), store.path);
  expect(await markOnDisk(store.path)).toBe(3);
  const line = lineNow(store);
  const second = live(store);
  const [run] = await second.does("lease 1");
  expect(second.start).toBe("no_mark");
  expect(run).toBeGreaterThan(line);
});

test("a marker that can be neither written nor removed ends leasing: it stays true", async () => {
  const store = await newStore();
  const first = await fiveLeases(store, "full and fixed");
  expect(first.runs).toEqual([1, 2, 3]);
  expect(first.refusals).toEqual(["store_unavailable", "store_unavailable"]);
  expect(existsSync(await markerOf(store))).toBe(true);
  expect(await markOnDisk(store.path)).toBe(3);
  const second = live(store);
  expect(await second.does("lease 1")).toEqual([4]);
  expect(second.start).toBe("unbroken");
});

/** Every run that was answered is in the ledger, and none above the mark. */
async function expectLedgerOf({ path, open }: MadeStore, answered: ReadonlySet<number>): Promise<void> {
  const store = open();
  const mark = await markOnDisk(path);
  for (const run of answered) expect(await findLease(store, NAMESPACE, run)).toMatchObject({ firstRun: run });
  expect(Math.max(...answered, 0)).toBeLessThanOrEqual(mark);
  expect(await findLease(store, NAMESPACE, mark + 1)).toBeUndefined();
  await store.close();
}

/** One after the other, each with a writing of the marker of its own; the fault is at the fourth. Saved after `savedAfter`. */
async function fiveLeases(store: MadeStore, fault: string, savedAfter?: number): Promise<Life> {
  const faults = fault === "unanswered" ? { diesAtAnswer: 4 } : { markerFault: { name: fault, at: 4 } };
  const life = live(store, faults);
  for (let lease = 1; lease <= 5; lease++) {
    await life.does("lease 1");
    if (lease === savedAfter) await copyFiles(store.path, join(store.folder, "old.db"));
  }
  await life.kill();
  return life;
}

/** In the midst of leasing, or while it still opens the store. */
async function randomMoment(life: Life, random: () => number): Promise<void> {
  if (random() < 0.2) return void (await delay(random() * 300));
  await life.leased(1 + Math.floor(random() * 50));
  await delay(random() * 8);
}
