/**
 * Checkpoints outlive the coordinator: it detects a store that was rolled back, emptied or replaced.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import {
  type Checkpoint,
  type CheckpointFile,
  CORRUPT,
  isSameCheckpoint,
  mergeCheckpoints,
  NO_CHECKPOINT_FILE,
} from "../src/guard/checkpoint.js";
import {
  checkpointedNamespaces,
  checkpointsAt,
  makeCheckpointDirectory,
  openCheckpointFile,
  type StorePlace,
} from "../src/guard/checkpoint-file.js";
import { namespaceLost, withCheckpoint } from "../src/guard/guard-state.js";
import type { StoredFields } from "../src/guard/record.js";
import { SILENT_LOG } from "../src/log.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterSkip, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";
import { stepOn } from "./steps-for-test.js";

let folder: string;
const open: CheckpointFile[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "callnumber-checkpoints-"));
});

afterEach(async () => {
  for (const checkpointFile of open.splice(0)) checkpointFile.close();
  await rm(folder, { recursive: true });
});

function checkpointFileIn(
  { clock }: World,
  place: StorePlace = { group: "store", addresses: ["here"] },
): CheckpointFile {
  const checkpointFile = openCheckpointFile({ folder, place, namespace: NAMESPACE, now: clock.now });
  open.push(checkpointFile);
  return checkpointFile;
}

/** A coordinator has leased runs 1 to 10 and is gone; a backup of the store holds run 5. */
async function afterCoordinator(checkpointFile?: (world: World) => CheckpointFile) {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: (checkpointFile ?? checkpointFileIn)(world) });
  await leaseOf(guard, { runCount: 5 });
  const backup = world.store.backup();
  await leaseOf(guard, { runCount: 5 });
  guard.close();
  world.store.stepNames();
  return { world, backup };
}

test("a checkpoint detects a store restored while no coordinator ran, and the guard skips ahead", async () => {
  const { world, backup } = await afterCoordinator();
  world.store.restore(backup);
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  expect(guard.checkpoint).toMatchObject({ storeId: world.storeId, ledgerId: 10 });
  const line = lineOf(world, 2 * SHORT_BOUNDS.epsMs);
  expect((await leaseAfterSkip(world, guard)).firstRun).toBe(line + 1);
  expect(world.store.stepNames().slice(0, 3)).toEqual(["lease", "claim", "confirm"]);
});

test("the generation detects a restored store too", async () => {
  const { world, backup } = await afterCoordinator();
  world.store.server.epoch = "second:life:0";
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  await guard.heartbeat();
  guard.close();
  world.store.server.epoch = "first:life:0";
  world.store.restore(backup);
  const later = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  expect(later.checkpoint.generation).toBe(1);
  await expect(leaseOf(later)).rejects.toMatchObject({ code: "run_ceiling_reached" });
  expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(2);
});

test("one checkpoint of several detects a restored store", async () => {
  const { world, backup } = await afterCoordinator();
  const second = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  const mostRecent = await leaseOf(second, { runCount: 3 });
  // No close: the process was killed. What it wrote outlives it.
  world.store.restore(backup);
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  expect(guard.checkpoint.ledgerId).toBe(mostRecent.firstRun + 2);
});

