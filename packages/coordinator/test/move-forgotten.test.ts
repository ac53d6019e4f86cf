/**
 * A source that was moved and forgot its seal: its checkpoint has the move, so it leases nothing, and is moved nowhere else. Without that a second
 * move makes two stores of the same version.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { Coordinator } from "../src/coordinator.js";
import { type CheckpointFile, CORRUPT, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { openCheckpointFile, type StorePlace } from "../src/guard/checkpoint-file.js";
import { doStep } from "../src/guard/namespace-steps.js";
import { MOVED_TEXT_LENGTH_MAX, movedSeal, movedToIn, textOfMove } from "../src/guard/store-id.js";
import { planAdvance } from "../src/operator/advance-version.js";
import { type MoveOptions, moveNamespace, planMove } from "../src/operator/move.js";
import { recordFindings } from "../src/operator/record-findings.js";
import { planRecovery, recoverNamespace } from "../src/operator/recover.js";
import type { Store } from "../src/stores/store.js";
import { parseStoreUrl, placeOf } from "../src/stores/store-url.js";
import { NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { guardOn, leaseOf, newWorld, type World } from "./guard-in-hand.js";
import { memoryPlace } from "./places-for-move.js";

const HERE: StorePlace = { group: "store", addresses: ["here"] };
let folder: string;

beforeEach(async () => {
  folder = await folderForTest();
});

function fileAt(place = HERE): CheckpointFile {
  return openCheckpointFile({ folder, place, namespace: NAMESPACE });
}

interface Target {
  readonly place: string;
  readonly store: Store;
}

async function newTarget(): Promise<Target> {
  return { place: `memory:${randomUUID()}`, store: await (await memoryPlace()).open() };
}

function at(url: string): StorePlace {
  return placeOf(parseStoreUrl(url));
}

function moving({ store }: World, target: Target, checkpointFile = fileAt()): MoveOptions {
  const to = { ...target, checkpointFile: fileAt({ group: target.place, addresses: [target.place] }) };
  return { store, namespace: NAMESPACE, checkpointFile, bounds: SHORT_BOUNDS, nodeCount: 1, target: to };
}

/** What `recover` and `advance-version` are given. */
function commonOf({ store, clock }: World, checkpointFile = fileAt()) {
  return { store, namespace: NAMESPACE, checkpointFile, now: clock.now, pause: clock.pause };
}

function recovering(world: World, checkpointFile?: CheckpointFile) {
  const options = { storeId: undefined, floors: [], nodeCount: 1, isClockChecked: true, watchMs: 0 };
  return { ...commonOf(world, checkpointFile), ...options };
}

/** A is moved to B, and its server comes back from a save that was made before. */
async function forgetful(checkpointFile?: CheckpointFile, place = HERE) {
  const world = await newWorld();
  // Its ledger is not asked about here.
  Object.assign(world.store, { leases: async () => [] });
  const guard = await guardOn(world, { checkpointFile: fileAt(place) });
  await leaseOf(guard, { runCount: 5 });
  guard.close();
  const backup = world.store.backup();
  const target = await newTarget();
  const { storeId } = await moveNamespace(moving(world, target, checkpointFile ?? fileAt(place)));
  world.store.restore(backup);
  world.store.server.epoch = "second:life:0";
  expect(await world.store.readNamespace(NAMESPACE)).toMatchObject({ phase: 0 });
  world.store.stepNames();
  return { world, target, storeId };
}

test("a source that forgot its seal is sealed again by the same move, which goes on as the same store", async () => {
  const { world, target, storeId } = await forgetful();
  expect(await planMove(moving(world, target))).toMatchObject({ stage: "done", storeId });
  const apply = vi.spyOn(world.store, "apply");
  expect(await moveNamespace(moving(world, target))).toMatchObject({ storeId, leaseCount: undefined });
  const seal = expect.stringMatching(/ done$/);
  expect(await world.store.readNamespace(NAMESPACE)).toMatchObject({ phase: 2, seal });
  // At once: one that was cut short could be taken for a move that made no store yet.
  expect(apply).toHaveBeenCalledTimes(1);
});

test("a source of whose move no note can be read is moved nowhere while the store that it became is known", async () => {
  const { world, target, storeId } = await forgetful(NO_CHECKPOINT_FILE);
  const there = fileAt({ group: target.place, addresses: [target.place] });
  expect(there.read()).toMatchObject({ storeId });
  for (const act of [planMove, moveNamespace]) {
    await expect(act(moving(world, await newTarget()))).rejects.toMatchObject({ code: "namespace_moved" });
  }
});

