/**
 * A trim that is killed: wherever that happens, each lease is in the store or in a file, with all that was reported on it, and the next
 * trim goes on to where an undisturbed one would have come.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { LEDGER_TRIM_LEASES_MAX } from "../src/stores/store.js";
import { NAMESPACE, reportCommand, SHORT_BOUNDS } from "./commands-for-test.js";
import { embeddedPlace, type MakePlace, type Place, redisPlace } from "./places-for-move.js";
import { init, recentStoreId } from "./steps-for-move.js";
import { inHand } from "./store-in-hand.js";
import { DAY_MS, ledgerOf, linesInFiles, RETENTION_DAYS, trimmed } from "./trims.js";

const TRIMMING_PROCESS = join(import.meta.dirname, "trimming-process.mjs");
/** Two steps. */
const LEASE_COUNT = LEDGER_TRIM_LEASES_MAX + 12;

const WHENS = ["before", "during", "after"] as const;

interface Kill {
  readonly at: number;
  readonly when: (typeof WHENS)[number];
}

interface Done {
  readonly deeds: readonly string[];
  readonly failures: readonly { readonly code?: string }[];
}

interface Trimming {
  readonly place: Place;
  readonly directory: string;
  readonly whole: readonly LedgerEntry[];
}

const PLACES: readonly [string, MakePlace][] = [
  ["the embedded store", embeddedPlace],
  ["Redis", redisPlace],
];

/** A process for each kill. */
const PATIENCE_MS = 600_000;

describe.each(PLACES)("a trim of %s that is killed", (_, makePlace) => {
  test(
    "before, during or after any deed loses no lease, and goes on",
    async () => {
      const undisturbed = await start(await begun(makePlace));
      expect(undisturbed).toEqual({ failures: [], deeds: ["append", "trimLedger", "append", "trimLedger"] });
      for (const [index, deed] of (undisturbed?.deeds ?? []).entries()) {
        for (const when of deed === "append" ? WHENS : WHENS.filter((one) => one !== "during")) {
          const trimming = await begun(makePlace);
          expect(await start(trimming, { at: index + 1, when })).toBeUndefined();
          await checkAfter(trimming, `killed ${when} deed ${index + 1}, ${deed}`);
        }
      }
    },
    PATIENCE_MS,
  );
});

test("a trim that may write no more bytes logs so, loses nothing, and goes on when it may", async (context) => {
  context.skip(spawnSync("prlimit", ["--version"]).status !== 0, "no prlimit on PATH");
  const trimming = await begun(redisPlace);
  const done = await start(trimming, undefined, ["prlimit", "--fsize=700:700"]);
  expect(done?.failures).toMatchObject([{ code: "EFBIG" }]);
  const store = await trimming.place.open();
  expect(await ledgerOf(store)).toEqual(trimming.whole);
  expect(linesInFiles(trimming.directory)).toEqual([]);
  await store.close();
  await checkAfter(trimming, "with a full disk");
});

async function begun(makePlace: MakePlace): Promise<Trimming> {
  const [place, directory] = [await makePlace(), await folderForTest()];
  const store = await place.open();
  const storeId = recentStoreId();
  await init(store, storeId);
  const { lease } = inHand(store, { storeId });
  for (let count = 1; count <= LEASE_COUNT; count++) {
    await lease();
    if (count % 3 === 0) await store.report(NAMESPACE, count, reportCommand({ lastSequence: count }));
  }
  await store.changeSettings(NAMESPACE, { retentionDays: RETENTION_DAYS });
  const whole = await ledgerOf(store);
  await store.close();
  return { place, directory, whole };
}

async function checkAfter({ place, directory, whole }: Trimming, when: string): Promise<void> {
  const store = await place.open();
  expectWhole(await ledgerOf(store), directory, whole, when);
  await trimmed(store, directory);
  const left = await ledgerOf(store);
  expect(left, when).toEqual(whole.slice(-1));
  expectWhole(left, directory, whole, `${when}, and trimmed again`);
  expect(await trimmed(store, directory), when).toEqual([]);
  await store.close();
}

/** Store and files together have each lease as it was. A torn line is the last one of its file. */
function expectWhole(
  left: readonly LedgerEntry[],
  directory: string,
  whole: readonly LedgerEntry[],
  when: string,
): void {
  const known = new Map(left.map((lease) => [lastLedgerIdOf(lease), lease]));
  for (const line of linesInFiles(directory)) {
    const lease = leaseIn(line);
    if (lease === undefined) continue;
    expect(known.get(lastLedgerIdOf(lease)) ?? lease, when).toEqual(lease);
    known.set(lastLedgerIdOf(lease), lease);
  }
  expect(
    whole.filter((lease) => !known.has(lastLedgerIdOf(lease))),
    when,
  ).toEqual([]);
  for (const lease of whole) expect(known.get(lastLedgerIdOf(lease)), when).toEqual(lease);
}

function leaseIn(line: string): LedgerEntry | undefined {
  try {
    return JSON.parse(line) as LedgerEntry;
  } catch {
    return undefined;
  }
}

/** Resolves when it has ended; undefined for a process that was killed. */
async function start(
  { place, directory }: Trimming,
  kill?: Kill,
  wrapper: readonly string[] = [],
): Promise<Done | undefined> {
  const aheadMs = 2 * RETENTION_DAYS * DAY_MS;
  const task = JSON.stringify({ storeUrl: place.url, directory, bounds: SHORT_BOUNDS, aheadMs, kill });
  const [program = "", ...parameters] = [...wrapper, process.execPath, TRIMMING_PROCESS, task];
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
  if (code !== 0) throw new Error(`the trimming process failed: ${code} ${signal} ${failure}`);
  return JSON.parse(said) as Done;
}
