/**
 * A move that was cut short: whatever was lost meanwhile, it can be finished, or its refusal names the way; and it never makes the new store twice.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { copyFileSync, renameSync, rmSync } from "node:fs";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { checkpointsOf } from "../src/checkpoints.js";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { ceilingAt } from "../src/guard/ceiling.js";
import { type CheckpointFile, checkpointOf, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { NamespaceGuard } from "../src/guard/namespace-guard.js";
import { movedSeal, nextStoreId, storeIdFields } from "../src/guard/store-id.js";
import { importLeases } from "../src/ledger/ledger-changes.js";
import { planAdvance } from "../src/operator/advance-version.js";
import { type MoveOptions, moveNamespace, planMove } from "../src/operator/move.js";
import { ofTarget } from "../src/operator/move-refusals.js";
import { recordFindings } from "../src/operator/record-findings.js";
import { planRecovery, type RecoverOptions, recoverNamespace, wayOfMoved } from "../src/operator/recover.js";
import { MemoryStore } from "../src/stores/memory.js";
import { keysOf } from "../src/stores/redis/scripts.js";
import { SqliteStore } from "../src/stores/sqlite/store.js";
import type { Store } from "../src/stores/store.js";
import { parseStoreUrl, placeOf } from "../src/stores/store-url.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { embeddedPlace, redisPlace } from "./places-for-move.js";
import { Clock, SettableStore } from "./settable-store.js";
import { init, lease, recentStoreId, recover, seal } from "./steps-for-move.js";
import { ledgerOf } from "./store-in-hand.js";
import { HAS_REDIS } from "./stores-for-test.js";

const FROM = "redis://127.0.0.1:6390/0";
const TO = "redis://127.0.0.1:6391/0";
const THIRD = "redis://127.0.0.1:6392/0";
let folder = "";

beforeEach(async () => {
  folder = await folderForTest();
});

function fileAt(url: string): CheckpointFile {
  return openCheckpointFile({ folder, place: placeOf(parseStoreUrl(url)), namespace: NAMESPACE });
}

function memory(): Store {
  return new MemoryStore();
}

function moving(source: Store, target: Store, { from = FROM, to = TO, ...own }: MovingOptions = {}): MoveOptions {
  const there = { store: target, place: to, checkpointFile: fileAt(to) };
  return { store: source, namespace: NAMESPACE, checkpointFile: fileAt(from), target: there, ...OPTIONS, ...own };
}

const OPTIONS = { bounds: SHORT_BOUNDS, nodeCount: 1, pageLeaseCount: 3 };
type MovingOptions = Partial<MoveOptions> & { readonly from?: string; readonly to?: string };

/** What a coordinator of the store knows when it starts. */
async function guardOf(store: Store, checkpointFile: CheckpointFile) {
  return await NamespaceGuard.open({ store, namespace: NAMESPACE, checkpointFile, bounds: SHORT_BOUNDS });
}

function recovering(store: Store, url: string, storeId?: string): RecoverOptions {
  const watching = { watchMs: 0, pause: async () => {}, isClockChecked: false };
  const given = { storeId, floors: [], nodeCount: undefined };
  return { store, namespace: NAMESPACE, checkpointFile: fileAt(url), bounds: SHORT_BOUNDS, ...watching, ...given };
}

async function recovered(options: RecoverOptions) {
  const plan = await planRecovery(options);
  return { plan, outcome: await recoverNamespace(options, plan) };
}

/** A source with five leases, and the id of the store that it is moved to. */
async function sourceIn(store: Store = memory(), from = FROM) {
  const storeId = recentStoreId();
  await init(store, storeId);
  for (let count = 0; count < 5; count++) await lease(store, storeId);
  fileAt(from).note(checkpointOf(await store.readNamespace(NAMESPACE)));
  return { store, storeId, newStoreId: nextStoreId(storeId, 1, Date.now()) };
}

