/**
 * A node that was attached to the only one that is counted: a guard that saw it leases nothing before `recover`, whatever becomes of the record.
 * Guarantees: G7, G8 (docs/guarantees.md).
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { commandsFor, NAMESPACE } from "./commands-for-test.js";
import { guardOn, leaseAfterSkip, leaseOf, newWorld, type World } from "./guard-in-hand.js";
import { stepOn } from "./steps-for-test.js";

const code = "manual_recovery_required";
/** What `recover` writes at least over a record that no recovery has changed. */
const FIRST = 1_000;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "callnumber-attached-"));
});
afterEach(() => rm(folder, { recursive: true }));

function fileOf({ clock }: World, address = "here") {
  const place = { group: address, addresses: [address] };
  const file = openCheckpointFile({ folder, place, namespace: NAMESPACE, now: clock.now });
  return { ...file };
}

function attach({ store }: World, connectedReplicas: number): void {
  Object.assign(store.server, { connectedReplicas });
}

function setReadOnly({ store }: World, isReadOnly: boolean): void {
  store.before = ({ step }) => {
    if (isReadOnly && step === "suspect") throw new CoordinatorError("store_unavailable", "the server is read-only");
  };
}

/** A guard that has seen the node, on a server that can't be written to; `backup` is of before. */
async function guardThatSaw() {
  const world = await newWorld();
  const file = fileOf(world);
  const guard = await guardOn(world, { checkpointFile: file });
  await leaseOf(guard);
  const backup = world.store.backup();
  setReadOnly(world, true);
  attach(world, 1);
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  attach(world, 0);
  const read = () => world.store.readNamespace(NAMESPACE);
  const isKept = () => world.store.backup().get(NAMESPACE)?.["ep"] === "-:-:attached";
  const noted = () => fileOf(world).recoveredMin(world.storeId);
  const recover = () => stepOn(world.store, NAMESPACE, commandsFor(world.storeId).recover());
  expect(isKept()).toBe(false);
  return { world, guard, file, backup, read, isKept, noted, recover };
}

test("a node that was seen is kept in the directory, and in the record as soon as that can be written, also once it is gone", async () => {
  const { world, guard, isKept, noted } = await guardThatSaw();
  expect(noted()).toBe(FIRST);
  const restarted = await guardOn(world, { checkpointFile: fileOf(world) });
  const elsewhere = await guardOn(world, { checkpointFile: fileOf(world, "by another name") });
  for (const each of [guard, restarted, elsewhere]) {
    await expect(leaseOf(each)).rejects.toMatchObject({ code });
    await expect(each.heartbeat()).rejects.toMatchObject({ code });
  }
  expect(isKept()).toBe(false);
  setReadOnly(world, false);
  world.store.stepNames();
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect(world.store.stepNames()).toEqual(["heartbeat", "suspect", "suspect"]);
  expect(isKept()).toBe(true);
  expect(noted()).toBe(FIRST);
  await expect(leaseOf(await guardOn(world))).rejects.toMatchObject({ code });
});

test("it is noted before the record is written, which may take long", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(guard);
  let noted: number | undefined;
  world.store.before = ({ step }) => {
    if (step === "suspect") noted = fileOf(world).recoveredMin(world.storeId);
  };
  attach(world, 1);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect(noted).toBe(FIRST);
  expect(fileOf(world).recoveredMin(world.storeId)).toBe(FIRST);
});

test("a running guard learns what another one has noted, at its next heartbeat", async () => {
  const world = await newWorld();
  const other = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(other);
  fileOf(world).noteRecoveredMin(world.storeId, FIRST);
  await expect(other.heartbeat()).rejects.toMatchObject({ code });
  await expect(leaseOf(other)).rejects.toMatchObject({ code });
});

