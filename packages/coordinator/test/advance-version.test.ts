/**
 * The command that ends a version: when it is rejected, that two at once or one run twice do no harm, and that whatever is lost
 * afterwards, no run is leased again.
 * Guarantees: G12 (docs/guarantees.md).
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { BURST_RUNS } from "../src/guard/ceiling.js";
import {
  type Checkpoint,
  type CheckpointFile,
  CORRUPT,
  checkpointOf,
  NO_CHECKPOINT_FILE,
} from "../src/guard/checkpoint.js";
import type { GuardedLease } from "../src/guard/namespace-guard.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { type AdvanceOptions, advanceVersion, planAdvance, refusalOf } from "../src/operator/advance-version.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { guardOn, leaseAfterSkip, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";
import { SettableStore } from "./settable-store.js";
import { stepOn } from "./steps-for-test.js";

/** From here on the ceiling of a new store has passed the end of the run space. */
const PAST_THE_END = RUN_MAX - BURST_RUNS;
const LATER_MS = 60_000;

function asked({ store, clock }: World, own: Partial<AdvanceOptions> = {}): AdvanceOptions {
  const common = { store, namespace: NAMESPACE, checkpointFile: NO_CHECKPOINT_FILE, now: clock.now };
  return { ...common, bounds: store.boundsOf(), isForcedEarly: false, isClockChecked: false, ...own };
}

/** As the command does. */
async function advance(world: World, own: Partial<AdvanceOptions> = {}) {
  const options = asked(world, own);
  const plan = await planAdvance(options);
  const refusal = refusalOf(plan, options);
  if (refusal !== undefined) throw refusal;
  return await advanceVersion(options, plan);
}

/** A namespace that has leased its last run. */
async function endedWorld(leaseCount = 3): Promise<World> {
  const world = await newWorld({ firstRun: RUN_MAX - leaseCount + 1 });
  const guard = await guardOn(world);
  await leaseOf(guard, { runCount: leaseCount });
  return world;
}

function memory(): CheckpointFile & { kept: Checkpoint | typeof CORRUPT | undefined } {
  return {
    kept: undefined,
    read() {
      return this.kept;
    },
    readable() {
      return this.kept === CORRUPT ? undefined : this.kept;
    },
    note(checkpoint) {
      this.kept = checkpoint;
    },
    movesHere: () => [],
    movesOf: () => [],
    laterStoresOf: () => [],
    recoveredMin: () => 0,
    noteRecoveredMin: () => {},
    close: () => {},
  };
}

const idsOf = ({ version, firstRun, runCount }: GuardedLease) =>
  Array.from({ length: runCount }, (_, offset) => ledgerIdOf(version, firstRun + offset));

test("advance-version continues at run 1 of the next version while coordinators and their importers run", async () => {
  const world = await newWorld({ firstRun: RUN_MAX });
  const [guard, other] = [await guardOn(world), await guardOn(world)];
  const before = await leaseOf(guard);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "run_space_exhausted" });
  const { after } = await advance(world);
  expect(after).toMatchObject({ version: 1, highWaterMark: 0, generation: 1 });
  const held = { lastRun: ledgerIdOf(0, RUN_MAX), proof: before.proof };
  expect(await leaseOf(guard, { ...held, runCount: 3 })).toMatchObject({ version: 1, firstRun: 1, runCount: 3 });
  expect(await leaseOf(other, held)).toMatchObject({ version: 1, firstRun: 4 });
});

test("a store without a coordinator continues at run 1 when its checkpoint is up to date, or only one process opens it", async () => {
  for (const isExclusive of [false, true]) {
    const world = await endedWorld();
    const checkpointFile = memory();
    world.store.isExclusive = isExclusive;
    if (!isExclusive) await (await guardOn(world, { checkpointFile })).heartbeat();
    const bounds = { ...SHORT_BOUNDS, attendedMs: 1 };
    world.clock.timeMs += 2;
    expect((await planAdvance(asked(world, { checkpointFile, bounds }))).mayHaveRolledBack).toBe(false);
    await advance(world, { checkpointFile, bounds });
    expect((await world.store.readNamespace(NAMESPACE)).phase).toBe(0);
  }
});

test("advance-version is rejected until the ceiling reaches the last run, with that time", async () => {
  const world = await newWorld({ firstRun: PAST_THE_END - 16 * 3600 });
  const refusal = advance(world, { isForcedEarly: true });
  await expect(refusal).rejects.toMatchObject({
    code: "version_still_active",
    message: expect.stringContaining(new Date(world.clock.timeMs + 3_600_000).toISOString().slice(0, 16)),
  });
  expect((await world.store.readNamespace(NAMESPACE)).version).toBe(0);
});