describe("a coordinator without a checkpoint", () => {
  const attendedMs = 10_000;
  /** Run 5 is put back into the running server, and a coordinator is started that knows nothing. */
  async function afterPutBack(waitMs: number, checkpointFile?: (world: World) => CheckpointFile) {
    const { world, backup } = await afterCoordinator();
    await rm(folder, { recursive: true });
    await mkdir(folder);
    world.store.restore(backup);
    world.clock.timeMs += waitMs;
    const guard = await guardOn(world, { attendedMs, checkpointFile: checkpointFile?.(world) ?? NO_CHECKPOINT_FILE });
    return { world, guard };
  }

  test("a coordinator without a checkpoint recovers a record that no other one has just written", async () => {
    const { world, guard } = await afterPutBack(attendedMs + 1);
    expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(10);
    expect(world.store.stepNames().slice(0, 2)).toEqual(["claim", "confirm"]);
  });

  test("a coordinator without a checkpoint believes a record that another one has just written", async () => {
    const world = await newWorld();
    const other = await guardOn(world);
    await leaseOf(other, { runCount: 5 });
    world.clock.timeMs += attendedMs + 1;
    await other.heartbeat();
    world.clock.timeMs += attendedMs;
    expect((await leaseOf(await guardOn(world, { attendedMs }))).firstRun).toBe(6);
  });

  test("a coordinator without a checkpoint believes a record that another one writes before its first step", async () => {
    const world = await newWorld();
    const other = await guardOn(world);
    await leaseOf(other, { runCount: 5 });
    world.clock.timeMs += attendedMs + 1;
    const guard = await guardOn(world, { attendedMs });
    await other.heartbeat();
    expect((await leaseOf(guard)).firstRun).toBe(6);
  });

  test("coordinators that start together without a checkpoint recover once", async () => {
    const { world, guard } = await afterPutBack(attendedMs + 1);
    const second = await guardOn(world, { attendedMs });
    await leaseAfterSkip(world, guard);
    world.store.stepNames();
    world.clock.timeMs += 1_000;
    await leaseOf(second);
    expect(world.store.stepNames()).toEqual(["lease"]);
  });

  test("a coordinator without a checkpoint does not wait right after init, and believes no old record that looks new", async () => {
    const world = await newWorld();
    const made = world.store.backup();
    world.clock.timeMs += attendedMs;
    expect((await leaseOf(await guardOn(world, { attendedMs }))).firstRun).toBe(1);
    world.store.restore(made);
    world.clock.timeMs += 1;
    await expect(leaseOf(await guardOn(world, { attendedMs }))).rejects.toMatchObject({ code: "run_ceiling_reached" });
  });

  test("a coordinator without a checkpoint leaves an exclusive store to its restart marker", async () => {
    const { world } = await afterCoordinator();
    world.store.isExclusive = true;
    world.clock.timeMs += attendedMs + 1;
    expect((await leaseOf(await guardOn(world, { attendedMs }))).firstRun).toBe(11);
  });

  test("a coordinator without a checkpoint believes no old record when its own clock is behind at the start", async () => {
    const { world, backup } = await afterCoordinator();
    await rm(folder, { recursive: true });
    await mkdir(folder);
    world.store.restore(backup);
    world.clock.timeMs += attendedMs + SHORT_BOUNDS.epsMs + 1;
    world.store.behindMs = attendedMs;
    const guard = await guardOn(world, { attendedMs, checkpointFile: checkpointFileIn(world) });
    await expect(leaseOf(guard)).rejects.toMatchObject({ code: "clock_skew" });
    expect(checkpointFileIn(world).read()).toBeUndefined();
    world.store.behindMs = 0;
    expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(10);
  });

  test("a coordinator notes no checkpoint before it has recovered what it knows nothing of", async () => {
    const { world, guard } = await afterPutBack(attendedMs + 1, checkpointFileIn);
    expect(checkpointFileIn(world).read()).toBeUndefined();
    await leaseAfterSkip(world, guard);
    expect(checkpointFileIn(world).read()).toMatchObject({ generation: 1 });
  });
});

test("a silence of more than 30 days needs an operator, also where no other process can have used the store", async () => {
  const { world } = await afterCoordinator();
  world.store.isExclusive = true;
  world.clock.timeMs += 31 * 24 * 3_600_000;
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  const { highWaterMark } = await guard.readRecord();
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "manual_recovery_required" });
  expect(await guard.readRecord()).toMatchObject({ highWaterMark });
});

