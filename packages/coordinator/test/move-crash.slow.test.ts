/**
 * A move that is killed: wherever that happens, at most one of the two stores leases, the same move goes on, and no run is
 * leased twice.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Lease, LedgerEntry } from "@callnumber/protocol/wire";
import fc from "fast-check";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
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

const MOVING_PROCESS = join(import.meta.dirname, "moving-process.mjs");
const RANDOM_KILLS = 6;
/** Longer than a whole move takes once both stores are open. */
const RANDOM_KILL_LATEST_MS = 120;

interface Kill {
  readonly at: number;
  readonly when: "before" | "after";
}

/** What the moving process says of a move that it saw to its end. */
interface Done {
  readonly changes: number;
}

interface MovingProcess {
  readonly child: ChildProcess;
  /** Resolves when both stores are open. */
  readonly ready: Promise<unknown>;
  /** Undefined for a process that was killed. */
  readonly ended: Promise<Done | undefined>;
}

interface Moving {
  readonly from: Place;
  readonly to: Place;
  readonly leases: Lease[];
}

const PAIRS: readonly [name: string, from: MakePlace, to: MakePlace][] = [
  ["the embedded store to Redis", embeddedPlace, redisPlace],
  ["Redis to Redis", redisPlace, redisPlace],
];

describe.each(PAIRS)("a move from %s that is killed", (_, makeSource, makeTarget) => {
  test("before or after any step leaves at most one store that leases, and goes on when it is typed again", async () => {
    let stepCount = Number.POSITIVE_INFINITY;
    for (let at = 1; at <= stepCount; at++) {
      const killed = async (when: Kill["when"]) => {
        const moving = await begun(makeSource, makeTarget);
        const moved = await start(moving, { at, when }).ended;
        // No such step: every one that there is has been killed at.
        if (moved !== undefined) stepCount = moved.changes;
        else await checkAfterKill(moving, `${when} step ${at}`);
      };
      await Promise.all([killed("before"), killed("after")]);
    }
    // Probe, seal, three pages, record.
    expect(stepCount).toBeGreaterThanOrEqual(6);
  });

  test(`at ${RANDOM_KILLS} random moments leaves at most one store that leases, and goes on`, async () => {
    const seed = inject("seed");
    const moments = fc.sample(fc.integer({ min: 0, max: RANDOM_KILL_LATEST_MS }), { seed, numRuns: RANDOM_KILLS });
    const killed = async (moment: number) => {
      const moving = await begun(makeSource, makeTarget);
      const { child, ready, ended } = start(moving);
      await ready;
      await delay(moment);
      child.kill("SIGKILL");
      await ended;
      await checkAfterKill(moving, `${moment} ms after both stores were open`);
    };
    await Promise.all(moments.map(killed));
  });
});

/** A source with leases, closed again. */
async function begun(makeSource: MakePlace, makeTarget: MakePlace): Promise<Moving> {
  const [from, to] = [await makeSource(), await makeTarget()];
  const source = await from.open();
  await init(source, recentStoreId());
  const coordinator = coordinatorOf(source);
  const leases: Lease[] = [];
  for (const runCount of [1, 4, 2, 1, 3, 1, 1]) leases.push(await leaseOf(coordinator, { runCount }));
  await source.close();
  return { from, to, leases };
}

async function checkAfterKill(moving: Moving, when: string): Promise<void> {
  const { from, to, leases } = moving;
  const oldOnes = await leasesFrom(from, when);
  const newOnes = await leasesFrom(to, when);
  expect(Math.min(oldOnes.length, newOnes.length), `both stores lease, killed ${when}`).toBe(0);

  const moved = await start(moving).ended;
  expect(moved, when).toBeDefined();
  expect(await leasesFrom(from, when), when).toEqual([]);
  const after = await leasesFrom(to, when);
  expect(after, when).toHaveLength(2);

  const runs = runsOf([...leases, ...oldOnes, ...newOnes, ...after]);
  expect(new Set(runs).size, `a run was leased twice, killed ${when}`).toBe(runs.length);
  expect(
    [...runs].sort((one, other) => one - other),
    when,
  ).toEqual(runs);
  const target = await to.open();
  expect(runsOf(await ledgerOf(target)), when).toEqual(runs);
  await target.close();
}

/** Two leases, or none where the store refuses to lease. */
async function leasesFrom(place: Place, when: string): Promise<readonly Lease[]> {
  const store = await place.open();
  try {
    const coordinator = coordinatorOf(store);
    const first = await leaseOf(coordinator);
    return [first, await leaseOf(coordinator, { last: first })];
  } catch (error) {
    expect(["namespace_moved", "namespace_not_found"], `${when}: ${(error as Error).message}`).toContain(
      (error as { code?: string }).code,
    );
    return [];
  } finally {
    await store.close();
  }
}

function ledgerOf(store: Store): Promise<readonly LedgerEntry[]> {
  return store.leases(NAMESPACE, { direction: "oldest_first", limit: 10_000, withoutRecord: true });
}

function start({ from, to }: Moving, kill?: Kill): MovingProcess {
  const task = {
    sourceUrl: from.url,
    targetUrl: to.url,
    place: to.place,
    bounds: SHORT_BOUNDS,
    pageLeaseCount: 3,
    kill,
  };
  const child = spawn(process.execPath, [MOVING_PROCESS, JSON.stringify(task)], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [said, failure] = ["", ""];
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    failure += text;
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const ready = Promise.race([once(child.stdout, "data"), closed]);
  const ended = closed.then(([code]) => {
    if (code !== null && code !== 0) throw new Error(`the moving process failed: ${failure}`);
    const [, result] = /^moved (.*)$/m.exec(said) ?? [];
    return result === undefined ? undefined : (JSON.parse(result) as Done);
  });
  return { child, ready, ended };
}
