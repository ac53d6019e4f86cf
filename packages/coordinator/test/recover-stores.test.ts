/**
 * Logs of several stores: what they tell of another store than the recovered one ends the recovery, unless the operator typed which
 * store it is; and a store that only logs name is looked at, and not recovered.
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { NO_WITNESS } from "../src/guard/witness.js";
import { planRecovery, type RecoverOptions, recoverNamespace, refusalOf } from "../src/operator/recover.js";
import type { Floor, RecoverPlan } from "../src/operator/recover-plan.js";
import { leftAboveOf } from "../src/operator/recover-stores.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { guardOn, leaseAfterJump, newWorld, type World } from "./guard-in-hand.js";

const OTHER_ID = "76543210-89ab-4def-8123-456789abcdef.1.1793491200000.2";

function asked({ clock, store }: World, floors: readonly Floor[], more: Partial<RecoverOptions> = {}): RecoverOptions {
  const { now, pause } = clock;
  const common = { store, namespace: NAMESPACE, storeId: undefined, now, pause, bounds: SHORT_BOUNDS, watchMs: 0 };
  return { ...common, witness: NO_WITNESS, floors, nodeCount: undefined, isClockChecked: false, ...more };
}

function logged(storeId: string, ledgerId: number): Floor {
  return { from: `the lease in line ${ledgerId} of a.log`, ledgerId, storeId };
}

async function mustRefuse(world: World, options: RecoverOptions, code: string, said: RegExp): Promise<RecoverPlan> {
  const before = await world.store.readNamespace(NAMESPACE).catch(() => undefined);
  const plan = await planRecovery(options);
  const refusal = expect.objectContaining({ code, message: expect.stringMatching(said) });
  await expect(recoverNamespace(options, plan)).rejects.toEqual(refusal);
  expect(await world.store.readNamespace(NAMESPACE).catch(() => undefined)).toEqual(before);
  return plan;
}

describe("a store that no line of the logs names", () => {
  test("is not recovered: another may have been lost before it was made", async () => {
    const world = await newWorld();
    const said = new RegExp(
      `run 7 of namespace "main" in store id ${OTHER_ID}, and no line names store id ${world.storeId}.*--store-id ${world.storeId}\`$`,
    );
    const options = asked(world, [logged(OTHER_ID, 7)]);
    expect(refusalOf(await mustRefuse(world, options, "store_replaced", said))).toMatchObject({
      code: "store_replaced",
    });
  });

  test("is recovered when the operator gives its id", async () => {
    const world = await newWorld();
    const floors = [logged(OTHER_ID, 9_000_000)];
    const { storeId } = world;
    const options = asked(world, floors, { storeId });
    const plan = await planRecovery(options);
    expect([refusalOf(plan), leftAboveOf(plan)]).toEqual([undefined, floors[0]]);
    await recoverNamespace(options, plan);
    expect((await leaseAfterJump(world, await guardOn(world))).firstRun).toBeGreaterThan(plan.target);
  });
});

describe("a store that the logs name beside another one", () => {
  test.each([
    ["above what recovering would set", (mark: number) => mark + 10_000],
    ["of a later version", () => ledgerIdOf(1, 1)],
  ])("is not recovered below a run of the other, %s", async (_, runOf) => {
    const world = await newWorld();
    const own = logged(world.storeId, 5);
    const { target } = await planRecovery(asked(world, [own]));
    const options = asked(world, [own, logged(OTHER_ID, runOf(target))]);
    await mustRefuse(world, options, "store_replaced", /above run \d+, where recovering would set the mark/);
  });

  test("is recovered above all runs of the other", async () => {
    const world = await newWorld();
    const own = logged(world.storeId, 5);
    const { target } = await planRecovery(asked(world, [own]));
    const options = asked(world, [own, logged(OTHER_ID, target)]);
    const plan = await planRecovery(options);
    expect([refusalOf(plan), leftAboveOf(plan)]).toEqual([undefined, undefined]);
    await recoverNamespace(options, plan);
    expect((await leaseAfterJump(world, await guardOn(world))).firstRun).toBeGreaterThan(target);
  });
});

describe("a store that nothing but the logs names", () => {
  test("is planned for, and not recovered before its id was typed", async () => {
    const world = await newWorld();
    const { storeId } = world;
    const floors = [logged(storeId, 5)];
    world.store.restore(new Map());
    const options = asked(world, floors);
    const plan = await mustRefuse(world, options, "operator_needed", new RegExp(`--store-id ${storeId} --apply\`$`));
    expect(refusalOf(plan)).toBeUndefined();
    expect(plan).toMatchObject({ storeId, isStoreIdFromLogs: true });
    const typed = asked(world, floors, { storeId });
    await recoverNamespace(typed, await planRecovery(typed));
    expect((await leaseAfterJump(world, await guardOn(world))).firstRun).toBeGreaterThan(plan.target);
  });
});