test("neither a restart nor a backup of before ends it; recover does, at the next heartbeat", async () => {
  const { world, guard, backup, read, isKept, noted, recover } = await guardThatSaw();
  setReadOnly(world, false);
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  for (const checkpointFile of [fileOf(world), NO_CHECKPOINT_FILE]) {
    const each = checkpointFile === NO_CHECKPOINT_FILE ? guard : await guardOn(world, { checkpointFile });
    world.store.restore(backup);
    world.store.server.epoch = "second:life:0";
    await expect(leaseOf(each)).rejects.toMatchObject({ code });
    expect(await read()).toMatchObject({ phase: 0, generation: 0 });
    expect(isKept()).toBe(false);
    await expect(each.heartbeat()).rejects.toMatchObject({ code });
    expect(isKept()).toBe(true);
  }
  await recover();
  // The note of it is of before, by the generation.
  expect(noted()).toBe(FIRST);
  await guard.heartbeat();
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(1);
});

test("a guard that only read of it in the record notes it, too", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(guard);
  await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).suspect(FIRST));
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect(fileOf(world).recoveredMin(world.storeId)).toBe(FIRST);
});

test("a recover of any machine ends it, whatever it knows, and no claim of others does", async () => {
  const { world, guard, backup, recover } = await guardThatSaw();
  const other = await guardOn(world);
  for (let life = 0; life < 3; life++) {
    world.store.restore(backup);
    world.store.server.epoch = `life-${life}:r:0`;
    await other.heartbeat();
    await expect(leaseOf(guard)).rejects.toMatchObject({ code });
  }
  await recover();
  await guard.heartbeat();
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(1);
});

test("a node that comes back after recover needs it again, also for a guard that has not seen that one", async () => {
  const { world, guard, read, recover, noted } = await guardThatSaw();
  await recover();
  const { generation } = await read();
  attach(world, 1);
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  attach(world, 0);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code });
  expect(noted()).toBe(generation + FIRST);
});

test("a recover that does not know what is noted writes a generation that reaches it, once the record keeps the node", async () => {
  const { world, guard, recover, noted } = await guardThatSaw();
  setReadOnly(world, false);
  // By a clock that was an hour ahead.
  fileOf(world).noteRecoveredMin(world.storeId, FIRST * Math.ceil((world.clock.timeMs + 3_600_000) / 10));
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(noted() - 1);
  const { after } = await recover();
  expect(after.generation).toBe(noted());
  await guard.heartbeat();
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(1);
});

test("recover may write the record while that is asked whether it is to keep the node", async () => {
  const { world, guard, recover, noted } = await guardThatSaw();
  setReadOnly(world, false);
  let looks = 0;
  const { store } = world;
  const read = store.readNamespace.bind(store);
  store.readNamespace = async (namespace) => {
    if (looks++ === 0) await recover();
    return await read(namespace);
  };
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect(looks).toBe(1);
  expect(noted()).toBe(FIRST);
  await guard.heartbeat();
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(1);
});

test("what was put back does not lower what is noted", async () => {
  const { world, guard, backup, recover, read, noted } = await guardThatSaw();
  setReadOnly(world, false);
  await recover();
  await guard.heartbeat();
  const { generation } = await read();
  attach(world, 1);
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  attach(world, 0);
  const later = generation - (generation % FIRST) + FIRST;
  expect(noted()).toBe(later);
  world.store.restore(backup);
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect(noted()).toBe(later);
});

test("a directory that was away, or emptied, gets the note again, and this process leases nothing meanwhile", async () => {
  const { guard, noted } = await guardThatSaw();
  for (const makesAgain of [false, true]) {
    await rm(folder, { recursive: true });
    if (makesAgain) await mkdir(folder);
    await expect(leaseOf(guard)).rejects.toMatchObject({ code });
    await expect(guard.heartbeat()).rejects.toMatchObject({ code });
    await expect(leaseOf(guard)).rejects.toMatchObject({ code });
    expect(noted()).toBe(FIRST);
  }
});

