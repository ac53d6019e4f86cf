/**
 * How a guard recovers a store: claim, quorum, confirm; once for all waiting requests, and once for all coordinators.
 * Guarantees: G3, G10 (docs/guarantees.md).
 */

import { describe, expect, test } from "vitest";
import { type CheckpointFile, CORRUPT, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import type { NamespaceGuard } from "../src/guard/namespace-guard.js";
import { checksumOf } from "../src/guard/record.js";
import { MOVED_SEAL, nextStoreId } from "../src/guard/store-id.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterSkip, leaseOf, lineOf, newWorld, type World } from "./guard-in-hand.js";
import { stepOn } from "./steps-for-test.js";

const JUMP_MS = 2 * SHORT_BOUNDS.epsMs;

/** A guard that has leased runs 1 to 10, at a time of which the store has kept a backup at run 5. */
async function guardAtRun10(nodeCount = 1) {
  const world = await newWorld({ nodeCount });
  const logged: [event: string, fields: object][] = [];
  const note = (fields: object, event: string) => void logged.push([event, fields]);
  const guard = await guardOn(world, { log: { debug: note, info: note, warn: note, error: note } });
  await leaseOf(guard, { runCount: 5 });
  const backup = world.store.backup();
  await leaseOf(guard, { runCount: 5 });
  world.store.stepNames();
  return { world, guard, backup, logged, read: () => world.store.readNamespace(NAMESPACE) };
}
type AtRun10 = Awaited<ReturnType<typeof guardAtRun10>>;

test("the state of an open namespace keeps its beginning, however often it leases", async () => {
  const { world, guard } = await guardAtRun10();
  const { sinceMs } = guard.state;
  world.clock.timeMs += 1_000;
  await leaseOf(guard);
  expect(guard.state).toMatchObject({ state: "active", code: null, sinceMs });
});

test("a record that is known already is not read from the store again", async () => {
  const { world, guard } = await guardAtRun10();
  let readCount = 0;
  const read = world.store.readNamespace.bind(world.store);
  world.store.readNamespace = async (namespace) => {
    readCount++;
    return await read(namespace);
  };
  for (const lastRun of [10, 9]) await leaseOf(guard, { lastRun });
  await leaseOf(guard);
  expect(readCount).toBe(0);
});

test("a programming error is thrown as it is, and is not a state of the store", async () => {
  const { world, guard } = await guardAtRun10();
  const mistake = new TypeError("a mistake");
  const before = guard.state;
  world.store.before = () => {
    throw mistake;
  };
  await expect(leaseOf(guard)).rejects.toBe(mistake);
  expect(guard.state).toEqual(before);
  world.store.server.epoch = "second:life:0";
  world.store.before = ({ step }) => {
    if (step === "claim") throw mistake;
  };
  await expect(leaseOf(guard)).rejects.toBe(mistake);
  expect(guard.state).toMatchObject({ state: "recovering", reason: "epoch_changed" });
});

describe("a possible rollback", () => {
  const causes: readonly [string, string, (at: AtRun10) => unknown][] = [
    ["another epoch", "epoch_changed", ({ world }) => void (world.store.server.epoch = "second:life:0")],
    ["a long silence", "heartbeat_expired", ({ world }) => void (world.clock.timeMs += SHORT_BOUNDS.gapMs + 1)],
    ["a mark below a run that was leased", "rolled_back", ({ world, backup }) => world.store.restore(backup)],
    [
      "a generation below one that was seen",
      "generation_stale",
      async ({ world, guard, backup }) => {
        world.store.server.epoch = "second:life:0";
        await leaseAfterSkip(world, guard);
        world.store.server.epoch = "first:life:0";
        world.store.restore(backup);
        world.store.stepNames();
      },
    ],
  ];

  test.each(causes)(
    "a possible rollback by %s is recovered from before a lease, above every run that was leased",
    async (_, code, arise) => {
      const at = await guardAtRun10();
      const { world, guard, logged, read } = at;
      await arise(at);
      logged.length = 0;
      const before = await read();
      const line = lineOf(world, JUMP_MS);
      await expect(leaseOf(guard)).rejects.toMatchObject({ code: "run_ceiling_reached" });
      expect(world.store.stepNames()).toEqual(["lease", "claim", "confirm", "lease"]);
      expect(line).toBeGreaterThan(10);
      expect(logged.map(([event]) => event)).toEqual(["recovering", "recovered", "active"]);
      expect(logged[1]?.[1]).toMatchObject({ reason: code, before: before.highWaterMark, mark: line });
      expect(await read()).toMatchObject({ highWaterMark: line, phase: 0 });
      expect((await read()).generation).toBeGreaterThan(before.generation);
      expect((await leaseAfterSkip(world, guard)).firstRun).toBe(line + 1);
    },
  );

  test.each([
    ["a silence of two hours", 2 * 3_600_000, "Idle for 2 h"],
    ["a restart", 0, "The store was restarted, promoted or restored, and may have lost its latest runs"],
  ])(
    "a recovery after %s has its cause and the skipped runs in one line of the log and the status",
    async (_, idleMs, cause) => {
      const { world, guard, logged, read } = await guardAtRun10();
      expect(guard.answer(await read()).lastRecovery).toBeNull();
      if (idleMs === 0) world.store.server.epoch = "second:life:0";
      else world.clock.timeMs += idleMs;
      const skippedRunCount = lineOf(world, JUMP_MS) - 10;
      await guard.heartbeat();
      const explanation = `${cause}: skipped ${skippedRunCount.toLocaleString("en-US")} runs`;
      expect(guard.answer(await read()).lastRecovery).toMatchObject({ skippedRunCount, explanation });
      const [, fields] = logged.find(([event]) => event === "recovered") ?? [];
      const waitS = Math.ceil((JUMP_MS + 63) / 1000);
      expect(fields).toMatchObject({ explanation: `${explanation}, leasing in ${waitS} s` });
    },
  );

  test("a shortage lasts as long as leases are rejected at the run ceiling after recoveries", async () => {
    const { world, guard } = await guardAtRun10();
    expect(guard.ceiling.shortageMs).toBe(0);
    world.store.server.epoch = "second:life:0";
    const refusedAt = async (afterMs: number) => {
      world.clock.timeMs += afterMs;
      world.store.server.epoch = `life-${world.clock.timeMs}:of:0`;
      await expect(leaseOf(guard)).rejects.toMatchObject({ code: "run_ceiling_reached" });
      return guard.ceiling.shortageMs;
    };
    expect(await refusedAt(0)).toBe(0);
    expect(await refusedAt(50_000)).toBe(50_000);
    expect(await refusedAt(60_000)).toBe(110_000);
    world.clock.timeMs += 60_001;
    expect(guard.ceiling.shortageMs).toBe(0);
    expect(await refusedAt(0)).toBe(0);
  });

  test("the guard recovers once, with any number of waiting requests", async () => {
    const { world, guard } = await guardAtRun10();
    world.store.server.epoch = "second:life:0";
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => leaseOf(guard)));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "run_ceiling_reached" } });
    const names = world.store.stepNames();
    expect(names.filter((name) => name === "claim" || name === "confirm")).toEqual(["claim", "confirm"]);
  });

  test("the guard rejects requests and leases nothing when each claim is followed by another rollback", async () => {
    const { world, guard, read } = await guardAtRun10();
    let life = 0;
    world.store.before = () => void (world.store.server.epoch = `life-${life++}:of:0`);
    await expect(leaseOf(guard)).rejects.toMatchObject({ reason: "epoch_changed" });
    expect((await read()).highWaterMark).toBe(10);
    world.store.before = () => {};
    expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(10);
  });
});