test("a move that is done makes no second new store, where the first one is missing: it may run elsewhere", async () => {
  const { world, target, storeId } = await forgetful();
  const there = { ...(await newTarget()), place: target.place, checkpointFile: NO_CHECKPOINT_FILE };
  const again = { ...moving(world, target), target: there };
  const refused = {
    code: "namespace_lost",
    message: expect.stringMatching(
      `another address.*Only if it runs nowhere, .*, run .callnumber move .*--confirm-loss ${storeId} --apply`,
    ),
  };
  // The source has forgotten that it was moved, and its checkpoint does not say whether that was done.
  await expect(moveNamespace(again)).rejects.toMatchObject(refused);
  await moveNamespace(moving(world, target));
  await expect(moveNamespace(again)).rejects.toMatchObject(refused);
  expect(await there.store.listNamespaces()).toEqual([]);
  // The operator knows that it runs nowhere.
  expect(await moveNamespace({ ...again, lostStoreId: storeId })).toMatchObject({ storeId, leaseCount: 0 });
});

test("a loss that is confirmed is confirmed for one try: after a kill behind the seal, the next one asks again", async () => {
  const world = await newWorld();
  Object.assign(world.store, { leases: async () => [] });
  const target = { ...(await newTarget()), checkpointFile: NO_CHECKPOINT_FILE };
  const move = { ...moving(world, target), target, bounds: world.store.boundsOf() };
  const killed = () => {
    throw new Error("killed");
  };
  world.store.before = (command) => command.step === "seal" && command.makesStore === true && killed();
  await expect(moveNamespace(move)).rejects.toThrow("killed");
  // It may have gone back since.
  world.store.server.epoch = "second:life:0";
  await expect(moveNamespace(move)).rejects.toMatchObject({ code: "namespace_lost" });
  const { storeId: lostStoreId } = movedToIn(textOfMove((await world.store.readNamespace(NAMESPACE)).seal)) ?? {};
  world.store.before = (command) => command.step === "seal" && command.makesStore === false && killed();
  await expect(moveNamespace({ ...move, lostStoreId })).rejects.toThrow("killed");
  await expect(moveNamespace(move)).rejects.toMatchObject({ code: "namespace_lost" });
  world.store.before = () => {};
  expect(await moveNamespace({ ...move, lostStoreId })).toMatchObject({ leaseCount: 0 });
});

test("a move whose seal was not acknowledged sets the same one at the next try, while its version may be used", async () => {
  const world = await newWorld();
  Object.assign(world.store, { leases: async () => [] });
  const target = await newTarget();
  const { storeId } = await planMove(moving(world, target));
  const tried = {
    storeId: world.storeId,
    ledgerId: 5,
    generation: 0,
    nodeCount: 1,
    movesTo: `${storeId}@${target.place}`,
  };
  fileAt().note(tried);
  world.clock.timeMs += 1;
  expect(await planMove(moving(world, target))).toMatchObject({ stage: "new", storeId, firstVersion: 1 });
  expect((await planMove(moving(world, await newTarget()))).storeId).not.toBe(storeId);
  fileAt().note({ ...tried, ledgerId: 2 ** 30 + 1 });
  expect(await planMove(moving(world, target))).toMatchObject({ firstVersion: 2 });
});

test("a source that lost its record, too, is neither opened nor made again while a checkpoint has the move", async () => {
  const { world, storeId } = await forgetful();
  const { store } = world;
  const moved = { code: "namespace_moved", message: expect.stringContaining(storeId) };
  store.restore(new Map());
  await expect(guardOn(world, { checkpointFile: fileAt() })).rejects.toMatchObject(moved);
  const coordinator = new Coordinator({ store, name: "init", checkpointFileOf: () => fileAt() });
  await expect(coordinator.initNamespace(NAMESPACE)).rejects.toMatchObject(moved);
});

test("a record that can't be sealed again, because it has a time to live, may be recovered", async () => {
  const { world } = await forgetful();
  await expect(planRecovery(recovering(world))).rejects.toMatchObject({ code: "namespace_moved" });
  world.store.expires = true;
  await expect(planRecovery(recovering(world))).resolves.toMatchObject({ storeId: world.storeId });
});

test("a record that can't be sealed again is never recovered in a version of the new store, nor where its own has ended", async () => {
  const { world, storeId } = await forgetful();
  world.store.expires = true;
  const refused = { code: "namespace_moved", message: expect.stringMatching(new RegExp(`empty place: .*${storeId}`)) };
  const next = { ...recovering(world), floors: [{ from: "--min-run", ledgerId: ledgerIdOf(1, 0) }] };
  await expect(planRecovery(next)).rejects.toMatchObject(refused);
  // Where no checkpoint has the move, the operator's word counts (R7).
  const unknowing = { ...next, checkpointFile: NO_CHECKPOINT_FILE, storeId: world.storeId };
  await expect(planRecovery(unknowing)).resolves.toMatchObject({ version: 1 });
  const ended = { ...recovering(world), now: () => world.clock.timeMs + 3e12 };
  await expect(planRecovery(ended)).rejects.toMatchObject(refused);
});

