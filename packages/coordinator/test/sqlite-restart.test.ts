/**
 * Restarts of the embedded store, with processes that are really killed: no run is skipped where nothing can have been lost; else the
 * store skips ahead to the run ceiling. A plain counter in SQLite meets the same faults, and repeats runs.
 */
import { statSync } from "node:fs";
import { copyFile, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { drawn, sized } from "../../../test/size-of-run.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { NAMESPACE } from "./commands-for-test.js";
import {
  coordinatorOn,
  copyFiles,
  type Life,
  type LifeOptions,
  leaseRequest,
  live,
  type MadeStore,
  markerOf,
  markOnDisk,
  newPlace,
  newStore,
  type Place,
  temporaryFolder,
} from "./embedded-place.js";

/** Three leases, time for a copy, eight more, `end`, `fault`, and a second life of three leases. */
interface Story {
  readonly early?: (place: Place) => Promise<unknown>;
  readonly end?: (life: Life) => Promise<unknown>;
  readonly fault?: (place: Place) => Promise<unknown>;
}

/** What the two lives of a store have leased. */
interface Lived {
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** How the second start was judged. */
  readonly start: string | undefined;
}

async function lived(place: Place, { early, end = killed, fault }: Story, options?: LifeOptions): Promise<Lived> {
  const first = live(place, options);
  await first.does("lease 3");
  await early?.(place);
  await first.does("lease 8");
  await end(first);
  await fault?.(place);
  const second = live(place, options);
  await second.does("lease 3");
  await second.kill();
  expect(first.runs, `${first.start} ${first.refusals} ${first.stderr}`).toHaveLength(11);
  expect(second.runs, `${second.start} ${second.refusals} ${second.stderr}`).toHaveLength(3);
  return { before: risen(first.runs), after: risen(second.runs), start: second.start };
}

/** To the ceiling at the end of the first life, or above: past all that could have been leased until then. */
function expectSkipAhead({ before, after, start }: Lived, { storeId }: MadeStore, sinceMs: number): void {
  expect(after[0], "a run was leased twice").toBeGreaterThan(Math.max(...before));
  expect(after[0]).toBeGreaterThan(ceilingAt(parseStoreId(storeId) as StoreIdFields, 0, sinceMs));
  expect(start).not.toBe("unbroken");
}

const risen = (runs: readonly number[]) => [...runs].sort((one, other) => one - other);
const killed = (life: Life) => life.kill();
const stopped = (life: Life) => life.stop();
const old = (place: Place) => join(place.folder, "old.db");
const saved = (place: Place) => copyFiles(place.path, old(place));
const restored = (place: Place) => copyFiles(old(place), place.path);
const withoutLog = (place: Place) => rm(`${place.path}-wal`);

test.each<[string, Story]>([
  ["after an ordinary stop", { end: stopped }],
  ["after kill -9", { end: killed }],
  [
    "when the newest state itself was copied away and put back",
    {
      fault: async (place) => {
        await saved(place);
        await restored(place);
      },
    },
  ],
])("a restart skips no run %s", async (_, story) => {
  const { before, after, start } = await lived(await newStore(), story);
  expect(start).toBe("unbroken");
  expect(before).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(after).toEqual([12, 13, 14]);
});

const RESTARTS = sized(5, 50);

test(`a restart skips no run, ${RESTARTS} times over`, async () => {
  const place = await newStore();
  for (let run = 1; run <= RESTARTS; run++) {
    const store = place.open();
    expect((await coordinatorOn(store).lease(NAMESPACE, leaseRequest())).firstRun).toBe(run);
    await store.close();
  }
});

/** A process that loses by it what it has answered answers it again. */
const LOSSES: [string, Story][] = [
  ["an older file was restored in place, with its log", { early: saved, fault: restored }],
  [
    "an older file was restored in place, and the log deleted",
    {
      early: saved,
      fault: async (place) => {
        await withoutLog(place);
        await copyFile(old(place), place.path);
      },
    },
  ],
  ["the store was stopped, and an older file restored in place", { early: saved, end: stopped, fault: restored }],
  ["the log alone was deleted", { fault: withoutLog }],
  [
    "the log alone was cut to half",
    { fault: ({ path }) => truncate(`${path}-wal`, Math.floor(statSync(`${path}-wal`).size / 2)) },
  ],
];

test.each(drawn(LOSSES, 3, inject("seed")))("a restart after a loss skips ahead when %s", async (_, story) => {
  const place = await newStore();
  let markFound = 0;
  let sinceMs = 0;
  const fault = async () => {
    sinceMs = Date.now();
    await story.fault?.(place);
    markFound = await markOnDisk(place.path);
  };
  const life = await lived(place, { ...story, fault });
  expect(markFound, "the fault has lost nothing").toBeLessThan(11);
  expectSkipAhead(life, place, sinceMs);
  expect(life.start).toBe("other_record");
});

test("a restart after a loss skips ahead when file and marker were put back together", async () => {
  const place = await newStore();
  const marker = await markerOf(place);
  const oldMarker = join(place.folder, "old.restart");
  const early = async () => {
    await saved(place);
    await copyFile(marker, oldMarker);
  };
  const fault = async () => {
    // A copy is recognized by the time of its change, when that is more than 2 s after the record's.
    await delay(2_100);
    await restored(place);
    await copyFile(oldMarker, marker);
  };
  const sinceMs = Date.now();
  const life = await lived(place, { early, fault });
  expectSkipAhead(life, place, sinceMs);
  expect(life.start).toBe("mark_put_back");
});

test("a restart after a loss skips ahead where no directory is memory-backed, and leaves no file there", async () => {
  const place = await newStore();
  const onDisk = await temporaryFolder(place.folder);
  const machine = { markerFolders: [onDisk, join(place.folder, "missing")] };
  const sinceMs = Date.now();
  expectSkipAhead(await lived({ ...place, machine }, {}), place, sinceMs);
  expect(await readdir(onDisk)).toEqual([]);
});

test.each(drawn(LOSSES, LOSSES.length, inject("seed")))(
  "a plain counter in SQLite, the control, repeats runs when %s",
  async (_, story) => {
    const place = await newPlace();
    const { before, after } = await lived(place, story, { script: "counting-process.mjs" });
    expect(after.filter((run) => before.includes(run))).not.toEqual([]);
  },
);
