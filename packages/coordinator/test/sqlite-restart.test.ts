/**
 * Restarts of the embedded store, with processes that are really killed: no run is skipped where nothing can have been lost; else the
 * store skips ahead to the run ceiling. A plain counter in SQLite meets the same faults, and repeats runs.
 */
import { statSync } from "node:fs";
import { copyFile, open, readdir, rename, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sized } from "../../../test/size-of-run.js";
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
  readonly firstLife?: LifeOptions;
  readonly secondLife?: LifeOptions;
  /** Where the store lies in its second life, when not where it was. */
  readonly movedTo?: (place: Place) => string;
}

/** What the two lives of a store have leased. */
interface Lived {
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** How the second start was judged. */
  readonly start: string | undefined;
}

async function lived(place: Place, story: Story): Promise<Lived> {
  const { early, end = killed, fault, firstLife, secondLife, movedTo } = story;
  const first = live(place, firstLife);
  await first.does("lease 3");
  await early?.(place);
  await first.does("lease 8");
  await end(first);
  await fault?.(place);
  const second = live({ ...place, path: movedTo?.(place) ?? place.path }, secondLife);
  await second.does("lease 3");
  await second.kill();
  expect(first.runs, `${first.start} ${first.refusals} ${first.stderr}`).toHaveLength(11);
  expect(second.runs, `${second.start} ${second.refusals} ${second.stderr}`).toHaveLength(3);
  return { before: risen(first.runs), after: risen(second.runs), start: second.start };
}

function expectDense({ before, after, start }: Lived): void {
  expect(start).toBe("unbroken");
  expect(before).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(after).toEqual([12, 13, 14]);
}

/** Onto the line as it stood when the first life had ended, or higher: past all that could have been leased until then. */
function expectJump({ before, after, start }: Lived, { storeId }: MadeStore, sinceMs: number): void {
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
const oldMarker = (place: Place) => join(place.folder, "old.restart");

describe("a restart", () => {
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
  ])("skips no run %s", async (_, story) => {
    expectDense(await lived(await newStore(), story));
  });

  test("skips no run, fifty times over", async () => {
    const place = await newStore();
    for (let run = 1; run <= 50; run++) {
      const store = place.open();
      expect((await coordinatorOn(store).lease(NAMESPACE, leaseRequest())).firstRun).toBe(run);
      await store.close();
    }
  });
});

/** A process that loses by it what it has answered answers it again. */
const FORGETTING: [string, Story][] = [
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

const DOUBTED: [string, string, Story][] = [
  ["the marker was removed", "no_mark", { fault: async (place) => rm(await markerOf(place)) }],
  ["the marker was emptied", "no_mark", { fault: async (place) => truncate(await markerOf(place), 0) }],
  ["one byte of the marker was changed", "no_mark", { fault: async (place) => changeByte(await markerOf(place), 200) }],
  [
    "the marker is an older one",
    "other_record",
    {
      early: async (place) => copyFile(await markerOf(place), oldMarker(place)),
      fault: async (place) => copyFile(oldMarker(place), await markerOf(place)),
    },
  ],
  [
    "the marker is that of another store",
    "other_record",
    { fault: async (place) => copyFile(await markerOf(await newStore()), await markerOf(place)) },
  ],
  ["the machine was booted meanwhile", "other_boot", { secondLife: { machine: { bootId: "another boot" } } }],
  ["the wall clock leapt meanwhile", "clock_leapt", { secondLife: { clockShiftMs: 3_000 } }],
  [
    "the file was renamed",
    "no_mark",
    {
      fault: async (place) => {
        await rename(place.path, old(place));
        await rename(`${place.path}-wal`, `${old(place)}-wal`);
      },
      movedTo: old,
    },
  ],
];

describe("a restart", () => {
  test.each(FORGETTING)("skips ahead when %s", async (_, story) => {
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
    expectJump(life, place, sinceMs);
    expect(life.start).toBe("other_record");
  });

  test.each(DOUBTED)("skips ahead when %s", async (_, start, story) => {
    const place = await newStore();
    const sinceMs = Date.now();
    const life = await lived(place, story);
    expectJump(life, place, sinceMs);
    expect(life.start).toBe(start);
  });

  test("skips ahead where no directory is memory-backed, and leaves no file there", async () => {
    const place = await newStore();
    const onDisk = await temporaryFolder(place.folder);
    const machine = { markerFolders: [onDisk, join(place.folder, "missing")] };
    const sinceMs = Date.now();
    expectJump(await lived({ ...place, machine }, {}), place, sinceMs);
    expect(await readdir(onDisk)).toEqual([]);
  });
});

describe("the control", () => {
  test.each(FORGETTING.slice(0, sized(1, FORGETTING.length)))(
    "a plain counter in SQLite repeats runs when %s",
    async (_, story) => {
      const place = await newPlace();
      const plain = { script: "counting-process.mjs" };
      const { before, after } = await lived(place, { ...story, firstLife: plain, secondLife: plain });
      expect(after.filter((run) => before.includes(run))).not.toEqual([]);
    },
  );
});

async function changeByte(path: string, at: number): Promise<void> {
  const file = await open(path, "r+");
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
  await file.write(Buffer.from([(buffer[0] as number) ^ 1]), 0, 1, at);
  await file.close();
}
