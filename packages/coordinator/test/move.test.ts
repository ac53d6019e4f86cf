/**
 * `move`: a namespace continues in another store, in the next version; and every rejection, before anything is changed.
 * Guarantees: G13 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import type { Lease } from "@callnumber/protocol/api";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { Redis } from "ioredis";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { startReplicatedRedis, untilCaughtUp } from "../../../test/redis/replicated-redis.js";
import { ownServerUnavailable, type RedisServer, sharedRedis } from "../../../test/redis/test-redis.js";
import { drawn, IS_WHOLE } from "../../../test/size-of-run.js";
import { CoordinatorError } from "../src/errors.js";
import { type CheckpointFile, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import type { NamespaceRecord } from "../src/guard/record.js";
import { FORKED_SEAL } from "../src/guard/record.js";
import { movedSeal, movedToIn, newStoreId, textOfMove } from "../src/guard/store-id.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { importLeases, recordReport } from "../src/ledger/ledger-changes.js";
import { type MoveOptions, moveNamespace, planMove } from "../src/operator/move.js";
import { planRecovery, recoverNamespace } from "../src/operator/recover.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { Store } from "../src/stores/store.js";
import { holder, NAMESPACE, PROOF_KEY, SHORT_BOUNDS, SMALL_BOUNDS } from "./commands-for-test.js";
import {
  coordinatorOf,
  embeddedPlace,
  leaseOf,
  type MakePlace,
  memoryPlace,
  type Place,
  postgresPlace,
  redisPlace,
  redisPlaceAt,
  runsOf,
} from "./places-for-move.js";
import { init, lease, recentStoreId, recover, seal, sealTo } from "./steps-for-move.js";
import { ledgerOf } from "./store-in-hand.js";
import { HAS_POSTGRES } from "./stores-for-test.js";
import { leasesInFiles, RETENTION_DAYS, trimmed } from "./trims.js";

interface MovingOptions extends Partial<Omit<MoveOptions, "target">> {
  readonly targetCheckpointFile?: CheckpointFile;
}

function moving(source: Store, { place }: Place, target: Store, options: MovingOptions = {}): MoveOptions {
  const { targetCheckpointFile = NO_CHECKPOINT_FILE, ...more } = options;
  return {
    store: source,
    namespace: NAMESPACE,
    checkpointFile: NO_CHECKPOINT_FILE,
    bounds: SHORT_BOUNDS,
    nodeCount: 1,
    pageLeaseCount: 3,
    target: { store: target, place, checkpointFile: targetCheckpointFile },
    ...more,
  };
}

/** A source with some leases, and an empty target. */
async function pair(makeSource: MakePlace = redisPlace, makeTarget: MakePlace = redisPlace) {
  const [from, to] = [await makeSource(), await makeTarget()];
  const [source, target] = [await from.open(), await to.open()];
  const storeId = recentStoreId();
  await init(source, storeId);
  const old = coordinatorOf(source);
  const leases: Lease[] = [];
  for (const runCount of [1, 4, 2, 1, 3, 1, 1]) leases.push(await leaseOf(old, { runCount }));
  return { from, to, source, target, storeId, old, leases };
}

const POSTGRES_PAIRS: readonly [name: string, from: MakePlace, to: MakePlace][] = [
  ["Redis to PostgreSQL", redisPlace, postgresPlace],
  ["PostgreSQL to Redis", postgresPlace, redisPlace],
  ["embedded to PostgreSQL", embeddedPlace, postgresPlace],
  ["PostgreSQL to embedded", postgresPlace, embeddedPlace],
];
const PAIRS: readonly [name: string, from: MakePlace, to: MakePlace][] = [
  ["embedded to Redis", embeddedPlace, redisPlace],
  ["Redis to embedded", redisPlace, embeddedPlace],
  ["Redis to Redis", redisPlace, redisPlace],
  ["memory to memory", memoryPlace, memoryPlace],
  ...(HAS_POSTGRES && IS_WHOLE ? POSTGRES_PAIRS : []),
];