test("a recovery without a quorum for its claim confirms nothing: another node may still lease below the mark", async () => {
  const { world, guard, read } = await guardAtRun10(3);
  world.store.server.epoch = "second:life:0";
  world.store.acknowledgedCount = 0;
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "quorum_missing" });
  expect(world.store.stepNames()).toEqual(["lease", "claim"]);
  expect(await read()).toMatchObject({ highWaterMark: 10, phase: 1 });
  world.store.acknowledgedCount = 1;
  // Above all that any coordinator could have leased until now.
  const line = lineOf(world);
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(line);
});

test("a recovery confirms nothing when the server no longer has its claim", async () => {
  const { world, guard, read } = await guardAtRun10();
  world.store.server.epoch = "second:life:0";
  world.store.alter = (applied) => ({ ...applied, check: { role: "master", epoch: "second:life:0", generation: 99 } });
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "lease_discarded" });
  expect(world.store.stepNames()).toEqual(["lease", "claim"]);
  expect((await read()).highWaterMark).toBe(10);
});

test("a server without quorum that lacks a holder's run is not sealed as forked, and leases again with the quorum", async () => {
  const world = await newWorld({ nodeCount: 3 });
  const before = await guardOn(world);
  await leaseOf(before, { runCount: 5 });
  const backup = world.store.backup();
  const { proof } = await leaseOf(before, { runCount: 5 });
  world.store.restore(backup);
  const guard = await guardOn(world);
  world.store.stepNames();
  world.store.acknowledgedCount = 0;
  await expect(leaseOf(guard, { lastRun: 10, proof })).rejects.toMatchObject({ code: "quorum_missing" });
  expect(world.store.stepNames()).toEqual(["lease", "heartbeat"]);
  world.store.acknowledgedCount = 2;
  expect(await leaseOf(guard)).toMatchObject({ firstRun: 6 });
});