/** As a move leaves it that is killed right after its seal. */
async function sealedSource(store?: Store, from = FROM) {
  const source = await sourceIn(store, from);
  await seal(source.store, source.storeId, movedSeal({ storeId: source.newStoreId, place: TO }));
  const known = checkpointOf(await source.store.readNamespace(NAMESPACE));
  fileAt(from).note(known);
  return source;
}

test("a refused move names the new store in its commands as they name a store: its place has no user", async () => {
  const { store, newStoreId } = await sealedSource();
  const naming = (target: Store, to: string, url: string) => {
    const options = moving(store, target, { to });
    return { ...options, target: { ...options.target, url } };
  };
  const elsewhere = naming(memory(), THIRD, "postgres://owner@h:5432/db");
  await expect(planMove(elsewhere)).rejects.toThrow("--to postgres://owner@h:5432/db --confirm-loss");
  const done = memory();
  await moveNamespace(moving(store, done));
  const missing = naming(memory(), TO, "redis://operator@h:6379/0");
  await expect(planMove(missing)).rejects.toThrow(`--to redis://operator@h:6379/0 --confirm-loss ${newStoreId}`);
  const failure = new CoordinatorError("store_corrupt", "Run `callnumber recover --store STORE_URL`");
  await expect(ofTarget(missing.target, Promise.reject(failure))).rejects.toThrow(
    "Run `callnumber recover --store redis://operator@h:6379/0`",
  );
});

describe("a new store that has a checkpoint, and no record at its place,", () => {
  test("is made again by no move, because it may run elsewhere; recover makes it, and the move is done", async () => {
    const { store } = await sourceIn();
    const { storeId } = await moveNamespace(moving(store, memory()));
    const empty = memory();
    for (const act of [planMove, moveNamespace]) {
      await expect(act(moving(store, empty))).rejects.toMatchObject({
        code: "namespace_lost",
        message: expect.stringContaining(`--namespace main --to ${TO} --confirm-loss ${storeId} --apply`),
      });
    }
    expect(await empty.listNamespaces()).toEqual([]);
    await recovered(recovering(empty, TO));
    expect(await empty.readNamespace(NAMESPACE)).toMatchObject({ storeId, version: 1 });
  });
});

describe("a store that was made where another one is moved", () => {
  async function strayWorld() {
    const source = await sealedSource();
    const stray = memory();
    const strayId = recentStoreId();
    await init(stray, strayId);
    return { ...source, stray, strayId };
  }

  test("leases nothing to a coordinator that knows of the move, before and after it is noted", async () => {
    const { stray, strayId, newStoreId } = await strayWorld();
    const open = () =>
      NamespaceGuard.open({ store: stray, namespace: NAMESPACE, checkpointFile: fileAt(TO), bounds: SHORT_BOUNDS });
    const refusal = {
      code: "store_id_mismatch",
      message: expect.stringMatching(
        `is store ${strayId} here, but store ${newStoreId} is moved here from ${FROM}.*remove it here.*callnumber move --store ${FROM}`,
      ),
    };
    const found = { what: refusal.message, remedy: "`callnumber explain store_id_mismatch`" };
    expect(await recordFindings(stray, checkpointsOf(parseStoreUrl(TO), folder))).toMatchObject([found]);
    await expect(open()).rejects.toMatchObject(refusal);
    await expect(open()).rejects.toMatchObject(refusal);
  });

  test("is named by the move with how to remove it, and to go on without, since the move goes nowhere else", async () => {
    const { store, stray, strayId, newStoreId } = await strayWorld();
    await expect(planMove(moving(store, stray))).rejects.toMatchObject({
      code: "namespace_exists",
      message: expect.stringMatching(
        `it holds store ${strayId}.*goes nowhere else.*remove it \\(.callnumber explain store_id_mismatch.*move .* --confirm-loss ${newStoreId} --apply`,
      ),
    });
    const elsewhere = moving(store, memory(), { to: THIRD, lostStoreId: newStoreId });
    expect(await moveNamespace(elsewhere)).toMatchObject({ leaseCount: 5 });
    // From here on there is one: the same move makes no second, even in an empty place.
    await expect(moveNamespace(moving(store, memory()))).rejects.toMatchObject({ code: "namespace_moved" });
  });
});