describe("a store that is not there any more", () => {
  const typed = ({ storeId }: World) =>
    `callnumber recover --store STORE_URL --namespace ${NAMESPACE} --store-id ${storeId} --min-run 0/10`;

  test("a coordinator whose store was emptied stops leasing and shows the command", async () => {
    const { world } = await afterCoordinator();
    const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
    await leaseOf(guard);
    world.store.restore(new Map());
    const emptied = {
      code: "namespace_lost",
      message: expect.stringContaining(typed(world).replace(/10$/, "11")),
    };
    await expect(leaseOf(guard)).rejects.toMatchObject(emptied);
    await expect(guard.heartbeat()).rejects.toMatchObject(emptied);
    await expect(guard.readRecord()).rejects.toMatchObject(emptied);
    expect(guard.state).toMatchObject({ state: "stopped", code: "namespace_lost" });
  });

  test("a coordinator that starts after the store was emptied shows the command", async () => {
    const { world } = await afterCoordinator();
    world.store.restore(new Map());
    await expect(guardOn(world, { checkpointFile: checkpointFileIn(world) })).rejects.toMatchObject({
      code: "namespace_lost",
      message: expect.stringContaining(typed(world)),
    });
    // At another place no coordinator has leased anything yet.
    await expect(
      guardOn(world, { checkpointFile: checkpointFileIn(world, { group: "store", addresses: ["elsewhere"] }) }),
    ).rejects.toMatchObject({
      code: "namespace_not_found",
    });
  });

  test("a namespace with a checkpoint can't be initialized again in an emptied store", async () => {
    const { world } = await afterCoordinator();
    world.store.restore(new Map());
    const { now } = world.clock;
    const coordinator = new Coordinator({
      store: world.store,
      name: "init",
      now,
      checkpointFileOf: () => checkpointFileIn(world),
    });
    await expect(coordinator.initNamespace(NAMESPACE)).rejects.toMatchObject({
      code: "namespace_lost",
      message: expect.stringContaining(typed(world)),
    });
    expect(await world.store.listNamespaces()).toEqual([]);
  });
});