test("advance-version below 95 % is rejected, unless an operator gives up the rest", async () => {
  const world = await newWorld({ firstRun: PAST_THE_END + 1 });
  await leaseOf(await guardOn(world), { runCount: 64 });
  await expect(advance(world)).rejects.toMatchObject({
    code: "version_still_active",
    message: expect.stringContaining(`${BURST_RUNS - 64} runs would be given up`),
  });
  expect((await advance(world, { isForcedEarly: true })).after.version).toBe(1);
});

test("advance-version shows the version when it is run again, and changes nothing", async () => {
  const world = await endedWorld();
  await advance(world);
  await expect(advance(world)).rejects.toMatchObject({
    code: "version_still_active",
    message: expect.stringContaining("is at version 1 already"),
  });
  await expect(advance(world, { isForcedEarly: true })).rejects.toMatchObject({ code: "version_still_active" });
  expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(1);
});

test("advance-version whose response is lost was done, and shows so when it is run again", async () => {
  const world = await endedWorld();
  world.store.alter = (applied, command) => {
    if (command?.step === "advance") throw new CoordinatorError("store_unavailable", "the connection broke");
    return applied;
  };
  await expect(advance(world)).rejects.toMatchObject({ code: "store_unavailable" });
  await expect(advance(world)).rejects.toMatchObject({ message: expect.stringContaining("version 1 already") });
  expect(await leaseOf(await guardOn(world))).toMatchObject({ version: 1, firstRun: 1 });
});

test("advance-version without the quorum fails", async () => {
  const world = await newWorld({ firstRun: RUN_MAX, nodeCount: 3 });
  world.store.acknowledgedCount = 0;
  await expect(advance(world, { isForcedEarly: true })).rejects.toMatchObject({ code: "quorum_missing" });
});

test("advance-version is rejected in the last version, for a sealed store, and by another store's checkpoint", async () => {
  const world = await endedWorld();
  const plan = await planAdvance(asked(world));
  const last = { ...plan, found: { ...plan.found, version: VERSION_MAX } };
  expect(refusalOf(last, asked(world))).toMatchObject({ code: "run_space_exhausted" });
  const checkpointFile = memory();
  const other = await newWorld();
  checkpointFile.kept = { storeId: other.storeId, ledgerId: 5, generation: 0, nodeCount: 1 };
  await expect(advance(world, { checkpointFile })).rejects.toMatchObject({ code: "store_id_mismatch" });
  await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).seal(FORKED_SEAL));
  await expect(advance(world)).rejects.toMatchObject({ code: "store_forked" });
  expect((await world.store.readNamespace(NAMESPACE)).version).toBe(0);
});

test("a store of which only the checkpoint directory has an uncounted node is left to recover, also where that is old", async () => {
  const world = await endedWorld();
  const checkpointFile = { ...memory(), recoveredMin: () => 10 };
  for (const generation of [0, 9]) {
    checkpointFile.kept = { storeId: world.storeId, ledgerId: 5, nodeCount: 1, generation };
    await expect(advance(world, { checkpointFile })).rejects.toMatchObject({ code: "manual_recovery_required" });
  }
  expect((await world.store.readNamespace(NAMESPACE)).version).toBe(0);
});

test("advance-version names what a recovery must end first, before it names --force-early", async () => {
  const world = await newWorld({ firstRun: PAST_THE_END + 1 });
  await leaseOf(await guardOn(world), { runCount: 64 });
  const checkpointFile = { ...memory(), recoveredMin: () => 10 };
  checkpointFile.kept = checkpointOf(await world.store.readNamespace(NAMESPACE));
  await expect(advance(world, { checkpointFile })).rejects.toMatchObject({
    code: "manual_recovery_required",
    message: expect.stringContaining("recover"),
  });
});

test("advance-version whose checkpoint can't be written is done, and says so", async () => {
  const world = await endedWorld();
  const unusable = new CoordinatorError("checkpoint_unavailable", "the directory can't be used. Free space there");
  const note = () => {
    throw unusable;
  };
  await expect(advance(world, { checkpointFile: { ...memory(), note } })).rejects.toMatchObject({
    code: "checkpoint_unavailable",
    message: `namespace "${NAMESPACE}" is advanced, but its checkpoint was not written: ${unusable.message}`,
    cause: unusable,
  });
  expect((await world.store.readNamespace(NAMESPACE)).version).toBe(1);
});