test("the doctor prints at the source of a move that was cut short how to finish it", async () => {
  const { store, newStoreId } = await sealedSource();
  const command = `callnumber move --store STORE_URL --namespace main --to ${TO} --apply`;
  expect(await recordFindings(store, checkpointsOf(parseStoreUrl(FROM), folder))).toMatchObject([
    {
      code: "namespace_moved",
      what: expect.stringContaining(`was moved to ${TO} as store ${newStoreId}`),
      remedy: `point the coordinator at that store; if the namespace is missing there, finish the move: \`${command}\``,
    },
  ]);
});

test("an intent to move counts no more once its source has moved elsewhere: init there succeeds, and the doctor is silent", async () => {
  const { store, newStoreId } = await sourceIn();
  const known = checkpointOf(await store.readNamespace(NAMESPACE));
  fileAt(FROM).note({ ...known, movesTo: `${newStoreId}@${THIRD}` });
  expect(fileAt(THIRD).movesHere()).toEqual([{ namespace: NAMESPACE, from: FROM, storeId: newStoreId }]);
  const checkpoints = checkpointsOf(parseStoreUrl(THIRD), folder);
  expect(await recordFindings(memory(), checkpoints)).toMatchObject([
    { code: "namespace_lost", what: expect.stringContaining(`a move from ${FROM} to this store was begun`) },
  ]);
  await moveNamespace(moving(store, memory()));
  expect(fileAt(THIRD).movesHere()).toEqual([]);
  expect(fileAt(TO).movesHere()).toHaveLength(1);
  expect(await recordFindings(memory(), checkpoints)).toMatchObject([{ code: "namespace_not_found" }]);
});

test("a source that came back without its last leases is moved to a ledger that begins with all of its own", async () => {
  const { store, storeId, newStoreId } = await sealedSource();
  const target = memory();
  const whole = await ledgerOf(store);
  await importLeases(target, NAMESPACE, whole);
  const restored = memory();
  await importLeases(restored, NAMESPACE, whole.slice(0, 3));
  await recover(restored, storeId);
  await seal(restored, storeId, movedSeal({ storeId: newStoreId, place: TO }));
  expect(await planMove(moving(restored, target))).toMatchObject({
    stage: "begun",
    ledger: { leaseCount: 3, copiedCount: 3 },
  });
  const other = memory();
  await importLeases(other, NAMESPACE, [{ ...whole[0], nonce: "nonce-of-another-lease" } as (typeof whole)[0]]);
  await expect(
    planMove({
      ...moving(restored, other),
      target: { ...moving(restored, other).target, checkpointFile: NO_CHECKPOINT_FILE },
    }),
  ).rejects.toMatchObject({
    code: "store_id_mismatch",
  });
  expect(await moveNamespace(moving(restored, target))).toMatchObject({ storeId: newStoreId, leaseCount: 3 });
  expect(await ledgerOf(target)).toEqual(whole);
});

test("a move that is done fails for a source that has more leases than the new store: a copy of it was moved", async () => {
  const { store, storeId } = await sourceIn();
  const copy = memory();
  await importLeases(copy, NAMESPACE, await ledgerOf(store));
  await recover(copy, storeId);
  const target = memory();
  const done = await moveNamespace(moving(copy, target));
  expect(await planMove(moving(store, target))).toMatchObject({ stage: "done" });
  await lease(store, storeId);
  for (const act of [planMove, moveNamespace]) {
    await expect(act(moving(store, target))).rejects.toMatchObject({
      code: "store_id_mismatch",
      message: expect.stringMatching(/has 5 of 6 leases.*Rehearse a move/),
    });
  }
  expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 0 });
  await lease(target, done.storeId).catch(() => {});
});