describe.each(drawn(PAIRS, 3, inject("seed")))("a move from %s", (_, makeSource, makeTarget) => {
  test("a move ends leasing from the old store; the new one has the ledger, and leases the next version", async () => {
    const { to, source, target, storeId, old, leases } = await pair(makeSource, makeTarget);
    const [first, second] = leases as [Lease, Lease];
    const last = leases.at(-1) as Lease;
    await recordReport(source, NAMESPACE, 1, { nonce: first.nonce, lastSequence: 99, state: "closed" });
    const done = await moveNamespace(moving(source, to, target));
    expect(done).toMatchObject({ leaseCount: 7, record: { phase: 1, version: 1, firstVersion: 1, firstRun: 1 } });
    expect(done.storeId).not.toBe(storeId);
    await expect(leaseOf(old)).rejects.toMatchObject({
      code: "namespace_moved",
      message: expect.stringContaining(`${to.place} as store ${done.storeId}`),
    });
    expect(await ledgerOf(target)).toEqual(await ledgerOf(source));
    expect((await target.readNamespace(NAMESPACE)).proofKey).not.toBe(PROOF_KEY);

    const current = coordinatorOf(target);
    const fresh = await leaseOf(current, { runCount: 2, last });
    expect(fresh).toMatchObject({ storeId: done.storeId, version: 1 });
    const runs = runsOf([...leases, fresh]);
    expect(new Set(runs).size).toBe(runs.length);
    expect(await current.run(NAMESPACE, 1)).toMatchObject({
      lease: { holder, leasedAtMs: first.leasedAtMs, progress: { lastSequence: 99, state: "closed" } },
    });
    await current.report(NAMESPACE, 3, { nonce: second.nonce, lastSequence: 7, state: "open" });
    expect(await current.run(NAMESPACE, 3)).toMatchObject({ lease: { progress: { run: 3, lastSequence: 7 } } });

    // Run again after the new store has leased, it changes nothing.
    const before = await target.readNamespace(NAMESPACE);
    await target.setRetentionDays(NAMESPACE, RETENTION_DAYS);
    expect(await planMove(moving(source, to, target))).toMatchObject({ stage: "done", storeId: before.storeId });
    expect(await moveNamespace(moving(source, to, target))).toMatchObject({ leaseCount: undefined, record: before });
    expect(await target.readNamespace(NAMESPACE)).toEqual(before);
    expect((await target.readRetention(NAMESPACE)).days).toBe(RETENTION_DAYS);
    expect((await leaseOf(current)).firstRun).toBeGreaterThan(fresh.firstRun);
  });

  test("a move copies the retention of the ledger, and how far it was trimmed, which continues there", async () => {
    const { to, source, target } = await pair(makeSource, makeTarget);
    const directory = await folderForTest();
    const whole = await ledgerOf(source);
    await source.setRetentionDays(NAMESPACE, RETENTION_DAYS);
    await trimmed(source, directory);
    const retention = await source.readRetention(NAMESPACE);
    expect(retention).toEqual({
      days: RETENTION_DAYS,
      through: lastLedgerIdOf(whole.at(-2) as LedgerEntry),
      leasedAtMs: whole.at(-2)?.leasedAtMs,
    });
    await moveNamespace(moving(source, to, target));
    expect(await target.readRetention(NAMESPACE)).toEqual(retention);
    expect(await ledgerOf(target)).toEqual(whole.slice(-1));
    const current = coordinatorOf(target);
    await expect(current.run(NAMESPACE, 1)).rejects.toMatchObject({ code: "lease_trimmed" });
    expect(await trimmed(source, directory), "the old store is left as it is").toEqual([]);
    await leaseOf(current);
    await trimmed(target, directory);
    expect(await planMove(moving(source, to, target))).toMatchObject({ stage: "done" });
    expect(leasesInFiles(directory)).toEqual(expect.arrayContaining([...whole]));
    expect(leasesInFiles(directory)).toHaveLength(whole.length);
    expect(await ledgerOf(target)).toHaveLength(1);
  });
});