describe("a record that can't be read any more", () => {
  const damaged = (world: World) => {
    const [[namespace, fields] = ["", {}]] = [...world.store.backup()];
    world.store.restore(new Map([[namespace, { ...fields, c: "7" } as StoredFields]]));
  };

  test("the coordinator reports an unreadable record with its state, its start and the checkpoint", async () => {
    const { world } = await afterCoordinator();
    const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
    const openedAtMs = world.clock.timeMs;
    damaged(world);
    world.clock.timeMs += 1_000;
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "store_corrupt" });
    world.clock.timeMs += 60_000;
    const since = new Date(openedAtMs + 1_000).toISOString();
    await expect(guard.showRecord()).rejects.toMatchObject({
      code: "store_corrupt",
      message: expect.stringMatching(
        `checksum.*callnumber recover.*stopped since ${since}. Checkpoint: store id ${world.storeId}, run 10, generation 0$`,
      ),
    });
  });

  test("a coordinator that starts later reports an unreadable record", async () => {
    const { world } = await afterCoordinator();
    damaged(world);
    await expect(guardOn(world, { checkpointFile: checkpointFileIn(world) })).rejects.toMatchObject({
      code: "store_corrupt",
      message: expect.stringContaining(`Checkpoint: store id ${world.storeId}, run 10,`),
    });
  });

  test("the coordinator shows a readable record, and names the store id of a missing one once", async () => {
    const { world } = await afterCoordinator();
    const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
    expect(await guard.showRecord()).toEqual(await guard.readRecord());
    world.store.restore(new Map());
    const shown = () => guard.showRecord().catch((error: Error) => error.message);
    expect(await shown()).toMatch(/callnumber recover .*`$/);
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "namespace_lost" });
    expect(await shown()).toMatch(/callnumber recover .* stopped since \S+$/);
    expect(String(await shown()).split(world.storeId)).toHaveLength(2);
  });
});

describe("another store in the place of one", () => {
  async function replaced() {
    const { world } = await afterCoordinator();
    world.store.restore(new Map());
    const otherId = storeIdFrom(1);
    await stepOn(world.store, NAMESPACE, commandsFor(otherId).init());
    world.store.stepNames();
    return { world, otherId };
  }

  test("every later coordinator rejects a replaced store, with its id", async () => {
    const { world, otherId } = await replaced();
    await expect(guardOn(world, { checkpointFile: checkpointFileIn(world) })).rejects.toMatchObject({
      code: "store_id_mismatch",
      message: expect.stringContaining(otherId),
    });
    expect(world.store.stepNames()).toEqual([]);
  });
});

describe("a group of servers", () => {
  const group = (...addresses: string[]): StorePlace => ({ group: "redis-sentinel/mymaster/0/callnumber:", addresses });
  const checkpointFileAt =
    (...addresses: string[]) =>
    (world: World) =>
      checkpointFileIn(world, group(...addresses));

  test("a coordinator finds its checkpoint when the list of servers gets longer or shorter", async () => {
    const { world } = await afterCoordinator(checkpointFileAt("a:1", "b:1"));
    for (const list of [["b:1"], ["c:1", "b:1"], ["c:1"], ["d:1", "e:1", "c:1"]]) {
      const guard = await guardOn(world, { checkpointFile: checkpointFileAt(...list)(world) });
      expect(guard.checkpoint.ledgerId, list.join()).toBe(10);
      guard.close();
    }
    world.store.restore(new Map());
    await expect(guardOn(world, { checkpointFile: checkpointFileAt("e:1", "f:1")(world) })).rejects.toMatchObject({
      code: "namespace_lost",
    });
  });

  test("two groups of the same name on one machine keep their own pins", async () => {
    const one = await afterCoordinator(checkpointFileAt("a:1", "b:1"));
    const other = await afterCoordinator(checkpointFileAt("x:1", "y:1"));
    expect(one.world.storeId).not.toBe(other.world.storeId);
    for (const { world, at } of [
      { ...one, at: checkpointFileAt("b:1", "c:1") },
      { ...other, at: checkpointFileAt("y:1", "z:1") },
    ]) {
      const guard = await guardOn(world, { checkpointFile: at(world) });
      expect(guard.checkpoint).toMatchObject({ storeId: world.storeId, ledgerId: 10 });
      guard.close();
      world.store.restore(new Map());
      await expect(guardOn(world, { checkpointFile: at(world) })).rejects.toMatchObject({ code: "namespace_lost" });
    }
  });

  test("a coordinator rejects a list that names servers of two groups", async () => {
    const { world } = await afterCoordinator(checkpointFileAt("a:1"));
    await afterCoordinator(checkpointFileAt("x:1"));
    await expect(guardOn(world, { checkpointFile: checkpointFileAt("a:1", "x:1")(world) })).rejects.toMatchObject({
      code: "store_id_mismatch",
      message: expect.stringMatching(`has checkpoints of more than one store .*${world.storeId}`),
    });
  });

  test("a coordinator keeps the abandoned checkpoint of its own group, and leaves that of another", async () => {
    const { world } = await afterCoordinator(checkpointFileAt("a:1"));
    await afterCoordinator(checkpointFileAt("x:1"));
    expect(await readdir(folder)).toHaveLength(2);
    world.clock.timeMs += 2 * 3_600_000;
    const guard = await guardOn(world, { checkpointFile: checkpointFileAt("a:1")(world) });
    expect(guard.checkpoint.ledgerId).toBe(10);
    expect(await readdir(folder)).toHaveLength(2);
    const other = checkpointFileAt("x:1")(world);
    expect(other.read()).toMatchObject({ ledgerId: 10 });
  });

  test("a group of servers may have more addresses than fit into a checkpoint file", async () => {
    const many = Array.from({ length: 40 }, (_, index) => `node-${index}.example.org:6379`);
    const { world } = await afterCoordinator(checkpointFileAt(...many));
    const guard = await guardOn(world, { checkpointFile: checkpointFileAt(...many)(world) });
    expect(guard.checkpoint.ledgerId).toBe(10);
  });

  test("the coordinator logs a new group of servers, and only once", async () => {
    const world = await newWorld();
    const pins: unknown[] = [];
    const log = {
      ...SILENT_LOG,
      info: (fields: object, event: string) => void (event === "checkpoint_created" && pins.push(fields)),
    };
    const first = await guardOn(world, { checkpointFile: checkpointFileAt("a:1")(world), log });
    await first.heartbeat();
    first.close();
    (await guardOn(world, { checkpointFile: checkpointFileAt("a:1", "b:1")(world), log })).close();
    expect(pins).toEqual([expect.objectContaining({ storeId: world.storeId, version: 0, run: 0 })]);
    (await guardOn(world, { checkpointFile: checkpointFileAt("z:1")(world), log })).close();
    expect(pins).toHaveLength(2);
  });
});

describe("the checkpoint directory", () => {
  const place = { group: "store", addresses: ["here"] };
  const checkpoint = { storeId: storeIdFrom(1), ledgerId: 7, generation: 0, nodeCount: 1 };
  const noteOf = (namespace: string, noted: Partial<Checkpoint> = {}, at: StorePlace = place) => {
    const checkpointFile = openCheckpointFile({ folder, place: at, namespace });
    open.push(checkpointFile);
    checkpointFile.note({ ...checkpoint, ...noted });
    return checkpointFile;
  };

  test("checkpoints of two namespaces are kept apart when one name begins with the other and a dot", () => {
    noteOf("lists.old", { storeId: storeIdFrom(9), ledgerId: 99 });
    expect(noteOf("lists").read()).toBeUndefined();
    expect(openCheckpointFile({ folder, place, namespace: "lists" }).read()).toEqual(checkpoint);
  });

  test("the checkpoint directory lists the checkpoints of a place, and reading it makes nothing", () => {
    noteOf("lists.old", { ledgerId: 99 });
    noteOf("main");
    noteOf("other", {}, { ...place, addresses: ["there"] });
    expect([...checkpointsAt(folder, place)].sort()).toEqual([
      ["lists.old", { ...checkpoint, ledgerId: 99 }],
      ["main", checkpoint],
    ]);
    expect(checkpointsAt(join(folder, "none"), place).size).toBe(0);
    expect(readdirSync(folder)).not.toContain("none");
    expect([...checkpointedNamespaces(folder, place)].sort()).toEqual(["lists.old", "main"]);
    expect([...checkpointedNamespaces(folder, { ...place, group: "another" })]).toEqual([]);
  });

  test("the coordinator creates the checkpoint directory for a new store, or reports its path when it cannot", async () => {
    makeCheckpointDirectory(join(folder, "new"));
    expect(readdirSync(join(folder, "new"))).toEqual([]);
    await writeFile(join(folder, "file"), "");
    for (const act of [
      (at: string) => makeCheckpointDirectory(join(at, "in")),
      (at: string) => checkpointedNamespaces(at, place),
    ]) {
      expect(() => act(join(folder, "file"))).toThrow(
        expect.objectContaining({
          code: "checkpoint_unavailable",
          message: expect.stringContaining(join(folder, "file")),
        }),
      );
    }
  });

  test("checkpoint files have 1,024 bytes that no other user may read, and files of another name are not read", async () => {
    noteOf("main");
    const [name] = readdirSync(folder) as [string];
    const { size, mode } = statSync(join(folder, name));
    expect([size, mode & 0o777]).toEqual([1_024, 0o600]);
    for (const other of [`x${name}`, `${name}.new`, "notes"]) await writeFile(join(folder, other), "damaged");
    expect(openCheckpointFile({ folder, place, namespace: "main" }).read()).toEqual(checkpoint);
  });

  test("what can be read next to a damaged file is known, although the whole is not believed", async () => {
    noteOf("main");
    const [name] = readdirSync(folder) as [string];
    await writeFile(join(folder, name.replace(/\.[0-9a-f-]{36}\./, `.${randomUUID()}.`)), "damaged");
    const file = openCheckpointFile({ folder, place, namespace: "main" });
    expect([file.read(), file.readable()]).toEqual([CORRUPT, checkpoint]);
  });

  test("a checkpoint file that was cut or has more before or after its line is read as damaged", async () => {
    noteOf("main");
    const path = join(folder, readdirSync(folder)[0] as string);
    const text = await readFile(path, "utf8");
    for (const damaged of ["", text.trimEnd(), `0${text}`, `${text}0`, text.replace('"ledgerId":7', '"ledgerId":8')]) {
      await writeFile(path, damaged);
      expect(openCheckpointFile({ folder, place, namespace: "main" }).read(), damaged.slice(0, 60)).toBe(CORRUPT);
    }
  });

  test("a checkpoint without a note closes without a file, and one with a note writes it once more", async () => {
    openCheckpointFile({ folder, place, namespace: "none" }).close();
    expect(readdirSync(folder)).toEqual([]);
    const checkpointFile = noteOf("main");
    const path = join(folder, readdirSync(folder)[0] as string);
    await rm(path);
    checkpointFile.close();
    expect(openCheckpointFile({ folder, place, namespace: "main" }).read()).toEqual(checkpoint);
    await rm(path);
    checkpointFile.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a checkpoint file is removed when it was abandoned for over an hour and another has its content", () => {
    const nowMs = Date.now();
    noteOf("main");
    const at = (timeMs: number) => openCheckpointFile({ folder, place, namespace: "main", now: () => timeMs });
    at(nowMs + 3_500_000).note(checkpoint);
    expect(readdirSync(folder)).toHaveLength(2);
    const later = at(nowMs + 3_700_000);
    later.note(checkpoint);
    expect(readdirSync(folder)).toHaveLength(1);
    expect(at(nowMs).read()).toEqual(checkpoint);
  });
});

describe("the limits of a checkpoint file", () => {
  const checkpoint = { storeId: storeIdFrom(1), ledgerId: 7, generation: 0, nodeCount: 1 };
  const openAt = (addresses: string[], now = Date.now) =>
    openCheckpointFile({ folder, place: { group: "store", addresses }, namespace: "main", now });

  test("a checkpoint file keeps 16 addresses, of which one is enough to find the place again", () => {
    openAt(Array.from({ length: 17 }, (_, index) => `server-${index}`)).note(checkpoint);
    expect(openAt(["server-15"]).read()).toEqual(checkpoint);
    expect(openAt(["server-16"]).read()).toBeUndefined();
  });

  test("a file that is abandoned for just an hour stays, and goes a millisecond later", () => {
    openAt(["here"]).note(checkpoint);
    const path = join(folder, readdirSync(folder)[0] as string);
    const writtenAtMs = 1_700_000_000_000;
    utimesSync(path, writtenAtMs / 1_000, writtenAtMs / 1_000);
    openAt(["here"], () => writtenAtMs + 3_600_000).note(checkpoint);
    expect(existsSync(path)).toBe(true);
    openAt(["here"], () => writtenAtMs + 3_600_001).note(checkpoint);
    expect(existsSync(path)).toBe(false);
  });

  test("a note within five seconds of the last sync is written in place, and a later one replaces the file", () => {
    let nowMs = 1_700_000_000_000;
    const checkpointFile = openAt(["here"], () => nowMs);
    open.push(checkpointFile);
    checkpointFile.note(checkpoint);
    const inode = () => statSync(join(folder, readdirSync(folder)[0] as string)).ino;
    const first = inode();
    nowMs += 4_999;
    checkpointFile.note(checkpoint);
    expect(inode()).toBe(first);
    nowMs += 1;
    checkpointFile.note(checkpoint);
    expect(inode()).not.toBe(first);
  });

  test("a file that was removed is replaced by one that no other user may read", () => {
    const checkpointFile = openAt(["here"], () => 1_700_000_000_000);
    open.push(checkpointFile);
    const paths = () => readdirSync(folder).map((name) => join(folder, name));
    checkpointFile.note(checkpoint);
    for (const path of paths()) rmSync(path);
    checkpointFile.note(checkpoint);
    expect(paths().map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
  });
});

describe("what is known of a store", () => {
  const known = { storeId: "a", ledgerId: 7, generation: 3, nodeCount: 1 };

  test("two checkpoints merge to the greater run and the nodes of the later generation, without another store's", () => {
    expect(mergeCheckpoints(known, { storeId: "a", ledgerId: 9, generation: 2, nodeCount: 5 })).toEqual({
      ...known,
      ledgerId: 9,
    });
    expect(mergeCheckpoints(known, { ...known, nodeCount: 5 })).toEqual(known);
    expect(mergeCheckpoints(known, { storeId: "a", ledgerId: 1, generation: 4, nodeCount: 5 })).toEqual({
      ...known,
      generation: 4,
      nodeCount: 5,
    });
    expect(mergeCheckpoints(known, { ...known, storeId: "b", ledgerId: 9 })).toBe(known);
  });

  test("two checkpoints are equal only when store, run and generation are", () => {
    expect(isSameCheckpoint(known, { ...known, nodeCount: 2 })).toBe(true);
    for (const other of [{ storeId: "b" }, { ledgerId: 8 }, { generation: 4 }]) {
      expect(isSameCheckpoint(known, { ...known, ...other })).toBe(false);
    }
  });
});

describe("refusals with what is remembered", () => {
  const remembered = { storeId: "a", ledgerId: 2 ** 30 + 7, generation: 3, nodeCount: 1 };

  test("an error includes the checkpoint and known state, and keeps its retryAfterMs; other errors stay as they are", () => {
    const error = new CoordinatorError("store_unavailable", "away", { retryAfterMs: 5 });
    const words = "Checkpoint: store id a, run 1/7, generation 3";
    const explained = withCheckpoint(error, remembered);
    expect(explained).toMatchObject({
      code: "store_unavailable",
      message: `away. ${words}`,
      retryAfterMs: 5,
      cause: error,
    });
    const state = { state: "stopped", code: "store_unavailable", reason: null, sinceMs: 0, explanation: "" } as const;
    expect(
      withCheckpoint(new CoordinatorError("store_corrupt", "bad"), { ...remembered, ledgerId: 7 }, state),
    ).toMatchObject({
      message: "bad. Leasing is stopped since 1970-01-01T00:00:00.000Z. Checkpoint: store id a, run 7, generation 3",
      retryAfterMs: undefined,
    });
    const other = new Error("other");
    expect(withCheckpoint(other, remembered)).toBe(other);
  });

  test("the error for a missing namespace names the command, also when the checkpoint is damaged", () => {
    expect(namespaceLost("main", CORRUPT).message).toMatch(/is damaged.*`callnumber recover .* --store-id STORE_ID`/);
    expect(namespaceLost("main", remembered).message).toMatch(
      /runs up to 1\/7 were leased.* --store-id a --min-run 1\/7`/,
    );
  });
});