describe("a SQLite source whose file was put back from a copy after the seal", () => {
  async function copied(atSeal: "before" | "after") {
    const place = await embeddedPlace();
    const path = place.url.slice("sqlite:".length);
    const copy = `${path}.copy`;
    const first = await place.open();
    const source = await sourceIn(first, place.url);
    const keep = async (store: Store) => {
      await store.close();
      copyFileSync(path, copy);
      return place.open();
    };
    let store = atSeal === "before" ? await keep(first) : first;
    await seal(store, source.storeId, movedSeal({ storeId: source.newStoreId, place: TO }));
    const known = checkpointOf(await store.readNamespace(NAMESPACE));
    if (atSeal === "after") store = await keep(store);
    await store.close();
    rmSync(path);
    renameSync(copy, path);
    const open = () => {
      const opened = new SqliteStore({ path, create: false, acceptCopy: true });
      onTestFinished(() => opened.close());
      return opened;
    };
    return { ...source, from: place.url, open, known };
  }

  test.each(["before", "after"] as const)(
    "is moved on once the new store is made by hand, and is the store's file then, copied %s the seal",
    async (when) => {
      const { open, from, known, newStoreId } = await copied(when);
      fileAt(from).note(known);
      const store = open();
      expect(await store.preflight()).toContainEqual(expect.objectContaining({ code: "store_copied" }));
      const target = memory();
      // A copy of after the seal may have forgotten that the new store was made, too.
      await expect(moveNamespace(moving(store, target, { from }))).rejects.toMatchObject({ code: "namespace_lost" });
      await importLeases(target, NAMESPACE, await ledgerOf(store));
      await recovered(recovering(target, TO, newStoreId));
      expect(await moveNamespace(moving(store, target, { from }))).toMatchObject({
        storeId: newStoreId,
        leaseCount: undefined,
      });
      expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 2 });
      await store.close();
      expect((await open().preflight()).map(({ code }) => code)).not.toContain("store_copied");
    },
  );

  test("is not moved where neither seal nor checkpoint has the move", async () => {
    const { open, from } = await copied("before");
    const options = { ...moving(open(), memory(), { from }), checkpointFile: NO_CHECKPOINT_FILE };
    for (const act of [planMove, moveNamespace]) {
      await expect(act(options)).rejects.toMatchObject({ code: "store_copied" });
    }
  });
});

test("a source that is lost after the seal is named to its move as lost, and to other commands as moved", async () => {
  const { store } = await sealedSource();
  const path = `${folder}/elsewhere/store.db`;
  const checkpoints = checkpointsOf({ kind: "sqlite", path }, folder);
  checkpoints.checkpointFileOf(NAMESPACE).note(checkpointOf(await store.readNamespace(NAMESPACE)));
  expect(() => checkpoints.mustNotBeLost()).toThrow(expect.objectContaining({ code: "namespace_moved" }));
  expect(() => checkpoints.mustNotBeLost({ isMove: true })).toThrow(
    expect.objectContaining({ code: "store_not_found", message: expect.stringContaining("callnumber recover") }),
  );
});