test("a plan of a move changes neither store", async () => {
  const { to, source, target, leases } = await pair();
  const redis = new Redis(sharedRedis().url);
  onTestFinished(() => redis.disconnect());
  const before = await source.readNamespace(NAMESPACE);
  const plan = await planMove(moving(source, to, target));
  const ledger = { leaseCount: leases.length, copiedCount: 0 };
  expect(plan).toMatchObject({ stage: "new", ledger, target: undefined });
  expect(await source.readNamespace(NAMESPACE)).toEqual(before);
  const prefix = new URL(to.url).searchParams.get("prefix");
  expect(await redis.keys(`${prefix}*`)).toEqual([]);
});

test("a plan shows a move that was cut short after the seal, and how far it got", async () => {
  const { to, source, target, storeId } = await pair();
  await seal(source, storeId, sealTo(storeId, to.place));
  await importLeases(target, NAMESPACE, (await ledgerOf(source)).slice(0, 4));
  const ledger = { leaseCount: 7, copiedCount: 4 };
  expect(await planMove(moving(source, to, target))).toMatchObject({ stage: "begun", ledger });
});

test("a move is rejected where the target's leases of another ledger were trimmed", async () => {
  const { to, source, target } = await pair();
  const trim = { record: undefined, trimmedThrough: 0, through: 3, leasedAtMs: 1, leases: [] };
  expect(await target.trimLedger(NAMESPACE, trim)).toBe(true);
  await expect(moveNamespace(moving(source, to, target))).rejects.toMatchObject({
    code: "store_id_mismatch",
    message: expect.stringContaining("Move to an empty place"),
  });
  expect(await source.readNamespace(NAMESPACE)).toMatchObject({ phase: 0 });
});