test("a source that forgot its seal is believed again only without any checkpoint of the move", async () => {
  const { world } = await forgetful(NO_CHECKPOINT_FILE);
  const guard = await guardOn(world, { checkpointFile: fileAt() });
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "run_ceiling_reached" });
});

describe.each([
  ["another name of its server", "redis://127.0.0.1:6379/0", "redis://localhost:6379/0"],
  ["a server that loaded an old save", "redis://127.0.0.1:6379/0", "redis://127.0.0.1:6390/0"],
  ["a file put back from a backup", "sqlite:/srv/old/store.db", "sqlite:/srv/restored/store.db"],
])("a source that forgot its seal, at %s", (_, url, newUrl) => {
  const there = () => fileAt(at(newUrl));

  test("leases nothing, is recovered and advanced by no command, and is moved nowhere else", async () => {
    const { world, target, storeId } = await forgetful(undefined, at(url));
    const before = readdirSync(folder);
    const texts = before.map((name) => readFileSync(join(folder, name), "utf8"));
    writeFileSync(join(folder, `${"0".repeat(16)}.${NAMESPACE}.${randomUUID()}.checkpoint`), "damaged");
    const moved = { code: "namespace_moved", message: expect.stringContaining(`${target.place} as store ${storeId}`) };
    for (const act of [planMove, moveNamespace]) {
      await expect(act(moving(world, await newTarget(), there()))).rejects.toMatchObject(moved);
    }
    await expect(planRecovery(recovering(world, there()))).rejects.toMatchObject(moved);
    const advancing = { ...commonOf(world, there()), isForcedEarly: true, isClockChecked: true };
    await expect(planAdvance(advancing)).rejects.toMatchObject(moved);
    const checkpoints = { checkpointFileOf: there, namespaces: () => new Set<string>() };
    expect(await recordFindings(world.store, checkpoints)).toMatchObject([{ code: "namespace_moved" }]);
    const guard = await guardOn(world, { checkpointFile: there() });
    expect(guard.state).toMatchObject({ state: "stopped", code: "namespace_moved" });
    await expect(leaseOf(guard)).rejects.toMatchObject(moved);
    await expect(guard.heartbeat()).rejects.toMatchObject(moved);
    expect(before.map((name) => readFileSync(join(folder, name), "utf8"))).toEqual(texts);
  });

  test("is sealed again by the same move, which goes on as the same store", async () => {
    const { world, target, storeId } = await forgetful(undefined, at(url));
    expect(await moveNamespace(moving(world, target, there()))).toMatchObject({ storeId, leaseCount: undefined });
    expect(await world.store.readNamespace(NAMESPACE)).toMatchObject({ phase: 2 });
  });
});

test("a move that was cut short before it was noted is not finished after another one from a copy", async () => {
  const { world } = await forgetful(undefined, at("redis://127.0.0.1:6379/0"));
  const { storeId } = await world.store.readNamespace(NAMESPACE);
  const cutShort = await newTarget();
  const { storeId: firstStoreId } = await planMove(moving(world, cutShort, NO_CHECKPOINT_FILE));
  const seal = movedSeal({ storeId: firstStoreId, place: cutShort.place });
  const bounds = { isSilenceAccepted: false, floor: 0, generationMin: 0 };
  await doStep(world.store, NAMESPACE, { step: "seal", storeId, ...bounds, seal });
  await expect(moveNamespace(moving(world, cutShort, fileAt(HERE)))).rejects.toMatchObject({ code: "namespace_moved" });
});

test("of two copies that are moved at the same moment, the one that is noted later makes no new store", async () => {
  const { world, storeId } = await forgetful(undefined, at("redis://127.0.0.1:6379/0"));
  const other = await newTarget();
  const late = fileAt();
  let looks = 0;
  // The first look, by the plan, comes before the other copy is moved.
  const movesOf = (id: string) => (looks++ === 0 ? [] : late.movesOf(id));
  const checkpointFile = { ...late, movesOf, laterStoresOf: () => [] };
  await expect(moveNamespace(moving(world, other, checkpointFile))).rejects.toMatchObject({
    code: "namespace_moved",
    message: expect.stringContaining(storeId),
  });
  expect(looks).toBe(2);
  expect(await other.store.listNamespaces()).toEqual([]);
});

test("a checkpoint with a move outlasts a later one of a record that was made again", async () => {
  const { world } = await forgetful();
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), 1, 1);
  world.store.restore(new Map());
  const again = recovering(world);
  await recoverNamespace(again, await planRecovery(again));
  expect(fileAt().read()).toHaveProperty("movedTo");
  const moved = { code: "namespace_moved" };
  await expect(leaseOf(await guardOn(world, { checkpointFile: fileAt() }))).rejects.toMatchObject(moved);
});