test("without a checkpoint that the guard had, no checkpoint is written: its next start believes no old record", async () => {
  const world = await newWorld();
  await leaseOf(await guardOn(world));
  world.clock.timeMs += 60_000;
  attach(world, 1);
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect(fileOf(world).read()).toBeUndefined();
  expect(await readdir(folder)).toEqual([`${world.storeId}.uncounted`]);
});

test("what looks like a node for an instant ends nothing, and is not noted", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, {
    checkpointFile: fileOf(world),
    pause: (pauseMs) => {
      attach(world, 0);
      return world.clock.pause(pauseMs);
    },
  });
  await leaseOf(guard);
  attach(world, 1);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect((await leaseOf(guard)).firstRun).toBe(2);
  expect(fileOf(world).recoveredMin(world.storeId)).toBe(0);
});

test("a server that does not answer when it is looked at again counts as one that has the node", async () => {
  const world = await newWorld();
  const { store, clock } = world;
  let isDown = false;
  const failing =
    <T>(read: (namespace: string) => Promise<T>) =>
    async (namespace: string) => {
      if (isDown) throw new CoordinatorError("store_unavailable", "no answer");
      return await read(namespace);
    };
  store.read = failing(store.read.bind(store));
  store.readNamespace = failing(store.readNamespace.bind(store));
  const pause = async (pauseMs: number) => {
    isDown = store.server.connectedReplicas > 0;
    await clock.pause(pauseMs);
  };
  const guard = await guardOn(world, { checkpointFile: fileOf(world), pause });
  await stepOn(store, NAMESPACE, commandsFor(world.storeId).recover());
  await leaseAfterSkip(world, guard);
  attach(world, 1);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect(fileOf(world).recoveredMin(world.storeId)).toBeGreaterThan(guard.checkpoint.generation);
  isDown = false;
  attach(world, 0);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code });
});

test("a note never falls, whichever process writes it", async () => {
  const { storeId, ...world } = await newWorld();
  const [one, other] = [fileOf({ storeId, ...world }), fileOf({ storeId, ...world })];
  one.noteRecoveredMin(storeId, 2 * FIRST);
  other.noteRecoveredMin(storeId, FIRST);
  expect(one.recoveredMin(storeId)).toBe(2 * FIRST);
});

test("a damaged note is an error that names the file", async () => {
  const world = await newWorld();
  const file = fileOf(world);
  file.noteRecoveredMin(world.storeId, 123);
  const path = join(folder, `${world.storeId}.uncounted`);
  expect(await readFile(path, "utf8")).toBe("123\n");
  expect(await readdir(folder)).toEqual([`${world.storeId}.uncounted`]);
  for (const half of ["", "12", "x\n", "x12\n", "12\n3"]) {
    await writeFile(path, half);
    expect(() => file.recoveredMin(world.storeId)).toThrow(path);
    expect(() => file.recoveredMin(world.storeId)).toThrow(
      /Stop the coordinators, delete it, then run `callnumber recover .*--apply`/,
    );
    await expect(guardOn(world, { checkpointFile: fileOf(world) })).rejects.toMatchObject({
      code: "checkpoint_unavailable",
    });
  }
  await rm(path);
  expect(file.recoveredMin(world.storeId)).toBe(0);
  // Not there, and not readable, are two things.
  await mkdir(path);
  expect(() => file.recoveredMin(world.storeId)).toThrow("EISDIR");
});

test("where several nodes are counted, one too many is waited for, and not noted", async () => {
  const world = await newWorld({ nodeCount: 2 });
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(guard);
  attach(world, 2);
  const before = world.store.backup();
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect(world.store.backup()).toEqual(before);
  attach(world, 1);
  expect((await leaseOf(guard)).firstRun).toBe(2);
  expect(fileOf(world).recoveredMin(world.storeId)).toBe(0);
});

