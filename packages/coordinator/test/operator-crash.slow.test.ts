/**
 * A move or a trim that is killed: wherever that happens, at most one of two stores leases, no run is leased twice, each lease is in the
 * store or in a file, and the same command completes it.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Lease, shellWord } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { describe, expect, onTestFinished, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { Coordinator } from "../src/coordinator.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { recordReport } from "../src/ledger/ledger-changes.js";
import { LEDGER_TRIM_LEASES_MAX } from "../src/retention/ledger-trimmer.js";
import { parseStoreUrl, placeOf } from "../src/stores/store-url.js";
import { NAMESPACE, reportCommand, SHORT_BOUNDS } from "./commands-for-test.js";
import {
  coordinatorOf,
  embeddedPlace,
  leaseOf,
  type MakePlace,
  type Place,
  redisPlace,
  runsOf,
} from "./places-for-move.js";
import { init, recentStoreId } from "./steps-for-move.js";
import { inHand, ledgerOf } from "./store-in-hand.js";
import { DAY_MS, linesInFiles, RETENTION_DAYS, trimmed } from "./trims.js";

interface Kill {
  readonly at: number;
  readonly when: "before" | "during" | "after";
}

/** What the process prints when it completes. */
interface Done {
  readonly changes: readonly string[];
  readonly failures: readonly { readonly code?: string }[];
}