test("recover makes the record of a lost source again, says that it stays moved, and the new store is made by recover alone", async () => {
  const { newStoreId } = await sealedSource();
  const emptied = memory();
  const { plan } = await recovered(recovering(emptied, FROM));
  expect(wayOfMoved(plan)).toMatch(/was moved to .* as store .*.*, finish the move: run `callnumber move /);
  const target = memory();
  // Whether the move was done is forgotten with the seal.
  await expect(moveNamespace(moving(emptied, target))).rejects.toMatchObject({
    code: "namespace_lost",
    message: expect.stringMatching("Only if it runs nowhere, .*, run .callnumber move .*--confirm-loss .* --apply"),
  });
  await recovered(recovering(target, TO, newStoreId));
  expect(await moveNamespace(moving(emptied, target))).toMatchObject({ storeId: newStoreId });
  expect(await emptied.readNamespace(NAMESPACE)).toMatchObject({ phase: 2 });
});

describe.runIf(HAS_REDIS)("a sealed source in Redis", () => {
  async function sealedInRedis() {
    const place = await redisPlace();
    const store = await place.open();
    const source = await sealedSource(store);
    const redis = new Redis(sharedRedis().url);
    onTestFinished(() => redis.disconnect());
    const prefix = new URL(place.url).searchParams.get("prefix") as string;
    return { ...source, redis, keys: keysOf(prefix, NAMESPACE) };
  }

  test.each(["ledger", "holders"] as const)(
    "keeps its seal when recover renames a foreign key in place of its %s",
    async (key) => {
      const { store, redis, keys, newStoreId } = await sealedInRedis();
      const target = memory();
      await redis.set(keys[key], "of another program");
      await expect(planMove(moving(store, target))).rejects.toMatchObject({ code: "store_corrupt" });
      const { outcome } = await recovered(recovering(store, FROM));
      expect(outcome.movedAside).toHaveLength(1);
      expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 2 });
      expect(await moveNamespace(moving(store, target))).toMatchObject({ storeId: newStoreId });
      await expect(planRecovery(recovering(store, FROM))).rejects.toMatchObject({ code: "namespace_moved" });
    },
  );

  test("that lost its holders is moved with unknown ones", async () => {
    const { store, redis, keys } = await sealedInRedis();
    await redis.del(keys.holders);
    const target = memory();
    expect(await moveNamespace(moving(store, target))).toMatchObject({ leaseCount: 5 });
    const [first] = await ledgerOf(target);
    expect(first?.holder).toEqual({
      name: "unknown",
      host: "unknown",
      pid: 0,
      labels: { note: "the holder was lost by the store" },
    });
  });
});

describe("a new store whose id is from a clock that was ahead", () => {
  const AHEAD_MS = 20 * 24 * 3_600_000;

  test("is not used again by a move that has not begun", async () => {
    const { store, storeId } = await sourceIn();
    const ahead = nextStoreId(storeId, 1, Date.now() + AHEAD_MS);
    fileAt(FROM).note({ ...checkpointOf(await store.readNamespace(NAMESPACE)), movesTo: `${ahead}@${TO}` });
    expect((await planMove(moving(store, memory()))).storeId).not.toBe(ahead);
  });

  test("is named by a move that has begun, with the time when it can go on", async () => {
    const { store, storeId } = await sourceIn();
    const ahead = nextStoreId(storeId, 1, Date.now() + AHEAD_MS);
    await seal(store, storeId, movedSeal({ storeId: ahead, place: TO }));
    const target = memory();
    for (const act of [planMove, moveNamespace]) {
      await expect(act(moving(store, target))).rejects.toMatchObject({
        code: "manual_recovery_required",
        message: expect.stringMatching(/a clock that was ahead.*run the same again after 20/),
      });
    }
    for (const one of [store, target]) {
      const { read } = one;
      one.read = async (namespace) => {
        const { keys, server } = await read.call(one, namespace);
        return { keys, server: { ...server, timeMs: server.timeMs + AHEAD_MS } };
      };
    }
    const later = moving(store, target, { now: () => Date.now() + AHEAD_MS });
    expect(await planMove(later)).toMatchObject({ stage: "begun", storeId: ahead });
  });
});

describe("a move to another place than the one it has begun for", () => {
  /** From a machine that knows nothing of the move. */
  const unknowing = (store: Store, target: Store, own: MovingOptions = {}) => ({
    ...moving(store, target, own),
    checkpointFile: NO_CHECKPOINT_FILE,
  });

  test("names that place, and what to do where it is lost; then another store begins there above all of the lost one", async () => {
    const { store, newStoreId } = await sealedSource();
    const third = memory();
    await expect(moveNamespace(moving(store, third, { to: THIRD, nodeCount: 2 }))).rejects.toMatchObject({
      code: "namespace_moved",
      movedTo: `${newStoreId}@${TO}`,
      message: expect.stringContaining(
        `take this place: \`callnumber move --store STORE_URL --namespace main --to ${THIRD} --nodes 2 --confirm-loss ${newStoreId} --apply\``,
      ),
    });
    const beforeMs = Date.now();
    const { storeId, leaseCount } = await moveNamespace(moving(store, third, { to: THIRD, lostStoreId: newStoreId }));
    expect(leaseCount).toBe(5);
    const { firstVersion, firstRun } = storeIdFields(storeId);
    expect(firstVersion).toBe(1);
    expect(firstRun).toBeGreaterThan(ceilingAt(storeIdFields(newStoreId), 1, beforeMs));
    expect(await third.readNamespace(NAMESPACE)).toMatchObject({ storeId, version: 1 });
    expect(fileAt(FROM).movesOf((await store.readNamespace(NAMESPACE)).storeId)[0]).toBe(`${storeId}@${THIRD}`);
    expect(fileAt(TO).movesHere()).toEqual([]);
    // Nowhere else from now on, for any machine, and by any command that was printed before.
    for (const of of [moving, unknowing]) {
      for (const lostStoreId of [undefined, newStoreId]) {
        const first = memory();
        await expect(moveNamespace(of(store, first, { lostStoreId }))).rejects.toMatchObject({
          code: "namespace_moved",
        });
        await expect(moveNamespace(of(store, first, { to: THIRD, lostStoreId }))).rejects.toMatchObject({
          code: "namespace_lost",
        });
        expect(await first.listNamespaces()).toEqual([]);
      }
      expect(await moveNamespace(of(store, third, { to: THIRD }))).toMatchObject({ leaseCount: undefined });
    }
  });

  test("a place that was given up, and has its store again, is not gone back to", async () => {
    const { store, newStoreId } = await sealedSource();
    const first = memory();
    await moveNamespace(moving(store, first));
    const { storeId } = await moveNamespace(moving(store, memory(), { to: THIRD, lostStoreId: newStoreId }));
    await expect(moveNamespace(moving(store, first, { lostStoreId: storeId }))).rejects.toMatchObject({
      code: "namespace_exists",
    });
    const moved = { code: "namespace_moved", message: expect.stringContaining(`goes on as store ${storeId}`) };
    await expect(planRecovery(recovering(memory(), TO))).rejects.toMatchObject(moved);
    // Nor is it leased from, nor does it ask to be recovered, where the later one is known.
    await expect(guardOf(first, fileAt(TO))).rejects.toMatchObject(moved);
    await expect(guardOf(memory(), fileAt(TO))).rejects.toMatchObject(moved);
    const checkpoints = checkpointsOf(parseStoreUrl(TO), folder);
    const remedy = "point the coordinator at that store";
    for (const there of [first, memory()]) {
      const what = moved.message;
      expect(await recordFindings(there, checkpoints)).toMatchObject([{ code: "namespace_moved", what, remedy }]);
    }
    const coordinator = new Coordinator({ store: memory(), name: "test", checkpointFileOf: () => fileAt(TO) });
    await expect(coordinator.initNamespace(NAMESPACE)).rejects.toMatchObject(moved);
    expect(() => checkpoints.mustNotBeLost()).toThrow(`goes on as store ${storeId}`);
  });

  test("begins above the store that is given up also where nothing else shows that one", async () => {
    const { store, storeId } = await sourceIn();
    const lostStoreId = nextStoreId(storeId, 1, Date.now() + 1000 * 86_400_000, 5000);
    const { storeId: made } = await moveNamespace(moving(store, memory(), { to: THIRD, lostStoreId }));
    expect(storeIdFields(made)).toMatchObject({ firstVersion: 1, firstRun: 5001 });
  });

  test("is not made by an older store than the one that moved there", async () => {
    const { store, newStoreId } = await sealedSource();
    const second = memory();
    await moveNamespace(moving(store, second));
    const third = nextStoreId(newStoreId, 2, Date.now());
    fileAt(TO).note({ ...checkpointOf(await second.readNamespace(NAMESPACE)), movedTo: `${third}@${THIRD}` });
    const before = await store.readNamespace(NAMESPACE);
    for (const lostStoreId of [undefined, newStoreId]) {
      for (const to of [TO, THIRD]) {
        await expect(moveNamespace(moving(store, memory(), { to, lostStoreId }))).rejects.toMatchObject({
          code: "namespace_moved",
        });
      }
    }
    expect((await store.readNamespace(NAMESPACE)).seal).toBe(before.seal);
  });

  test("asks for the clocks where a checkpoint has a run of the lost store above its ceiling", async () => {
    const { store, newStoreId } = await sealedSource();
    // As a coordinator noted it that had another name of its host.
    const there = "redis://127.0.0.1:6399/0";
    fileAt(there).note({ storeId: newStoreId, ledgerId: ledgerIdOf(1, 200_000), generation: 0, nodeCount: 1 });
    for (const own of [{ to: THIRD }, {}]) {
      const { seal: before } = await store.readNamespace(NAMESPACE);
      const target = moving(store, memory(), { ...own, lostStoreId: newStoreId });
      await expect(moveNamespace(target)).rejects.toMatchObject({ code: "manual_recovery_required" });
      expect(await store.readNamespace(NAMESPACE)).toMatchObject({ seal: before });
    }
  });

  test("goes on in the next version where the lost store may have reached the end of its own", async () => {
    const { store, storeId } = await sourceIn();
    const lostStoreId = nextStoreId(storeId, 1, Date.now(), RUN_MAX - 150_000);
    await seal(store, storeId, movedSeal({ storeId: lostStoreId, place: TO }));
    const third = memory();
    await moveNamespace(moving(store, third, { to: THIRD, lostStoreId }));
    expect(await third.readNamespace(NAMESPACE)).toMatchObject({ version: 2 });
    // What a coordinator of the old store noted before stays on file.
    fileAt(FROM).note({ ...checkpointOf(await store.readNamespace(NAMESPACE)), movedTo: `${lostStoreId}@${TO}` });
    expect(fileAt(FROM).readable()?.movedTo).toMatch(THIRD);
  });

  test("is not sure that the new store was not made where only a checkpoint has that move: a copy may have been moved", async () => {
    const { store, storeId } = await sealedSource();
    const later = nextStoreId(storeId, 1, Date.now() + 60_000);
    const known = checkpointOf(await store.readNamespace(NAMESPACE));
    fileAt(FROM).note({ ...known, movedTo: `${later}@${THIRD}` });
    await expect(moveNamespace(moving(store, memory(), { to: THIRD }))).rejects.toMatchObject({
      code: "namespace_lost",
      message: expect.stringContaining(`--confirm-loss ${later} --apply`),
    });
  });

  test("one that is killed on the way asks again before it makes the new store", async () => {
    const { store, newStoreId } = await sealedSource();
    const third = memory();
    Object.assign(third, { appendLeases: async () => Promise.reject(new Error("killed")) });
    await expect(moveNamespace(moving(store, third, { to: THIRD, lostStoreId: newStoreId }))).rejects.toThrow("killed");
    expect(await store.readNamespace(NAMESPACE)).toMatchObject({ seal: expect.stringMatching(`@${THIRD} done$`) });
    for (const of of [moving, unknowing]) {
      await expect(moveNamespace(of(store, memory()))).rejects.toMatchObject({ code: "namespace_moved" });
      await expect(moveNamespace(of(store, memory(), { to: THIRD }))).rejects.toMatchObject({
        message: expect.stringContaining("--confirm-loss"),
      });
    }
  });

  test.each([false, true])(
    "overtakes a process, which makes no new store at the first place (confirmed: %s)",
    async (isConfirmed) => {
      const { store, storeId, newStoreId } = await sealedSource();
      const lostStoreId = newStoreId;
      const [first, third] = [memory(), memory()];
      const append = first.appendLeases.bind(first);
      Object.assign(first, {
        appendLeases: async (...words: Parameters<Store["appendLeases"]>) => {
          if ((await third.listNamespaces()).length === 0)
            await moveNamespace(unknowing(store, third, { to: THIRD, lostStoreId }));
          return await append(...words);
        },
      });
      if (isConfirmed) await seal(store, storeId, `${movedSeal({ storeId: newStoreId, place: TO })} done`);
      const own = isConfirmed ? { lostStoreId } : {};
      await expect(moveNamespace(unknowing(store, first, own))).rejects.toMatchObject({ code: "namespace_moved" });
      expect(await first.listNamespaces()).toEqual([]);
    },
  );

  test("of two that give the same store up at the same moment, one does it", async () => {
    const { store, newStoreId } = await sealedSource();
    const [second, third] = [memory(), memory()];
    const tries = [
      unknowing(store, second, { to: "redis://127.0.0.1:6393/0", lostStoreId: newStoreId }),
      unknowing(store, third, { to: THIRD, lostStoreId: newStoreId }),
    ];
    const done = await Promise.allSettled(tries.map(moveNamespace));
    expect(done.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect([...(await second.listNamespaces()), ...(await third.listNamespaces())]).toEqual([NAMESPACE]);
  });
});