test("a checkpoint reaches the disk every five seconds, also after the clock moved backward", async () => {
  const world = await newWorld();
  const checkpoint = checkpointFileIn(world);
  checkpoint.read();
  const note = (ledgerId: number) => checkpoint.note({ storeId: "store", ledgerId, generation: 0, nodeCount: 1 });
  // What is brought to the disk is a new file, which takes the place of the old one.
  const inode = () => statSync(join(folder, readdirSync(folder)[0] as string)).ino;
  note(1);
  const first = inode();
  world.clock.timeMs += 4_999;
  note(2);
  expect(inode()).toBe(first);
  world.clock.timeMs -= 3_600_000;
  note(3);
  const second = inode();
  expect(second).not.toBe(first);
  note(4);
  expect(inode()).toBe(second);
});

test("a checkpoint that can't be read any more causes one recovery", async () => {
  const { world } = await afterCoordinator();
  for (const name of await readdir(folder)) await writeFile(join(folder, name), "damaged");
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  const line = lineOf(world, 2 * SHORT_BOUNDS.epsMs);
  expect((await leaseAfterSkip(world, guard)).firstRun).toBe(line + 1);
  expect((await leaseAfterSkip(world, guard)).firstRun).toBe(line + 2);
  expect(world.store.stepNames().filter((name) => name === "claim")).toHaveLength(1);
});

