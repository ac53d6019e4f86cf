/**
 * A rotation that is killed: wherever that happens, each lease is read exactly once, with all that was reported on it, and the next
 * rotation goes on to where an undisturbed one would have come.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { embeddedPlace, type MakePlace, type Place, redisPlace } from "./places-for-move.js";
import {
  endLeases,
  expectWhole,
  hotLedger,
  KEEP_LEASES,
  leaseSome,
  rotated,
  SEGMENT_LEASES,
  wholeLedger,
} from "./rotations.js";
import { init, recentStoreId } from "./steps-for-move.js";
import { inHand } from "./store-in-hand.js";

const ROTATING_PROCESS = join(import.meta.dirname, "rotating-process.mjs");
const FIRST_LEASES = 24;
const MORE_LEASES = 24;

const WHENS = ["before", "during", "after"] as const;

interface Kill {
  readonly at: number;
  readonly when: (typeof WHENS)[number];
}

interface Done {
  readonly deeds: readonly string[];
  readonly failures: readonly { readonly code?: string }[];
}

interface Rotating {
  readonly place: Place;
  readonly folder: string;
  readonly whole: readonly LedgerEntry[];
}

const PLACES: readonly [string, MakePlace][] = [
  ["the embedded store", embeddedPlace],
  ["Redis", redisPlace],
];

/** A process for each deed that is cut: half a minute where nobody else computes. */
const PATIENCE_MS = 600_000;

describe.each(PLACES)("a rotation of %s that is killed", (_, makePlace) => {
  test(
    "before, during or after any deed loses no lease and doubles none, and goes on",
    async () => {
      const undisturbed = await start(await begun(makePlace));
      // A late file, which takes an earlier one over, and segments.
      expect(undisturbed).toMatchObject({ failures: [], deeds: expect.arrayContaining(["remove"]) });
      const deeds = undisturbed?.deeds ?? [];
      expect(deeds.filter((deed) => deed === "cutLedger").length).toBeGreaterThanOrEqual(3);
      for (const [index, deed] of deeds.entries()) {
        for (const when of deed === "write" ? WHENS : WHENS.filter((one) => one !== "during")) {
          const rotating = await begun(makePlace);
          expect(await start(rotating, { at: index + 1, when })).toBeUndefined();
          await checkAfterKill(rotating, `${when} deed ${index + 1}, ${deed}`);
        }
      }
    },
    PATIENCE_MS,
  );
});

test("a rotation that may write no more bytes says so, loses nothing, and goes on when it may", async (context) => {
  context.skip(spawnSync("prlimit", ["--version"]).status !== 0, "no prlimit on PATH");
  const rotating = await begun(redisPlace);
  const done = await start(rotating, undefined, ["prlimit", "--fsize=700:700"]);
  expect(done?.failures).toMatchObject([{ code: "EFBIG" }]);
  const store = await rotating.place.open();
  await expectWhole(store, rotating.folder, rotating.whole);
  await store.close();
  await checkAfterKill(rotating, "with a full disk");
});

/** A store whose ledger was rotated twice, so that a late file is there to take over, and has more to rotate. */
async function begun(makePlace: MakePlace): Promise<Rotating> {
  const [place, folder] = [await makePlace(), await folderForTest()];
  const store = await place.open();
  const storeId = recentStoreId();
  await init(store, storeId);
  await leaseSome(inHand(store, { storeId }), FIRST_LEASES);
  await rotated(store, folder);
  let whole = await endLeases(store, await wholeLedger(store, folder), 2);
  await rotated(store, folder);
  whole = await endLeases(store, whole, 3);
  await leaseSome(inHand(store, { storeId }), MORE_LEASES);
  whole = [...whole, ...(await hotLedger(store)).slice(-MORE_LEASES)];
  await store.close();
  return { place, folder, whole };
}

async function checkAfterKill({ place, folder, whole }: Rotating, when: string): Promise<void> {
  const store = await place.open();
  await expectWhole(store, folder, whole, `killed ${when}`);
  await rotated(store, folder);
  await expectWhole(store, folder, whole, `killed ${when}, and rotated again`);
  expect(await rotated(store, folder), when).toEqual([]);
  const undisturbed = whole.filter(
    ({ progress }, index) => index >= whole.length - KEEP_LEASES || progress?.state !== "closed",
  );
  expect(await hotLedger(store), when).toEqual(undisturbed);
  const { storeId } = await store.readArchived(NAMESPACE);
  const own = join(folder, NAMESPACE, (storeId ?? "").split(".")[0] as string);
  const late = (await readdir(own)).filter((name) => name.startsWith("late-"));
  // One that was taken over may be left beside the one that holds all of it, until the next takes over both.
  expect(late.length, when).toBeLessThanOrEqual(2);
  // The files alone are enough for whoever has only a copy of them.
  const copy = await folderForTest();
  await cp(folder, copy, { recursive: true });
  await expectWhole(store, copy, whole, `${when}, from a copy of the folder`);
  await store.close();
}

/** Resolves when it has ended; undefined for a process that was killed. */
async function start(
  { place, folder }: Rotating,
  kill?: Kill,
  wrapper: readonly string[] = [],
): Promise<Done | undefined> {
  const task = {
    storeUrl: place.url,
    folder,
    bounds: SHORT_BOUNDS,
    segmentLeases: SEGMENT_LEASES,
    keepLeases: KEEP_LEASES,
    kill,
  };
  const [program = "", ...parameters] = [...wrapper, process.execPath, ROTATING_PROCESS, JSON.stringify(task)];
  const child = spawn(program, parameters, { stdio: ["ignore", "pipe", "pipe"] });
  let [said, failure] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    failure += text;
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  if (signal === "SIGKILL") return undefined;
  if (code !== 0) throw new Error(`the rotating process failed: ${code} ${signal} ${failure}`);
  return JSON.parse(said) as Done;
}