test("a coordinator that meets the seal notes the move for every later one", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: fileAt() });
  const backup = world.store.backup();
  const target = await newTarget();
  Object.assign(world.store, { leases: async () => [] });
  const { storeId } = await moveNamespace(moving(world, target, NO_CHECKPOINT_FILE));
  expect(fileAt().read() ?? {}).not.toHaveProperty("movedTo");
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "namespace_moved" });
  world.store.restore(backup);
  expect(fileAt().read()).toMatchObject({ movedTo: `${storeId}@${target.place}` });
  await expect(leaseOf(await guardOn(world, { checkpointFile: fileAt() }))).rejects.toMatchObject({
    code: "namespace_moved",
  });
});

test("a coordinator that starts on a sealed store notes the move, and shows it before its first heartbeat", async () => {
  const world = await newWorld();
  Object.assign(world.store, { leases: async () => [] });
  await moveNamespace(moving(world, await newTarget(), NO_CHECKPOINT_FILE));
  const guard = await guardOn(world, { checkpointFile: fileAt() });
  expect(guard.state).toMatchObject({ state: "stopped", code: "namespace_moved" });
  expect(fileAt().read()).toHaveProperty("movedTo");
});

test("the checkpoint has the move on the disk before the record of the new store is made", async () => {
  const world = await newWorld();
  Object.assign(world.store, { leases: async () => [] });
  const target = await newTarget();
  const seen: unknown[] = [];
  const inodes: number[] = [];
  const { apply } = target.store;
  const checkpointFile = fileAt();
  checkpointFile.note({ storeId: world.storeId, ledgerId: 0, generation: 0, nodeCount: 1 });
  const inode = () => inodes.push(statSync(join(folder, readdirSync(folder)[0] as string)).ino);
  inode();
  // Held open: no later file gets its inode.
  const held = openSync(join(folder, readdirSync(folder)[0] as string), "r");
  onTestFinished(() => closeSync(held));
  target.store.apply = (namespace, expected, change) => {
    seen.push(fileAt().read());
    inode();
    return apply.call(target.store, namespace, expected, change);
  };
  const { storeId } = await moveNamespace(moving(world, target, checkpointFile));
  expect(seen).toEqual([expect.objectContaining({ movedTo: `${storeId}@${target.place}` })]);
  // A new file, which is synced.
  expect(new Set(inodes).size).toBe(2);
});

test("a move whose checkpoint can't be written makes no new store", async () => {
  const world = await newWorld();
  Object.assign(world.store, { leases: async () => [] });
  const target = await newTarget();
  const full: CheckpointFile = {
    ...NO_CHECKPOINT_FILE,
    note: () => {
      throw new Error("the disk is full");
    },
  };
  await expect(moveNamespace(moving(world, target, full))).rejects.toThrow("the disk is full");
  expect(await target.store.listNamespaces()).toEqual([]);
  expect(await moveNamespace(moving(world, target))).toMatchObject({ record: { version: 1 } });
});

describe("the checkpoint file of a store that was moved", () => {
  const checkpoint = { storeId: storeIdFrom(1), ledgerId: 7, generation: 0, nodeCount: 1 };
  const movedTo = `${storeIdFrom(2)}@${"~".repeat(MOVED_TEXT_LENGTH_MAX - storeIdFrom(2).length - 1)}`;

  test("the longest seal fits, with 16 addresses, and is read as any other line", () => {
    expect(movedToIn(movedTo)).toBeDefined();
    expect(movedSeal(movedToIn(movedTo) as NonNullable<ReturnType<typeof movedToIn>>)).toHaveLength(486);
    const place = { group: "g", addresses: Array.from({ length: 16 }, (_, at) => `server-${at}`) };
    fileAt(place).note({ ...checkpoint, movedTo });
    expect(fileAt(place).read()).toEqual({ ...checkpoint, movedTo });
    const text = readFileSync(join(folder, readdirSync(folder)[0] as string), "utf8");
    expect(text).toMatch(/^[0-9a-f]{40} \{.*\} *\n$/);
  });

  test("a move outlasts a damaged file, and the merging of files", () => {
    fileAt().note({ ...checkpoint, movedTo });
    fileAt().note({ ...checkpoint, ledgerId: 9 });
    expect(fileAt().read()).toEqual({ ...checkpoint, ledgerId: 9, movedTo });
    const damaged = fileAt();
    damaged.note(checkpoint);
    const last = readdirSync(folder).map((name) => join(folder, name));
    const plain = last.filter((path) => !readFileSync(path, "utf8").includes("movedTo"));
    for (const path of plain) writeFileSync(path, "damaged");
    expect(fileAt().read()).toMatchObject({ movedTo });
    for (const path of last) writeFileSync(path, "damaged");
    expect(fileAt().read()).toBe(CORRUPT);
  });
});