test("a new store that was moved on is made again by no move, whatever is confirmed, and by no step into its version", async () => {
  const { store, storeId, newStoreId } = await sealedSource();
  await moveNamespace(moving(store, memory()));
  const later = nextStoreId(newStoreId, 2, Date.now());
  fileAt(THIRD).note({ storeId: later, ledgerId: 2 ** 31 + 1, generation: 0, nodeCount: 1 });
  await expect(moveNamespace(moving(store, memory(), { lostStoreId: newStoreId }))).rejects.toMatchObject({
    code: "namespace_moved",
    message: expect.stringContaining(`goes on as store ${later}`),
  });
  // A note of the move itself is readable no more.
  const forgotten = memory();
  await init(forgotten, storeId);
  const options = { ...recovering(forgotten, FROM), checkpointFile: { ...fileAt(FROM), movesOf: () => [] } };
  const known = { read: () => undefined, readable: () => undefined, note: () => {} };
  const file = { ...options.checkpointFile, ...known };
  await expect(planAdvance({ ...options, checkpointFile: file, isForcedEarly: true })).rejects.toMatchObject({
    code: "namespace_moved",
  });
  await expect(
    planRecovery({ ...options, checkpointFile: file, minRun: { version: 1, run: 5 } }),
  ).rejects.toMatchObject({ code: "namespace_moved" });
});