describe("two coordinators", () => {
  async function recoveringPair(): Promise<{ world: World; pair: [NamespaceGuard, NamespaceGuard] }> {
    const world = await newWorld();
    const pair: [NamespaceGuard, NamespaceGuard] = [await guardOn(world), await guardOn(world)];
    for (const guard of pair) await leaseOf(guard, { runCount: 5 });
    world.store.stepNames();
    return { world, pair };
  }

  test("two coordinators on one store never lease the same run, whichever claims first", async () => {
    const { world, pair } = await recoveringPair();
    world.store.server.epoch = "second:life:0";
    const outcomes = await Promise.allSettled(pair.map((guard) => leaseAfterSkip(world, guard, { runCount: 2 })));
    const leases = outcomes.map((outcome) => {
      if (outcome.status === "rejected") throw outcome.reason;
      return outcome.value;
    });
    const [one, other] = leases.sort((a, b) => a.firstRun - b.firstRun) as [(typeof leases)[0], (typeof leases)[0]];
    expect(one.firstRun).toBeGreaterThan(10);
    expect(other.firstRun).toBeGreaterThan(lastRunOf(one));
  });

  test("two coordinators that race for a claim recover once: the loser waits and continues after the winner", async () => {
    const { world, pair } = await recoveringPair();
    world.store.server.epoch = "second:life:0";
    await Promise.all(pair.map((guard) => guard.heartbeat()));
    const { generation, phase } = await world.store.readNamespace(NAMESPACE);
    const names = world.store.stepNames();
    expect(names.filter((name) => name === "claim").length).toBeGreaterThan(1);
    expect({ confirmed: names.filter((name) => name === "confirm").length, generation, phase }).toEqual({
      confirmed: 1,
      generation: 1,
      phase: 0,
    });
  });

  test("a claim of another coordinator is left alone for a while: it may be about to confirm", async () => {
    const { world, pair } = await recoveringPair();
    const [guard] = pair;
    const { claim, confirm } = commandsFor(world.storeId);
    await stepOn(world.store, NAMESPACE, claim(0));
    world.clock.meanwhile = () => stepOn(world.store, NAMESPACE, confirm(1));
    world.store.stepNames();
    const sinceMs = world.clock.timeMs;
    await guard.heartbeat();
    expect(world.store.stepNames()).toEqual(["heartbeat", "heartbeat"]);
    expect(world.clock.timeMs - sinceMs).toBe(125);
    expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(1);
  });

  test("a claim that is never confirmed is replaced by another", async () => {
    const { world, pair } = await recoveringPair();
    const [guard] = pair;
    await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).claim(0));
    world.store.stepNames();
    await guard.heartbeat();
    expect(world.store.stepNames()).toEqual(["heartbeat", "heartbeat", "claim", "confirm", "heartbeat"]);
    expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(2);
  });

  test("a claim that was replaced is not confirmed", async () => {
    const { world, pair } = await recoveringPair();
    const [guard] = pair;
    world.store.server.epoch = "second:life:0";
    let hasInterfered = false;
    world.store.before = async ({ step }) => {
      if (step !== "confirm" || hasInterfered) return;
      hasInterfered = true;
      await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).claim(1));
    };
    await guard.heartbeat();
    expect(hasInterfered).toBe(true);
    expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(3);
  });

  /** Before this guard's first claim, another coordinator claims, and confirms too if it lives on. */
  function claimFirst({ store, storeId }: World, { andConfirm }: { andConfirm: boolean }): void {
    const { claim, confirm } = commandsFor(storeId);
    store.before = async ({ step }) => {
      if (step !== "claim") return;
      store.before = () => {};
      await stepOn(store, NAMESPACE, claim(0));
      if (andConfirm) await stepOn(store, NAMESPACE, confirm(1));
    };
  }

  test("a faster claim that is never confirmed is waited for once", async () => {
    const { world, pair } = await recoveringPair();
    const [guard] = pair;
    world.store.server.epoch = "second:life:0";
    claimFirst(world, { andConfirm: false });
    const sinceMs = world.clock.timeMs;
    await guard.heartbeat();
    expect(world.clock.timeMs - sinceMs).toBe(125);
    expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(2);
  });

  test("a faster recovery does not cover what a corrupt checkpoint has forgotten", async () => {
    const { world } = await recoveringPair();
    const guard = await guardOn(world, { checkpointFile: { ...NO_CHECKPOINT_FILE, read: () => CORRUPT } });
    claimFirst(world, { andConfirm: true });
    await expect(guard.heartbeat()).rejects.toMatchObject({ reason: "conflict" });
    await guard.heartbeat();
    expect(world.store.stepNames().filter((name) => name === "confirm")).toHaveLength(1);
    expect((await world.store.readNamespace(NAMESPACE)).generation).toBe(2);
  });
});

