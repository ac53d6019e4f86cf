/**
 * A recovery in a version whose clock line has ended: no mark is safe there, and the refusal must name a way on that is one. Typed as it says,
 * leasing goes on above everything that went out.
 * Guarantees: G12 (docs/guarantees.md).
 */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { expect, test } from "vitest";
import { whenCeilingReaches } from "../src/guard/ceiling.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { FORKED_SEAL, type StoredFields } from "../src/guard/record.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { advanceVersion, planAdvance } from "../src/operator/advance-version.js";
import { planRecovery, type RecoverOptions, recoverNamespace, refusalOf } from "../src/operator/recover.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterJump, leaseOf, newWorld, type World } from "./guard-in-hand.js";

/** A namespace that has leased its last run, and whose store says so. */
async function endedWorld(): Promise<{ world: World; lastRun: number }> {
  const world = await newWorld({ firstRun: RUN_MAX - 2 });
  return { world, lastRun: lastRunOf(await leaseOf(await guardOn(world), { runCount: 3 })) };
}

function asked({ clock, store, storeId }: World, floor?: number): RecoverOptions {
  const { now, pause } = clock;
  const common = { store, namespace: NAMESPACE, storeId, now, pause, bounds: SHORT_BOUNDS, watchMs: 0 };
  const floors = floor === undefined ? [] : [{ from: "--min-run", ledgerId: floor }];
  return { ...common, checkpointFile: NO_CHECKPOINT_FILE, floors, nodeCount: undefined, isClockChecked: true };
}

/** What the refusal of the plan says, which the refusal of the recovery says too. */
async function refusedWords(options: RecoverOptions): Promise<string> {
  const plan = await planRecovery(options);
  const refusal = refusalOf(plan);
  expect(refusal?.code).toBe("run_space_exhausted");
  await expect(recoverNamespace(options, plan)).rejects.toMatchObject({ message: refusal?.message });
  return refusal?.message ?? "";
}

function editMark({ store }: World): void {
  const { [NAMESPACE]: fields } = Object.fromEntries(store.backup());
  store.restore(new Map([[NAMESPACE, { ...(fields as StoredFields), c: "5" }]]));
}

test("a sound record goes on with advance-version", async () => {
  const { world, lastRun } = await endedWorld();
  expect(await refusedWords(asked(world))).toMatch(
    /Continue in version 1, .*`callnumber advance-version --store STORE_URL --namespace main`$/,
  );
  const { store, clock } = world;
  const common = {
    store,
    namespace: NAMESPACE,
    checkpointFile: NO_CHECKPOINT_FILE,
    now: clock.now,
    bounds: SHORT_BOUNDS,
  };
  const options = { ...common, isForcedEarly: false, isClockChecked: false };
  await advanceVersion(options, await planAdvance(options));
  const { version, firstRun } = await leaseOf(await guardOn(world));
  expect(ledgerIdOf(version, firstRun)).toBeGreaterThan(lastRun);
});

test.each([
  ["is gone", (world: World) => world.store.restore(new Map())],
  ["is corrupt", (world: World) => editMark(world)],
  ["is sealed as one of two copies", async (world: World) => (await guardOn(world)).seal(FORKED_SEAL)],
])("a record that %s goes on with the floor that the refusal names", async (_, befall) => {
  const { world, lastRun } = await endedWorld();
  await befall(world);
  const words = await refusedWords(asked(world));
  const floor = Number(/Continue in version 1, .*`callnumber recover .* --min-run (\d+)`$/.exec(words)?.[1]);
  const options = asked(world, floor);
  await recoverNamespace(options, await planRecovery(options));
  const { version, firstRun } = await leaseAfterJump(world, await guardOn(world));
  expect(ledgerIdOf(version, firstRun)).toBeGreaterThan(lastRun);
});

test("the last version has no way on", async () => {
  const { world } = await endedWorld();
  world.store.restore(new Map());
  world.clock.timeMs = whenCeilingReaches(parseStoreId(world.storeId) as StoreIdFields, VERSION_MAX, RUN_MAX);
  const words = await refusedWords(asked(world, ledgerIdOf(VERSION_MAX, 1)));
  expect(words).toMatch(/^the clock line of version 7 has reached its end.*another namespace, or another layout$/);
});