test("a coordinator replaces its unreadable checkpoint also when another coordinator recovers first", async () => {
  const { world } = await afterCoordinator();
  for (const name of await readdir(folder)) await writeFile(join(folder, name), "damaged");
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  world.store.before = async ({ step }) => {
    if (step !== "claim") return;
    world.store.before = () => {};
    world.store.server.epoch = "second:life:0";
    await leaseAfterSkip(world, await guardOn(world));
  };
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "store_recovering", reason: "conflict" });
  world.store.stepNames();
  await leaseAfterSkip(world, guard);
  expect(world.store.stepNames()).toEqual(expect.arrayContaining(["claim", "confirm", "lease"]));
  await guard.heartbeat();
  expect(world.store.stepNames()).toEqual(["heartbeat"]);
});

test("a damaged checkpoint file is kept, however old, until the store has recovered: a coordinator may be killed", async () => {
  const { world } = await afterCoordinator();
  for (const name of await readdir(folder)) await writeFile(join(folder, name), "damaged");
  world.clock.timeMs += 2 * 3_600_000;
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  expect(checkpointFileIn(world).read()).toBe(CORRUPT);
  await leaseAfterSkip(world, guard);
  expect(checkpointFileIn(world).read()).not.toBe(CORRUPT);
});

test("a checkpoint file under the name of another namespace is read as damaged", async () => {
  const { world } = await afterCoordinator();
  const [name = ""] = await readdir(folder);
  await rename(join(folder, name), join(folder, name.replace(`.${NAMESPACE}.`, ".other.")));
  const other = openCheckpointFile({ folder, place: { group: "store", addresses: ["here"] }, namespace: "other" });
  expect(other.read()).toBe(CORRUPT);
  expect(checkpointFileIn(world).read()).toBeUndefined();
});