describe("a move is rejected, with both stores as they were,", () => {
  async function refusal(
    { source, to, target }: { source: Store; to: Place; target: Store },
    options: MovingOptions = {},
  ) {
    const found = async (store: Store) => [
      await store.readNamespace(NAMESPACE).catch(({ code }: { code: string }) => code),
      await ledgerOf(store),
    ];
    const before = [await found(source), await found(target)];
    const error = await moveNamespace(moving(source, to, target, options)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect([await found(source), await found(target)]).toEqual(before);
    return error as Error & { code?: string };
  }

  type Stores = Awaited<ReturnType<typeof pair>>;
  const otherStore = { storeId: recentStoreId(), ledgerId: 5, generation: 0, nodeCount: 1 };
  /** The source's first leases, and one of another store. */
  const imported =
    (firstRun: number, count: number) =>
    async ({ source, target }: Stores) => {
      const ledger = await ledgerOf(source);
      const foreign = { ...(ledger[6] as LedgerEntry), nonce: "nonce-of-another-lease" };
      await importLeases(target, NAMESPACE, [...ledger.slice(0, count), { ...foreign, firstRun }]);
    };
  const sealedBy =
    (text: (storeId: string) => string) =>
    async ({ source, storeId }: Stores) =>
      void (await seal(source, storeId, text(storeId)));

  test.each<[string, (stores: Stores) => Promise<unknown>, object, MovingOptions?]>([
    [
      "the target has the namespace of another store",
      ({ target }) => init(target, recentStoreId()),
      { code: "namespace_exists" },
    ],
    [
      "a checkpoint of the target's place is of another store",
      async () => {},
      {
        code: "namespace_exists",
        message: expect.stringContaining(`the checkpoint directory remembers store ${otherStore.storeId} there`),
      },
      { targetCheckpointFile: { ...NO_CHECKPOINT_FILE, read: () => otherStore, readable: () => otherStore } },
    ],
    ["the target has another lease", imported(13, 6), { code: "store_id_mismatch" }],
    ["the target has more leases", imported(99, 7), { code: "store_id_mismatch" }],
    ["the source is one of two copies", sealedBy(() => FORKED_SEAL), { code: "store_forked" }],
    [
      "the source moved to another place",
      sealedBy((storeId) => sealTo(storeId, "redis://10.0.0.9:6379/0")),
      { code: "namespace_moved" },
    ],
    ["the source moved, and its seal has no place", sealedBy(() => "moved"), { code: "namespace_moved" }],
  ])("a move is rejected, with both stores as they were, when %s", async (_, prepare, error, options) => {
    const stores = await pair();
    await prepare(stores);
    expect(await refusal(stores, options)).toMatchObject(error);
  });

  test("a move is rejected when it goes back to the place of the old store", async () => {
    const { from, to, source, target, storeId } = await pair();
    await moveNamespace(moving(source, to, target));
    expect(await refusal({ source: target, to: from, target: source })).toMatchObject({
      code: "namespace_exists",
      message: expect.stringMatching(
        new RegExp(
          `it holds store ${storeId}, which was moved away. Move to an empty place: another file, "\\?prefix=" or "\\?schema="`,
        ),
      ),
    });
  });

  test.each<[string, Partial<NamespaceRecord>]>([
    ["in the last version", { version: 7 }],
    ["when the last version may have been reached before a restore", { version: 6, changedAtMs: 1e15 - 1 }],
  ])("a move is rejected %s, with what to do instead", async (_, changes) => {
    const { source, to, target } = await pair();
    const record = { ...(await source.readNamespace(NAMESPACE)), ...changes };
    const reading = new Proxy(source, {
      get: (store, name) => {
        if (name === "readNamespace") return async () => record;
        const value: unknown = Reflect.get(store, name);
        return typeof value === "function" ? (value.bind(store) as unknown) : value;
      },
    });
    await expect(planMove(moving(reading, to, target))).rejects.toMatchObject({
      code: "run_space_exhausted",
      message: expect.stringContaining("replicate and promote"),
    });
  });

  test("a move is rejected when the target's place does not fit a seal", async () => {
    const stores = await pair();
    for (const place of ["x".repeat(481), "sqlite:/with space.db"]) {
      expect(await refusal({ ...stores, to: { ...stores.to, place } })).toBeInstanceOf(TypeError);
    }
  });

  test("a move is rejected before the seal when the clocks of the target and of this machine disagree", async () => {
    const { source, to, target } = await pair();
    const { read } = target;
    target.read = async (namespace) => {
      const { keys, server } = await read.call(target, namespace);
      return { keys, server: { ...server, timeMs: server.timeMs + 10_000 } };
    };
    expect(await refusal({ source, to, target })).toMatchObject({ code: "clock_skew" });
  });

  test("a move is rejected before the seal when the target is a replica, or has more replicas than --nodes counts", async ({
    skip,
  }) => {
    const reason = ownServerUnavailable();
    if (reason !== undefined) skip(reason);
    const { source, old } = await pair();
    const { master, replicas } = await startReplicatedRedis({ nodeCount: 2 });
    const [replica] = replicas as [RedisServer];
    const [onMaster, onReplica] = [redisPlaceAt(master.url), redisPlaceAt(replica.url)];
    const target = await onMaster.open();
    expect(await refusal({ source, to: onMaster, target })).toMatchObject({ code: "unexpected_replicas" });
    const readOnly = await onReplica.open();
    expect(await refusal({ source, to: onReplica, target: readOnly })).toMatchObject({
      message: expect.stringContaining("replica"),
    });
    await leaseOf(old);
    expect(await moveNamespace(moving(source, onMaster, target, { nodeCount: 2 }))).toMatchObject({
      record: { nodeCount: 2 },
    });
  });
});

test("a move copies nothing while other nodes of the source have no seal, at every try", async ({ skip }) => {
  const reason = ownServerUnavailable();
  if (reason !== undefined) skip(reason);
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 2 });
  const [replica] = replicas as [RedisServer];
  const [source, to] = [await redisPlaceAt(master.url).open(), await redisPlace()];
  const target = await to.open();
  const storeId = recentStoreId();
  await init(source, storeId, { nodeCount: 2 });
  await lease(source, storeId);
  await replica.kill("SIGSTOP");
  onTestFinished(() => replica.kill("SIGCONT"));
  for (const tries of [1, 2]) {
    await expect(moveNamespace(moving(source, to, target)), `try ${tries}`).rejects.toMatchObject({
      code: "quorum_missing",
    });
    await expect(target.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
    expect(await ledgerOf(target)).toEqual([]);
  }
  await replica.kill("SIGCONT");
  await untilCaughtUp(replica, master);
  expect(await moveNamespace(moving(source, to, target))).toMatchObject({ leaseCount: 1 });
});