test("where one node is counted since the last success, another one is kept all the same", async () => {
  const world = await newWorld({ nodeCount: 2 });
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(guard);
  attach(world, 0);
  await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).recover({ nodeCount: 1 }));
  attach(world, 1);
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  attach(world, 0);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code });
});

test("what else needs an operator is not taken for a node", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(guard);
  world.clock.timeMs += 31 * 86_400_000;
  await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect(fileOf(world).recoveredMin(world.storeId)).toBe(0);
});

test("however many leases see it, it is looked at once more, and kept once", async () => {
  const world = await newWorld();
  let pauseCount = 0;
  const pause = async () => void pauseCount++;
  const guard = await guardOn(world, { checkpointFile: fileOf(world), pause });
  await leaseOf(guard);
  attach(world, 1);
  world.store.stepNames();
  const leases = Array.from({ length: 8 }, () => leaseOf(guard));
  for (const { status } of await Promise.allSettled(leases)) expect(status).toBe("rejected");
  expect(pauseCount).toBe(1);
  // Asked for, and done.
  expect(world.store.stepNames().filter((step) => step === "suspect")).toHaveLength(2);
});

test.each(["no directory", "a directory that can't be written"])(
  "with %s, a guard that saw it remembers it while the record can't be written, either",
  async (which) => {
    const world = await newWorld();
    const noteRecoveredMin = () => {
      throw new CoordinatorError("checkpoint_unavailable", "the disk is full");
    };
    const checkpointFile = which === "no directory" ? NO_CHECKPOINT_FILE : { ...fileOf(world), noteRecoveredMin };
    const guard = await guardOn(world, { checkpointFile });
    await leaseOf(guard);
    setReadOnly(world, true);
    attach(world, 1);
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
    attach(world, 0);
    for (let beat = 0; beat < 3; beat++) await expect(guard.heartbeat()).rejects.toMatchObject({ code });
    await expect(leaseOf(guard)).rejects.toMatchObject({ code });
  },
);

test("a recovery that a lease needs asks the directory first, and the note makes the directory", async () => {
  const world = await newWorld();
  const guard = await guardOn(world, { checkpointFile: fileOf(world) });
  await leaseOf(guard);
  await rm(folder, { recursive: true });
  fileOf(world).noteRecoveredMin(world.storeId, FIRST);
  world.store.server.epoch = "second:life:0";
  await expect(leaseOf(guard)).rejects.toMatchObject({ code });
});

test("what is noted already is not written again at each heartbeat", async () => {
  const world = await newWorld();
  const file = fileOf(world);
  let writeCount = 0;
  const noteRecoveredMin: typeof file.noteRecoveredMin = (...note) => {
    writeCount++;
    file.noteRecoveredMin(...note);
  };
  const guard = await guardOn(world, { checkpointFile: { ...file, noteRecoveredMin } });
  await leaseOf(guard);
  attach(world, 1);
  for (let beat = 0; beat < 3; beat++)
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  attach(world, 0);
  for (let beat = 0; beat < 3; beat++) await expect(guard.heartbeat()).rejects.toMatchObject({ code });
  expect(writeCount).toBe(1);
});

test.each(["lease", "heartbeat"])(
  "a replica that only the statistics show is noted, too, before the record is written, by a %s",
  async (step) => {
    const world = await newWorld();
    const guard = await guardOn(world, { checkpointFile: fileOf(world) });
    await leaseOf(guard);
    setReadOnly(world, true);
    const { epoch = "" } = world.store.server;
    world.store.server.epoch = epoch.replace(/[^:]*$/, "9");
    await expect(step === "lease" ? leaseOf(guard) : guard.heartbeat()).rejects.toMatchObject({ code });
    expect(fileOf(world).recoveredMin(world.storeId)).toBe(FIRST);
    world.store.server.epoch = "second:life:0";
    await expect(leaseOf(guard)).rejects.toMatchObject({ code });
  },
);