describe("a store that is rolled back to before the advance", () => {
  /** Version 1 was leased from; then the store was rolled back to before it. Returns the runs that were leased. */
  async function forgetful(checkpointFile: CheckpointFile = NO_CHECKPOINT_FILE) {
    const world = await endedWorld();
    const backup = world.store.backup();
    await advance(world, { checkpointFile });
    const guard = await guardOn(world, { checkpointFile });
    const leased = [...idsOf(await leaseOf(guard, { runCount: 64 })), ...idsOf(await leaseOf(guard, { runCount: 64 }))];
    world.store.restore(backup);
    return { world, guard, leased };
  }

  test("a store rolled back to before the advance leases nothing: no recovery ends in the version that has ended", async () => {
    const { world, guard } = await forgetful();
    // In the same epoch only a coordinator with a memory of it notices, in another one each does.
    await expect(leaseOf(guard)).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:run_space_exhausted|manual_recovery_required)$/),
    });
    world.store.server.epoch = "second:life:0";
    for (const one of [guard, await guardOn(world)]) {
      await expect(leaseOf(one)).rejects.toMatchObject({
        code: expect.stringMatching(/exhausted|manual_recovery_required/),
      });
    }
    expect((await world.store.readNamespace(NAMESPACE)).version).toBe(0);
  });

  test("a store rolled back to before the advance leases above every earlier run once it is advanced again", async () => {
    const { world, leased } = await forgetful();
    world.store.server.epoch = "second:life:0";
    world.clock.timeMs += LATER_MS;
    const guard = await guardOn(world);
    await expect(leaseOf(guard)).rejects.toMatchObject({ code: "run_space_exhausted" });
    await advance(world);
    const lease = await leaseAfterSkip(world, guard);
    expect(lease.version).toBe(1);
    expect(Math.min(...idsOf(lease))).toBeGreaterThan(Math.max(...leased));
    expect(lease.firstRun).toBeGreaterThan(lineOf(world, -LATER_MS, 1));
  });

  test("a store rolled back before the advance is recovered when it is advanced first, by its epoch or a checkpoint", async () => {
    const byEpoch = await forgetful();
    byEpoch.world.store.server.epoch = "second:life:0";
    const checkpointFile = memory();
    const byCheckpoint = await forgetful(checkpointFile);
    for (const [{ world, leased }, own] of [
      [byEpoch, {}],
      [byCheckpoint, { checkpointFile }],
    ] as const) {
      await advance(world, own);
      expect((await world.store.readNamespace(NAMESPACE)).phase).toBe(1);
      const lease = await leaseAfterSkip(world, await guardOn(world, own));
      expect(Math.min(...idsOf(lease))).toBeGreaterThan(Math.max(...leased));
    }
  });

  test.each([
    ["without a checkpoint", false],
    ["with a checkpoint that is out of date", true],
  ])("a store without a coordinator is recovered when it is advanced %s", async (_, hasOldCheckpoint) => {
    const bounds = { ...SHORT_BOUNDS, attendedMs: SHORT_BOUNDS.gapMs / 4 };
    const { world, leased } = await forgetful();
    world.clock.timeMs += bounds.attendedMs + 1;
    const checkpointFile = memory();
    const { storeId } = world;
    if (hasOldCheckpoint) checkpointFile.kept = { storeId, ledgerId: 1, generation: 0, nodeCount: 1 };
    const options = asked(world, { checkpointFile, bounds });
    const plan = await planAdvance(options);
    expect(plan.mayHaveRolledBack).toBe(true);
    await advanceVersion(options, plan);
    const lease = await leaseAfterSkip(world, await guardOn(world, bounds));
    expect(Math.min(...idsOf(lease))).toBeGreaterThan(Math.max(...leased));
  });

  test("an advanced store is recovered when its checkpoint is corrupt", async () => {
    const world = await endedWorld();
    const checkpointFile = memory();
    checkpointFile.kept = CORRUPT;
    await advance(world, { checkpointFile });
    expect((await world.store.readNamespace(NAMESPACE)).phase).toBe(1);
  });
});

test("the guard stays stopped through heartbeats, until the version was advanced", async () => {
  const world = await endedWorld();
  const events: string[] = [];
  const note = (_: object, event: string) => void events.push(event);
  const guard = await guardOn(world, { log: { debug: note, info: note, warn: note, error: note } });
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "run_space_exhausted" });
  await guard.heartbeat();
  await guard.heartbeat();
  expect(guard.state).toMatchObject({ state: "stopped", code: "run_space_exhausted" });
  await advance(world);
  await guard.heartbeat();
  expect(guard.state.state).toBe("active");
  expect(events).toEqual(["checkpoint_created", "stopped", "active"]);
});

test("a copy that did not advance is detected as a fork by a lease proof of the next version", async () => {
  const world = await endedWorld();
  const copy: World = { ...world, store: new SettableStore(world.clock) };
  copy.store.restore(world.store.backup());
  await advance(world);
  const { version, firstRun, proof } = await leaseOf(await guardOn(world));
  const guard = await guardOn(copy);
  await expect(leaseOf(guard, { lastRun: ledgerIdOf(version, firstRun), proof })).rejects.toMatchObject({
    code: "store_forked",
  });
});