test("two moves at once to two places move it to one, and reject the other with that place", async () => {
  const { source, from, to, target } = await pair();
  const [again, otherPlace] = [await from.open(), await redisPlace()];
  const other = await otherPlace.open();
  const outcomes = await Promise.allSettled([
    moveNamespace(moving(source, to, target)),
    moveNamespace(moving(again, otherPlace, other)),
  ]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const [winner, loser] = outcomes[0]?.status === "fulfilled" ? [to, other] : [otherPlace, target];
  const rejected = outcomes.find((outcome) => outcome.status === "rejected");
  expect(rejected?.reason).toMatchObject({ code: "namespace_moved", message: expect.stringContaining(winner.place) });
  await expect(loser.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
});

describe("after a move", () => {
  const bounds = SMALL_BOUNDS;
  const quickPlace: MakePlace = async () => {
    const store = emptyStore();
    return { url: "memory:", place: `memory:${randomUUID()}`, open: async () => store };
  };
  const emptyStore = () => Object.assign(new MemoryStore(), { bounds });
  const leaseQuickly = (store: Store) => leaseOf(coordinatorOf(store, { bounds }));

  test("an old store that forgot a move leases no number of the new one, and can't be moved to its place", async () => {
    const { source, to, target, storeId, leases } = await pair(quickPlace, quickPlace);
    await moveNamespace(moving(source, to, target, { bounds }));
    const restored = emptyStore();
    await recover(restored, storeId, { floor: 13 });
    const both: Lease[] = [...leases];
    for (let count = 0; count < 3; count++) {
      const [oldLease, newLease] = [await leaseQuickly(restored), await leaseQuickly(target)];
      expect([oldLease.version, newLease.version]).toEqual([0, 1]);
      both.push(oldLease, newLease);
    }
    const runs = runsOf(both);
    expect(new Set(runs).size).toBe(runs.length);
    await expect(moveNamespace(moving(restored, to, target, { bounds }))).rejects.toMatchObject({
      code: "namespace_moved",
    });
  });

  test("a new store that is missing at its place is not made a second time: it may run under another address", async () => {
    const { source, to, target } = await pair(quickPlace, quickPlace);
    await moveNamespace(moving(source, to, target, { bounds }));
    expect(await moveNamespace(moving(source, to, target, { bounds }))).toMatchObject({ leaseCount: undefined });
    const emptied = emptyStore();
    await expect(moveNamespace(moving(source, to, emptied, { bounds }))).rejects.toMatchObject({
      code: "namespace_lost",
      message: expect.stringContaining("If that store runs under another address, start it there"),
    });
    expect(await emptied.listNamespaces()).toEqual([]);
  });

  test("a move that was cut short before the new record is finished once its loss is confirmed, with the ledger", async () => {
    const { source, to } = await pair(quickPlace, quickPlace);
    const target = emptyStore();
    const cut = new CoordinatorError("store_unavailable", "cut");
    Object.assign(target, { apply: () => Promise.reject(cut) });
    await expect(moveNamespace(moving(source, to, target, { bounds }))).rejects.toThrow("cut");
    Reflect.deleteProperty(target, "apply");
    await expect(moveNamespace(moving(source, to, target, { bounds }))).rejects.toMatchObject({
      code: "namespace_lost",
    });
    const { storeId: lostStoreId } = movedToIn(textOfMove((await source.readNamespace(NAMESPACE)).seal)) ?? {};
    const { storeId } = await moveNamespace({ ...moving(source, to, target, { bounds }), lostStoreId });
    expect(storeId).toBe(lostStoreId);
    expect(await target.leases(NAMESPACE, { direction: "oldest_first", limit: 100 })).toHaveLength(7);
    expect(await moveNamespace(moving(source, to, target, { bounds }))).toMatchObject({ storeId });
    await leaseQuickly(target);
  });

  test("of the same move twice at once, at most one makes a new store, also where they find different ones", async () => {
    const { source, to } = await pair(quickPlace, quickPlace);
    const targets = [emptyStore(), emptyStore()];
    const moved = await Promise.allSettled(
      targets.map((target) => moveNamespace(moving(source, to, target, { bounds }))),
    );
    expect(moved.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const names = await Promise.all(targets.map((target) => target.listNamespaces()));
    expect(names.flat()).toEqual([NAMESPACE]);
  });

  test("a new store that lost its record is recovered by its store id, in its own version", async () => {
    const { source, to, target, leases } = await pair(quickPlace, quickPlace);
    const { storeId } = await moveNamespace(moving(source, to, target, { bounds }));
    const before = await leaseQuickly(target);
    const emptied = emptyStore();
    const options = {
      store: emptied,
      namespace: NAMESPACE,
      checkpointFile: NO_CHECKPOINT_FILE,
      bounds,
      storeId,
      // Above the run ceiling of the new store, in the version before.
      floors: [{ from: "the archive", ledgerId: 2 ** 29 }],
      nodeCount: 1,
      isClockChecked: false,
      watchMs: 0,
      pause: async () => {},
    };
    const plan = await planRecovery(options);
    expect(plan.possibleAtMs).toBeNull();
    const { version, highWaterMark } = (await recoverNamespace(options, plan)).after;
    expect(version).toBe(1);
    expect(highWaterMark).toBeGreaterThanOrEqual(plan.target);
    const runs = runsOf([...leases, before, await leaseQuickly(emptied)]);
    expect(new Set(runs).size).toBe(runs.length);
  });

  test("a moved store shows the leases of the old one, and does not deny a number that was not copied", async () => {
    const { source, to, target } = await pair(quickPlace, quickPlace);
    await moveNamespace(moving(source, to, target, { bounds }));
    const current = coordinatorOf(target, { bounds });
    const { version, firstRun } = await leaseOf(current);
    const inspected = (parts: { version: number; run: number }) =>
      current.inspect(NAMESPACE, encodeCallNumber({ ...parts, sequence: 0 }));
    expect(await inspected({ version: 0, run: 1 })).toMatchObject({ verdict: "unreported", lease: { firstRun: 1 } });
    expect(await inspected({ version, run: firstRun })).toMatchObject({ verdict: "unreported" });
    expect(await inspected({ version: 0, run: 900 })).toMatchObject({
      reason: "below_first_run",
      explanation: expect.stringContaining("perhaps the store that was moved leased it"),
    });
    expect(await inspected({ version, run: 5 })).toMatchObject({ verdict: "unknown" });
    expect(await inspected({ version, run: firstRun + 1 })).toMatchObject({ reason: "above_mark" });
    expect(await inspected({ version: 2, run: 1 })).toMatchObject({ verdict: "other_version" });
    const status = await current.status(NAMESPACE);
    expect(status).toMatchObject({ version: 1, firstRun: 1, highWaterMark: firstRun, runsUsed: firstRun });
    expect(runsOf([{ version, firstRun, runCount: 1 }])[0]).toBeGreaterThan(2 ** 30);
  });
});

test("a source whose version was advanced meanwhile is not sealed for a store in that version", async () => {
  const { source, storeId } = await pair(memoryPlace);
  const later = newStoreId({ firstRun: 1, initializedAtMs: Date.now(), rate: 1 });
  await expect(seal(source, storeId, movedSeal({ storeId: later, place: "there" }))).rejects.toMatchObject({
    reason: "conflict",
  });
  expect(await source.readNamespace(NAMESPACE)).toMatchObject({ phase: 0 });
});