test("a checkpoint is written again when its directory was removed", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: checkpointFileIn(world) });
  await rm(folder, { recursive: true });
  const { firstRun } = await leaseOf(guard);
  expect(checkpointFileIn(world).read()).toMatchObject({ ledgerId: firstRun });
});

describe("leases of the same moment", () => {
  /** Remembers in memory, and passes on what it was given. */
  function listening(note: (checkpoint: Checkpoint) => void): CheckpointFile {
    return { ...NO_CHECKPOINT_FILE, note };
  }

  test("leases of the same moment are in the checkpoint before the first response, all in one write", async () => {
    const noted: number[] = [];
    const guard = await guardOn(await newWorld(), {
      checkpointFile: listening(({ ledgerId }) => noted.push(ledgerId)),
    });
    noted.length = 0;
    const leases = Array.from({ length: 10 }, async () => {
      const lastRun = lastRunOf(await leaseOf(guard, { runCount: 3 }));
      expect(noted.at(-1)).toBeGreaterThanOrEqual(lastRun);
    });
    await Promise.all(leases);
    expect(noted).toEqual([30]);
  });

  test("leases of the same moment are all rejected when the checkpoint fails, and their runs are never leased again", async () => {
    let isUnusable = false;
    const checkpointFile = listening(() => {
      if (isUnusable) throw new CoordinatorError("checkpoint_unavailable", "the disk is full");
    });
    const guard = await guardOn(await newWorld(), { checkpointFile });
    isUnusable = true;
    const outcomes = await Promise.allSettled([leaseOf(guard), leaseOf(guard), leaseOf(guard)]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "checkpoint_unavailable" } });
    isUnusable = false;
    expect((await leaseOf(guard)).firstRun).toBe(4);
  });
});