test.each<[string, string, (world: World) => unknown]>([
  ["a replica", "store_is_replica", ({ store }) => Object.assign(store.server, { role: "slave" })],
  ["an unreadable epoch", "store_epoch_unreadable", ({ store }) => Object.assign(store.server, { epoch: undefined })],
  ["a clock that went back", "clock_moved_backward", ({ clock }) => void (clock.timeMs -= SHORT_BOUNDS.epsMs + 1)],
  [
    "a server that followed another",
    "manual_recovery_required",
    ({ store }) => Object.assign(store.server, { epoch: "first:other:0" }),
  ],
  ["a mark far above the run ceiling", "manual_recovery_required", (world) => raiseMark(world, lineOf(world) + 62_640)],
  [
    "a silence of more than 30 days",
    "manual_recovery_required",
    ({ clock }) => void (clock.timeMs += 31 * 24 * 3_600_000),
  ],
])(
  "an error without recovery (%s: %s) is passed on, kept as the state, and ends with its cause",
  async (_, code, arise) => {
    const { world, guard } = await guardAtRun10();
    const backup = world.store.backup();
    const server = { ...world.store.server };
    const { timeMs } = world.clock;
    await arise(world);
    world.store.stepNames();
    await expect(leaseOf(guard)).rejects.toMatchObject({ code });
    // Perhaps it is asked whether the record is to keep an uncounted node.
    expect(world.store.stepNames().filter((step) => step !== "suspect")).toEqual(["lease"]);
    expect(guard.state).toMatchObject({ code, sinceMs: world.clock.timeMs });
    expect(guard.state.state).not.toBe("active");
    Object.assign(world.store.server, server);
    world.clock.timeMs = timeMs;
    world.store.restore(backup);
    expect((await leaseOf(guard)).firstRun).toBe(11);
    expect(guard.state).toMatchObject({ state: "active", code: null });
  },
);

test("a node that was attached to the only one ends leasing until an operator recovers, also in a guard that never saw it", async () => {
  const { world, guard } = await guardAtRun10();
  Object.assign(world.store.server, { connectedReplicas: 1 });
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
  Object.assign(world.store.server, { connectedReplicas: 0 });
  const code = "manual_recovery_required";
  await expect(leaseOf(guard)).rejects.toMatchObject({ code });
  world.clock.timeMs += SHORT_BOUNDS.gapMs + 1;
  const later = await guardOn(world, { checkpointFile: NO_CHECKPOINT_FILE });
  await expect(later.heartbeat()).rejects.toMatchObject({ code });
  await expect(leaseOf(later)).rejects.toMatchObject({ code });
  await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).recover());
  await guard.heartbeat();
  expect((await leaseAfterSkip(world, guard)).firstRun).toBeGreaterThan(11);
});

