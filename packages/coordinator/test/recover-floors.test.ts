/**
 * What an operator knows beyond the store, an archive's greatest run above all, holds a recovery back until the clock line has
 * passed it. It matters where the line itself was wrong: after a clock that was ahead, or for the id of another store.
 */
import { describe, expect, test } from "vitest";
import { CORRUPT, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import type { Floor } from "../src/operator/recover.js";
import { planRecovery, type RecoverOptions, recoverNamespace, refusalOf } from "../src/operator/recover.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterJump, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";

const AHEAD_MS = 3 * 3_600_000;

function asked({ clock, store, storeId }: World, floors: readonly Floor[]): RecoverOptions {
  const { now, pause } = clock;
  const common = { store, namespace: NAMESPACE, storeId, now, pause, bounds: SHORT_BOUNDS, watchMs: 0 };
  return { ...common, checkpointFile: NO_CHECKPOINT_FILE, floors, nodeCount: undefined, isClockChecked: false };
}

function archiveWith(ledgerId: number): readonly Floor[] {
  return [{ from: "call number x (line 7 of numbers.txt)", ledgerId }];
}

/** All clocks were three hours ahead when a jump was made and a run was leased; now they are right, and the store is lost. */
async function afterClocksAhead(): Promise<{ world: World; lastRun: number }> {
  const world = await newWorld();
  const { clock, store } = world;
  const empty = new Map();
  clock.timeMs += AHEAD_MS;
  store.server.epoch = "second:life:0";
  const guard = await guardOn(world);
  const lastRun = lastRunOf(await leaseAfterJump(world, guard));
  guard.close();
  clock.timeMs -= AHEAD_MS;
  store.restore(empty);
  return { world, lastRun };
}

describe("a store that leased under a clock that was ahead, and is lost", () => {
  test("would lease the same runs again where nobody remembers them: that is what the archive is for", async () => {
    const { world, lastRun } = await afterClocksAhead();
    await recoverNamespace(asked(world, []), await planRecovery(asked(world, [])));
    expect((await leaseAfterJump(world, await guardOn(world))).firstRun).toBeLessThan(lastRun);
  });

  test("is not recovered below the archive's greatest run: the refusal says where it stands, and from when it is possible", async () => {
    const { world, lastRun } = await afterClocksAhead();
    const options = asked(world, archiveWith(lastRun));
    const plan = await planRecovery(options);
    const possibleAtMs = plan.possibleAtMs as number;
    expect(Math.abs(possibleAtMs - world.clock.timeMs - AHEAD_MS)).toBeLessThan(60_000);
    const refusal = expect.objectContaining({
      code: "manual_recovery_required",
      message: expect.stringMatching(
        `line 7 of numbers.txt.*run ${lastRun}, above.*${new Date(possibleAtMs).toISOString()}`,
      ),
    });
    expect(refusalOf(plan)).toEqual(refusal);
    await expect(recoverNamespace(options, plan)).rejects.toEqual(refusal);
    await expect(world.store.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
  });

  test("is recovered when the line has passed it, not a moment earlier, and leases above it", async () => {
    const { world, lastRun } = await afterClocksAhead();
    const options = asked(world, archiveWith(lastRun));
    world.clock.timeMs = ((await planRecovery(options)).possibleAtMs as number) - 1;
    await expect(recoverNamespace(options, await planRecovery(options))).rejects.toMatchObject({
      code: "manual_recovery_required",
    });
    world.clock.timeMs++;
    const plan = await planRecovery(options);
    expect([plan.possibleAtMs, refusalOf(plan)]).toEqual([null, undefined]);
    await recoverNamespace(options, plan);
    expect((await leaseAfterJump(world, await guardOn(world))).firstRun).toBeGreaterThan(lastRun);
  });
});

describe("a store that went back", () => {
  test("leases above the archive's greatest run, which it has forgotten", async () => {
    const world = await newWorld();
    const guard = await guardOn(world);
    await leaseOf(guard, { runCount: 3 });
    const backup = world.store.backup();
    const lastRun = lastRunOf(await leaseOf(guard, { runCount: 64 }));
    guard.close();
    world.store.restore(backup);
    const options = asked(world, archiveWith(lastRun));
    const plan = await planRecovery(options);
    expect(plan).toMatchObject({ possibleAtMs: null, target: lineOf(world, 2 * SHORT_BOUNDS.epsMs) });
    expect(plan.skippedRunCount).toBe(plan.target - lastRun);
    await recoverNamespace(options, plan);
    expect((await leaseAfterJump(world, await guardOn(world))).firstRun).toBeGreaterThan(lastRun);
  });

  test("is recovered at the version of the archive's greatest run where the record is gone", async () => {
    const world = await newWorld();
    world.store.restore(new Map());
    const plan = await planRecovery(asked(world, archiveWith(2 ** 30 + 5)));
    // A version begins when the line has come to the end of the one before: some two years hence, at 16 runs a second.
    const years = ((plan.possibleAtMs as number) - world.clock.timeMs) / (365 * 24 * 3_600_000);
    expect(years).toBeGreaterThan(2);
    expect(refusalOf(plan)?.message).toContain("run 5 of version 1, above");
  });
});

describe("a healthy store", () => {
  const isHealthy = async (world: World, floors: readonly Floor[] = [], own: Partial<RecoverOptions> = {}) =>
    (await planRecovery({ ...asked(world, floors), ...own })).isHealthy;

  async function leased(): Promise<World> {
    const world = await newWorld();
    const guard = await guardOn(world);
    await leaseOf(guard, { runCount: 5 });
    guard.close();
    return world;
  }

  test("is told as one, also after a silence that the next coordinator settles", async () => {
    const world = await leased();
    expect(await isHealthy(world)).toBe(true);
    expect(await isHealthy(world, archiveWith(5))).toBe(true);
    world.clock.timeMs += 29 * 86_400_000;
    expect(await isHealthy(world)).toBe(true);
  });

  test.each<[what: string, arise: (world: World) => unknown, own?: Partial<RecoverOptions>]>([
    ["is silent for more than 30 days", ({ clock }) => void (clock.timeMs += 31 * 86_400_000)],
    ["is lost", ({ store }) => store.restore(new Map())],
    ["is sealed", ({ store, storeId }) => store.step(NAMESPACE, commandsFor(storeId).seal("forked"))],
    ["was leased from beyond what it has", () => {}, { floors: archiveWith(6) }],
    ["has a checkpoint that is damaged", () => {}, { checkpointFile: { ...NO_CHECKPOINT_FILE, read: () => CORRUPT } }],
    [
      "is a copy",
      ({ store }) => {
        store.isExclusive = true;
        store.preflight = async () => [{ code: "store_copied", what: "a copy", remedy: "callnumber recover" }];
      },
    ],
  ])("is none when it %s", async (_, arise, own = {}) => {
    const world = await leased();
    await arise(world);
    expect(await isHealthy(world, [], own)).toBe(false);
  });
});