/** Resolves to undefined for a process that was killed. */
function start(task: object, kill?: Kill, wrapper: readonly string[] = []): Promise<Done | undefined> {
  const script = join(import.meta.dirname, "operator-process.mjs");
  const argument = JSON.stringify({ ...task, bounds: SHORT_BOUNDS, kill });
  const [program = "", ...parameters] = [...wrapper, process.execPath, script, argument];
  const child = spawn(program, parameters, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  return closed.then(([code, signal]) => {
    if (signal === "SIGKILL") return undefined;
    if (code !== 0) throw new Error(`the process failed: ${code} ${signal} ${stderr}`);
    return JSON.parse(stdout.replace("ready\n", "")) as Done;
  });
}

describe.each<[string, MakePlace, MakePlace]>([
  ["the embedded store to Redis", embeddedPlace, redisPlace],
  ["Redis to Redis", redisPlace, redisPlace],
])("a move from %s that is killed", (_, makeSource, makeTarget) => {
  interface Moving {
    readonly from: Place;
    readonly to: Place;
    readonly leases: Lease[];
  }

  /** A source with leases, closed again. */
  async function begun(): Promise<Moving> {
    const [from, to] = [await makeSource(), await makeTarget()];
    const source = await from.open();
    await init(source, recentStoreId());
    const coordinator = coordinatorOf(source);
    const leases: Lease[] = [];
    for (const runCount of [1, 4, 2, 1, 3, 1, 1]) leases.push(await leaseOf(coordinator, { runCount }));
    await source.close();
    return { from, to, leases };
  }

  const startMove = ({ from, to }: Moving, kill?: Kill, lostStoreId?: string) => {
    const move = { targetUrl: to.url, place: to.place, pageLeaseCount: 3, lostStoreId };
    return start({ storeUrl: from.url, move }, kill);
  };

  /** Two leases, or none where the store refuses to lease. */
  async function leasesFrom(place: Place, when: string): Promise<readonly Lease[]> {
    const store = await place.open();
    try {
      const coordinator = coordinatorOf(store);
      const first = await leaseOf(coordinator);
      return [first, await leaseOf(coordinator, { last: first })];
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      expect(["namespace_moved", "namespace_not_found"], `${when}: ${message}`).toContain(code);
      return [];
    } finally {
      await store.close();
    }
  }

  /** Runs the same again. Where the new store may have been made, runs what it prints, because it runs nowhere. */
  async function finish(moving: Moving, when: string): Promise<void> {
    const again = await startMove(moving).catch((error: Error) => error);
    if (!(again instanceof Error)) return;
    const [, lostStoreId] =
      /Only if it runs nowhere, .* run `callnumber move .* --confirm-loss (\S+) --apply`/.exec(again.message) ?? [];
    expect(lostStoreId, `${when}: ${again.message}`).toBeDefined();
    await startMove(moving, undefined, lostStoreId);
  }

  async function checkAfterKill(moving: Moving, when: string): Promise<void> {
    const { from, to, leases } = moving;
    const oldOnes = await leasesFrom(from, when);
    const newOnes = await leasesFrom(to, when);
    expect(Math.min(oldOnes.length, newOnes.length), `both stores lease, killed ${when}`).toBe(0);

    await finish(moving, when);
    expect(await leasesFrom(from, when), when).toEqual([]);
    const after = await leasesFrom(to, when);
    expect(after, when).toHaveLength(2);

    const runs = runsOf([...leases, ...oldOnes, ...newOnes, ...after]);
    expect(new Set(runs).size, `a run was leased twice, killed ${when}`).toBe(runs.length);
    const rising = runs.toSorted((one, other) => one - other);
    expect(rising, when).toEqual(runs);
    const target = await to.open();
    expect(runsOf(await ledgerOf(target)), when).toEqual(runs);
    await target.close();
  }

  test("a move killed at any change leaves at most one store that leases, and completes when it, or what it prints, is run", async () => {
    let changeCount = Number.POSITIVE_INFINITY;
    for (let at = 1; at <= changeCount; at++) {
      const killed = async (when: Kill["when"]) => {
        const moving = await begun();
        const done = await startMove(moving, { at, when });
        // No such change: the process was killed at every one that there is.
        if (done !== undefined) changeCount = done.changes.length;
        else await checkAfterKill(moving, `${when} change ${at}`);
      };
      await Promise.all([killed("before"), killed("after")]);
    }
    // Seal, three pages, seal, record.
    expect(changeCount).toBeGreaterThanOrEqual(6);
  });

  test("a move killed at any change is named by source and target, with the command that finishes it, and init is rejected", async () => {
    let changeCount = Number.POSITIVE_INFINITY;
    for (let at = 1; at <= changeCount; at++) {
      const killed = async (when: Kill["when"]) => {
        const [moving, checkpointDir] = [await begun(), await folderForTest()];
        const [fromUrl, toUrl] = [moving.from.url, moving.to.url].map((url) => placeOf(parseStoreUrl(url)).url) as [
          string,
          string,
        ];
        const move = { targetUrl: moving.to.url, place: toUrl, pageLeaseCount: 3, checkpointDir };
        const done = await start({ storeUrl: moving.from.url, move }, { at, when });
        if (done !== undefined) return void (changeCount = done.changes.length);
        const checkpointFileOf = (url: string) => () =>
          openCheckpointFile({ folder: checkpointDir, place: placeOf(parseStoreUrl(url)), namespace: NAMESPACE });
        const asked = async (place: Place) => {
          const store = await place.open();
          const coordinator = new Coordinator({
            store,
            name: "asked",
            bounds: SHORT_BOUNDS,
            checkpointFileOf: checkpointFileOf(place.url),
          });
          const rejection = (error: Error & { code?: string }) => `${error.code}: ${error.message}`;
          const leased = await leaseOf(coordinator).then(() => "leased", rejection);
          const initialized =
            place === moving.to ? await coordinator.initNamespace(NAMESPACE).then(() => "done", rejection) : "";
          await coordinator.stopHeartbeat();
          await store.close();
          return { leased, initialized };
        };
        const [source, target] = [await asked(moving.from), await asked(moving.to)];
        const words = `killed ${when} change ${at}: ${source.leased} | ${target.leased}`;
        if (target.leased === "leased") return expect(source.leased, words).toMatch(/^namespace_moved/);
        // Until the first note nothing has happened.
        if (source.leased === "leased" && target.leased.startsWith("namespace_not_found"))
          return expect(at, words).toBeLessThanOrEqual(3);
        const command = (store: string, to: string) => `--store ${store} --namespace main --to ${to} --apply`;
        // From the note of the new store on, a coordinator there takes it for lost: it may run elsewhere.
        const isNoted = target.leased.includes("but runs up to 1/1 were leased or skipped");
        if (!isNoted) {
          expect(target.leased, words).toMatch(
            /^namespace_lost: .*a move from .* to this store was begun and not finished/,
          );
          expect(target.leased, words).toContain(command(shellWord(fromUrl), "STORE_URL"));
        }
        expect(target.initialized, words).toBe(target.leased);
        if (source.leased === "leased") return;
        expect(source.leased, words).toMatch(/^namespace_moved: .*If the namespace is missing there, finish the move/);
        expect(source.leased, words).toContain(command("STORE_URL", shellWord(toUrl)));
      };
      await Promise.all([killed("before"), killed("after")]);
    }
    // A note, the seal, a note, three pages, the seal, the record, a note.
    expect(changeCount).toBeGreaterThanOrEqual(9);
  });
});

describe("a trim", () => {
  /** Two steps. */
  const LEASE_COUNT = LEDGER_TRIM_LEASES_MAX + 12;

  interface Trimming {
    readonly place: Place;
    readonly directory: string;
    readonly whole: readonly LedgerEntry[];
  }

  async function begun(makePlace: MakePlace): Promise<Trimming> {
    const [place, directory] = [await makePlace(), await folderForTest()];
    const store = await place.open();
    const storeId = recentStoreId();
    await init(store, storeId);
    const { lease } = inHand(store, { storeId });
    for (let count = 1; count <= LEASE_COUNT; count++) {
      await lease();
      if (count % 3 === 0) await recordReport(store, NAMESPACE, count, reportCommand({ lastSequence: count }));
    }
    await store.setRetentionDays(NAMESPACE, RETENTION_DAYS);
    const whole = await ledgerOf(store);
    await store.close();
    return { place, directory, whole };
  }

  const startTrim = ({ place, directory }: Trimming, kill?: Kill, wrapper?: readonly string[]) =>
    start({ storeUrl: place.url, trim: { directory, aheadMs: 2 * RETENTION_DAYS * DAY_MS } }, kill, wrapper);

  /** Store and files together have each lease as it was. A torn line is the last one of its file. */
  function expectWhole(left: readonly LedgerEntry[], { directory, whole }: Trimming, when: string): void {
    const known = new Map(left.map((lease) => [lastLedgerIdOf(lease), lease]));
    for (const line of linesInFiles(directory)) {
      const lease = leaseIn(line);
      if (lease === undefined) continue;
      expect(known.get(lastLedgerIdOf(lease)) ?? lease, when).toEqual(lease);
      known.set(lastLedgerIdOf(lease), lease);
    }
    expect(
      [...known.values()].toSorted((one, other) => one.firstRun - other.firstRun),
      when,
    ).toEqual(whole);
  }

  function leaseIn(line: string): LedgerEntry | undefined {
    try {
      return JSON.parse(line) as LedgerEntry;
    } catch {
      return undefined;
    }
  }

  async function checkAfter(trimming: Trimming, when: string): Promise<void> {
    const { place, directory, whole } = trimming;
    const store = await place.open();
    expectWhole(await ledgerOf(store), trimming, when);
    await trimmed(store, directory);
    const left = await ledgerOf(store);
    expect(left, when).toEqual(whole.slice(-1));
    expectWhole(left, trimming, `${when}, and trimmed again`);
    expect(await trimmed(store, directory), when).toEqual([]);
    await store.close();
  }

  test.each<[string, MakePlace]>([
    ["the embedded store", embeddedPlace],
    ["Redis", redisPlace],
  ])(
    "a trim of %s loses no lease, and completes, when it is killed before, during or after any change",
    async (_, makePlace) => {
      const undisturbed = await startTrim(await begun(makePlace));
      expect(undisturbed).toEqual({ failures: [], changes: ["append", "trimLedger", "append", "trimLedger"] });
      for (const [index, change] of (undisturbed?.changes ?? []).entries()) {
        for (const when of ["before", "during", "after"] as const) {
          if (when === "during" && change !== "append") continue;
          const trimming = await begun(makePlace);
          expect(await startTrim(trimming, { at: index + 1, when })).toBeUndefined();
          await checkAfter(trimming, `killed ${when} change ${index + 1}, ${change}`);
        }
      }
    },
  );

  test("a trim logs the error, loses no lease, and completes later when it may write no more bytes", async (context) => {
    context.skip(spawnSync("prlimit", ["--version"]).status !== 0, "no prlimit on PATH");
    const trimming = await begun(redisPlace);
    const done = await startTrim(trimming, undefined, ["prlimit", "--fsize=700:700"]);
    expect(done?.failures).toMatchObject([{ code: "EFBIG" }]);
    const store = await trimming.place.open();
    expect(await ledgerOf(store)).toEqual(trimming.whole);
    expect(linesInFiles(trimming.directory)).toEqual([]);
    await store.close();
    await checkAfter(trimming, "with a full disk");
  });
});