test("the new store that a kill left without its record is made with the nodes that it was to have", async () => {
  const { store, newStoreId } = await sealedSource();
  fileAt(TO).note({ storeId: newStoreId, ledgerId: 2 ** 30 + 1, generation: 0, nodeCount: 2 });
  await expect(moveNamespace(moving(store, memory(), { lostStoreId: newStoreId }))).rejects.toThrow("pass --nodes 2");
});

test("a move from a store that lacks other nodes names the command that counts fewer there, and it helps", async () => {
  const store = Object.assign(new SettableStore(new Clock()), { acknowledgedCount: 1, leases: async () => [] });
  const connect = (connectedReplicas: number) => void Object.assign(store.server, { connectedReplicas });
  connect(1);
  await init(store, recentStoreId(), { nodeCount: 2 });
  const move = moving(store, memory(), { nodeCount: 2 });
  const command = "`callnumber recover --store STORE_URL --namespace main --nodes 1 --apply`";
  const message = `in the old store, too few other nodes are connected (0 of 1). Nothing was changed. Connect them, or first run ${command} only if`;
  const refused = { code: "quorum_missing", message: expect.stringContaining(message) };
  // Between the plan and the seal, too.
  const isolated = { ...move, nodeCount: 1, checkpointFile: { ...move.checkpointFile, note: () => connect(0) } };
  await expect(moveNamespace(isolated)).rejects.toMatchObject(refused);
  await expect(planMove(move)).rejects.toMatchObject(refused);
  await recovered({ ...recovering(store, FROM), nodeCount: 1 });
  // Then it is the new store that lacks them: `--nodes` of the move counts those.
  await expect(planMove(move)).rejects.toMatchObject({ message: expect.stringMatching(/^too few .*pass --nodes 1/) });
  await expect(planMove({ ...move, nodeCount: 1 })).resolves.toMatchObject({ stage: "new" });
});
