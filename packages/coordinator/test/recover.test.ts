/**
 * A recovery by an operator: what is known beyond the store, an archive's greatest run above all, holds it back until the run ceiling has
 * passed it; and in a version whose ceiling has reached its end, the rejection names a command that works.
 * Guarantees: G12 (docs/guarantees.md).
 */

import { ledgerIdOf, parseRunName } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { whenCeilingReaches } from "../src/guard/ceiling.js";
import { type CheckpointFile, CORRUPT, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { FORKED_SEAL, type StoredFields } from "../src/guard/record.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { advanceVersion, planAdvance } from "../src/operator/advance-version.js";
import type { Floor } from "../src/operator/floors.js";
import { planRecovery, type RecoverOptions, recoverNamespace, refusalOf } from "../src/operator/recover.js";
import { MemoryStore } from "../src/stores/memory.js";
import { commandsFor, holder, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterSkip, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";
import { stepOn } from "./steps-for-test.js";

const AHEAD_MS = 3 * 3_600_000;

function asked({ clock, store, storeId }: World, floors: readonly Floor[] = []): RecoverOptions {
  const { now, pause } = clock;
  const common = { store, namespace: NAMESPACE, storeId, now, pause, bounds: SHORT_BOUNDS, watchMs: 0 };
  return { ...common, checkpointFile: NO_CHECKPOINT_FILE, floors, nodeCount: undefined, isClockChecked: false };
}

function archiveWith(ledgerId: number): readonly Floor[] {
  return [{ from: "call number x (line 7 of numbers.txt)", ledgerId }];
}

/** All clocks were three hours ahead when a recovery was made and a run was leased; now they are right, and the store is lost. */
async function afterClocksAhead(): Promise<{ world: World; lastRun: number }> {
  const world = await newWorld();
  const { clock, store } = world;
  clock.timeMs += AHEAD_MS;
  store.server.epoch = "second:life:0";
  const guard = await guardOn(world);
  const lastRun = lastRunOf(await leaseAfterSkip(world, guard));
  guard.close();
  clock.timeMs -= AHEAD_MS;
  store.restore(new Map());
  return { world, lastRun };
}

test("a lost store that leased while the clocks were ahead leases runs again without the archive's greatest run", async () => {
  const { world, lastRun } = await afterClocksAhead();
  await recoverNamespace(asked(world), await planRecovery(asked(world)));
  expect((await leaseAfterSkip(world, await guardOn(world))).firstRun).toBeLessThan(lastRun);
});

test("recover rejects a lost store below the archive's greatest run, and shows when it is possible", async () => {
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

test("recover accepts the lost store once the ceiling has passed that run, and the store leases above it", async () => {
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
  expect((await leaseAfterSkip(world, await guardOn(world))).firstRun).toBeGreaterThan(lastRun);
});

test("a store that rolled back leases above the archive's greatest run", async () => {
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
  expect((await leaseAfterSkip(world, await guardOn(world))).firstRun).toBeGreaterThan(lastRun);
});

test("recover rejects a store without a record until the version of the archive's greatest run has begun", async () => {
  const world = await newWorld();
  world.store.restore(new Map());
  const plan = await planRecovery(asked(world, archiveWith(2 ** 30 + 5)));
  // A version begins when the ceiling has come to the end of the one before: some two years later, at 16 runs a second.
  const years = ((plan.possibleAtMs as number) - world.clock.timeMs) / (365 * 24 * 3_600_000);
  expect(years).toBeGreaterThan(2);
  expect(plan.target).toBeLessThan(0);
  expect(refusalOf(plan)?.message).toMatch(/run 1\/5, above .*\(no run of version 1 yet, store id/);
});

test.each([
  [
    0,
    900_000_000,
    { code: "manual_recovery_required", message: expect.stringContaining("the ledger has run 900000000, above") },
  ],
  [8, 1, { code: "store_corrupt", message: expect.stringContaining(`has id "${8 * 2 ** 30 + 1}", which no run has`) }],
])(
  "a plan names a ledger that is above the run ceiling, which the recovery would refuse (version %i)",
  async (version, firstRun, refusal) => {
    const store = new MemoryStore();
    const lease = { version, firstRun, runCount: 1, leasedAtMs: 1, holder, coordinator: "c", nonce: "n" };
    expect(await store.appendLeases(NAMESPACE, 0, [{ ...lease, progress: null }])).toBe(true);
    const options = { ...asked(await newWorld()), store, storeId: storeIdFrom(1), now: Date.now };
    const plan = planRecovery(options).then((made) => {
      const cause = refusalOf(made);
      if (cause !== undefined) throw cause;
    });
    await expect(plan).rejects.toMatchObject(refusal);
  },
);

test("recover whose checkpoint can't be written is done, and says so", async () => {
  const world = await newWorld();
  const unusable = new CoordinatorError("checkpoint_unavailable", "the directory can't be used. Free space there");
  const note = () => {
    throw unusable;
  };
  const options = { ...asked(world), checkpointFile: { ...NO_CHECKPOINT_FILE, note } };
  const { generation } = await world.store.readNamespace(NAMESPACE);
  await expect(recoverNamespace(options, await planRecovery(options))).rejects.toMatchObject({
    code: "checkpoint_unavailable",
    message: `namespace "${NAMESPACE}" is recovered, but its checkpoint was not written: ${unusable.message}`,
  });
  expect((await world.store.readNamespace(NAMESPACE)).generation).toBeGreaterThan(generation);
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

  test("recover reports a healthy store, also after a heartbeat gap that the next coordinator recovers from", async () => {
    const world = await leased();
    expect(await isHealthy(world)).toBe(true);
    expect(await isHealthy(world, archiveWith(5))).toBe(true);
    world.clock.timeMs += 29 * 86_400_000;
    expect(await isHealthy(world)).toBe(true);
  });

  test("a plan after 30 days without a heartbeat is refused as the recovery is, until the clock is confirmed", async () => {
    const world = await leased();
    world.clock.timeMs += 31 * 86_400_000;
    const refusalWith = async (isClockChecked: boolean) =>
      refusalOf(await planRecovery({ ...asked(world), isClockChecked }));
    expect((await refusalWith(false))?.message).toMatch(/30 days.*--confirm-clock/s);
    expect(await refusalWith(true)).toBeUndefined();
  });

  test.each<[what: string, arise: (world: World) => unknown, own?: Partial<RecoverOptions>]>([
    ["has no heartbeat for more than 30 days", ({ clock }) => void (clock.timeMs += 31 * 86_400_000)],
    ["is lost", ({ store }) => store.restore(new Map())],
    ["is sealed", ({ store, storeId }) => stepOn(store, NAMESPACE, commandsFor(storeId).seal("forked"))],
    ["had another node", ({ store, storeId }) => stepOn(store, NAMESPACE, commandsFor(storeId).suspect(1))],
    ["was leased from beyond what it has", () => {}, { floors: archiveWith(6) }],
    ["has a corrupt checkpoint", () => {}, { checkpointFile: { ...NO_CHECKPOINT_FILE, read: () => CORRUPT } }],
    [
      "is a copy",
      ({ store }) => {
        store.isExclusive = true;
        store.preflight = async () => [{ code: "store_copied", what: "a copy", remedy: "callnumber recover" }];
      },
    ],
  ])("a store is not healthy when it %s", async (_, arise, own = {}) => {
    const world = await leased();
    await arise(world);
    expect(await isHealthy(world, [], own)).toBe(false);
  });
});

test("recover writes the generation that ends what the checkpoint directory has of another node", async () => {
  const world = await newWorld();
  const recoveredMin = 1_000 * Math.ceil(world.clock.timeMs / 10 + 500);
  const checkpointFile: CheckpointFile = { ...NO_CHECKPOINT_FILE, recoveredMin: () => recoveredMin };
  const guard = await guardOn(world, { checkpointFile });
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "manual_recovery_required" });
  const options = { ...asked(world), checkpointFile };
  const plan = await planRecovery(options);
  expect(plan.isHealthy).toBe(false);
  // The operator's clock is behind what another one wrote.
  expect((await recoverNamespace(options, plan)).after.generation).toBe(recoveredMin);
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(1);
});

describe("a store whose version has ended", () => {
  /** A namespace that has leased its last run, and whose store has it. */
  async function endedWorld(): Promise<{ world: World; lastRun: number }> {
    const world = await newWorld({ firstRun: RUN_MAX - 2 });
    return { world, lastRun: lastRunOf(await leaseOf(await guardOn(world), { runCount: 3 })) };
  }

  /** The message of the plan's rejection, which the recovery's rejection has, too. */
  async function rejection(options: RecoverOptions): Promise<string> {
    const plan = await planRecovery(options);
    const refusal = refusalOf(plan);
    expect(refusal?.code).toBe("run_space_exhausted");
    await expect(recoverNamespace(options, plan)).rejects.toMatchObject({ message: refusal?.message });
    return refusal?.message ?? "";
  }

  test("a store whose version has ended continues with advance-version when its record is sound", async () => {
    const { world, lastRun } = await endedWorld();
    expect(await rejection(asked(world))).toMatch(
      /Continue in version 1, .*`callnumber advance-version --store STORE_URL --namespace main`$/,
    );
    const options = { ...asked(world), isForcedEarly: false };
    await advanceVersion(options, await planAdvance(options));
    const { version, firstRun } = await leaseOf(await guardOn(world));
    expect(ledgerIdOf(version, firstRun)).toBeGreaterThan(lastRun);
  });

  test.each<[string, (world: World) => unknown]>([
    ["gone", ({ store }) => store.restore(new Map())],
    [
      "corrupt",
      ({ store }) => {
        const fields = store.backup().get(NAMESPACE) as StoredFields;
        store.restore(new Map([[NAMESPACE, { ...fields, c: "5" }]]));
      },
    ],
    [
      "sealed as one of two copies",
      ({ store, storeId }) => stepOn(store, NAMESPACE, commandsFor(storeId).seal(FORKED_SEAL)),
    ],
    [
      "of a server to which another was attached",
      ({ store, storeId }) => stepOn(store, NAMESPACE, commandsFor(storeId).suspect(1)),
    ],
  ])(
    "a store whose version has ended continues with the rejection's floor when its record is %s",
    async (_, damage) => {
      const { world, lastRun } = await endedWorld();
      await damage(world);
      const message = await rejection(asked(world));
      const [, minRun = ""] = /Continue in version 1, .*`callnumber recover .* --min-run (1\/0)`$/.exec(message) ?? [];
      const options = { ...asked(world), minRun: parseRunName(minRun) };
      await recoverNamespace(options, await planRecovery(options));
      const { version, firstRun } = await leaseAfterSkip(world, await guardOn(world));
      expect(ledgerIdOf(version, firstRun)).toBeGreaterThan(lastRun);
    },
  );

  test("a store whose last version has ended can't continue", async () => {
    const { world } = await endedWorld();
    world.store.restore(new Map());
    world.clock.timeMs = whenCeilingReaches(parseStoreId(world.storeId) as StoreIdFields, VERSION_MAX, RUN_MAX);
    const floor = { from: "--min-run", ledgerId: ledgerIdOf(VERSION_MAX, 1) };
    const options = { ...asked(world, [floor]), isClockChecked: true };
    const message = await rejection(options);
    expect(message).toMatch(/^the run ceiling of version 7 is at its end.*use another namespace$/);
  });
});

describe("a run that the operator names", () => {
  const floorOf = async (world: World, minRun: string) => {
    const plan = await planRecovery({ ...asked(world), minRun: parseRunName(minRun) });
    return plan.floors.at(-1);
  };

  test("recover takes a run without its version only while a record or a checkpoint shows version 0", async () => {
    const world = await newWorld();
    expect(await floorOf(world, "7")).toEqual({ from: "--min-run", ledgerId: 7 });
    expect(await floorOf(world, "1/7")).toEqual({ from: "--min-run", ledgerId: 2 ** 30 + 7 });
    world.store.restore(new Map());
    await expect(floorOf(world, "7")).rejects.toThrow(/^--min-run 7: the version of run 7 is not known: write 0\/7/);
    expect(await floorOf(world, "0/7")).toEqual({ from: "--min-run", ledgerId: 7 });
  });

  test("recover rejects a run without its version once anything shows a later version", async () => {
    const world = await newWorld();
    const options = { ...asked(world, archiveWith(2 ** 30 + 5)), minRun: { version: undefined, run: 7 } };
    await expect(planRecovery(options)).rejects.toThrow("write it as 1/7 (version/run)");
  });
});