test.each<[string, (storeId: string) => Partial<CheckpointFile>]>([
  ["a later store", (storeId) => ({ laterStoresOf: () => [{ storeId, ledgerId: 0 }] })],
  ["its move", (storeId) => ({ movesOf: () => [`${storeId}@redis://elsewhere`] })],
])(
  "a guard leases nothing more once a checkpoint has %s: at its next recovery, and within a minute of heartbeats",
  async (_, foundOf) => {
    for (const isRestarted of [true, false]) {
      const { world } = await guardAtRun10();
      const file = { ...NO_CHECKPOINT_FILE };
      const guard = await guardOn(world, { checkpointFile: file });
      await guard.heartbeat();
      Object.assign(file, foundOf(nextStoreId(world.storeId, 0, world.clock.timeMs, 1_000)));
      if (isRestarted) world.store.server.epoch = "second:life:0";
      let beats = 0;
      const code = "namespace_moved";
      while (
        beats < 12 &&
        (await guard.heartbeat().then(
          () => true,
          () => false,
        ))
      )
        beats++;
      expect(beats).toBe(isRestarted ? 0 : 10);
      await expect(guard.heartbeat()).rejects.toMatchObject({ code });
      await expect(leaseOf(guard)).rejects.toMatchObject({ code });
      expect(guard.state).toMatchObject({ state: "stopped", code });
    }
  },
);

test("a guard that met the seal of a move leases nothing more, also when the store forgets the seal", async () => {
  const { world, guard } = await guardAtRun10();
  const backup = world.store.backup();
  await stepOn(world.store, NAMESPACE, commandsFor(world.storeId).seal(MOVED_SEAL));
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "namespace_moved" });
  world.store.restore(backup);
  world.store.stepNames();
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "namespace_moved" });
  await expect(leaseOf(guard, { lastRun: 11 })).rejects.toMatchObject({ code: "namespace_moved" });
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "namespace_moved" });
  expect(world.store.stepNames()).toEqual([]);
  expect(guard.state).toMatchObject({ state: "stopped", code: "namespace_moved" });
});

test("a mark far above the run ceiling is logged once, and rejects heartbeats until the ceiling has passed it", async () => {
  const { world, guard, logged } = await guardAtRun10();
  raiseMark(world, lineOf(world) + 100_000);
  logged.length = 0;
  for (let heartbeat = 0; heartbeat < 3; heartbeat++) {
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "manual_recovery_required" });
    await expect(leaseOf(guard)).rejects.toMatchObject({ code: "manual_recovery_required" });
    world.clock.timeMs += 1_000;
  }
  expect(logged.map(([event]) => event)).toEqual(["stopped"]);
  for (let waitedMs = 0; waitedMs < 7_000_000; waitedMs += SHORT_BOUNDS.gapMs) {
    world.clock.timeMs += SHORT_BOUNDS.gapMs;
    await guard.heartbeat().catch(() => {});
  }
  expect((await leaseOf(guard)).firstRun).toBeGreaterThan(100_000);
  expect(guard.state).toMatchObject({ state: "active", code: null });
});

test("the guard stays stopped by an error without recovery when causes of a recovery follow", async () => {
  const { world, guard, logged } = await guardAtRun10();
  raiseMark(world, lineOf(world) + 62_640);
  logged.length = 0;
  for (let life = 0; life < 3; life++) {
    world.store.server.epoch = `life-${life}:of:0`;
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "manual_recovery_required" });
  }
  const causeOf = ({ reason, code }: { reason?: string; code?: string }) => reason ?? code;
  expect(logged.map(([event, fields]) => [event, causeOf(fields)])).toEqual([
    ["recovering", "epoch_changed"],
    ["stopped", "manual_recovery_required"],
  ]);
});

/** As another program could: the record is sound, and no step of ours wrote it. */
function raiseMark({ store }: World, mark: number): void {
  const [fields] = store.backup().values();
  if (fields === undefined) throw new Error("the store has no record");
  const raised = { ...fields, c: String(mark) };
  store.restore(new Map([[NAMESPACE, { ...raised, k: checksumOf(raised) }]]));
}
