/**
 * A design with one of its defences taken away, or an old one put back: what the suite must catch. Each acts where coordinators decide, or
 * where a server compares; everything else is the product's own code.
 */
import {
  BURST_RUNS,
  type ConfirmStep,
  checksumOf,
  DEFAULT_BOUNDS,
  decide,
  isRefusal,
  PHASES,
  type Refusal,
  RUN_MAX,
  readRecord,
  recordToWrite,
  type StepContext,
  type Store,
  storedFields,
} from "./product.js";
import type { Variant } from "./variant.js";
import { WRITE_VARIANTS, withFound } from "./write-variants.js";

/** The guard as it is. */
export const THE_GUARD: Variant = { name: "none", fault: "nothing: the guard as it is" };

export const VARIANTS: readonly Variant[] = [
  /**
   * The first design: a recovery raises the counter by what can have been leased since the record was written, its age times the rate, and the
   * burst. A skip itself moves the counter, and is forgotten with everything else: a second rollback lands inside the first skip.
   */
  {
    name: "age-times-rate",
    fault: "a recovery raises the counter by the record's age times the rate, instead of onto the line",
    focus: {
      groups: ["crashes", "hosts"],
      setting: { serverCount: 1, isOnLine: false, firstRun: 1, ageMs: 20 * 24 * 3_600_000, rate: 16 },
    },
    decide(situation, command) {
      const decision = decide(situation, command);
      if (command.step !== "confirm" || isRefusal(decision)) return decision;
      const { record } = decision;
      const before = Number(situation.keys.fields["c"]);
      const ageMs = record.changedAtMs - Number(situation.keys.fields["t"]) + 2 * situation.bounds.epsMs;
      const skip = BURST_RUNS + Math.ceil((ageMs * record.id.rate) / 1000);
      return { ...decision, record: { ...record, highWaterMark: Math.max(before, command.floor) + skip } };
    },
  },
  /** The record without its checksum: whatever was written into one field is believed. */
  {
    name: "no-checksum",
    fault: "a record with a manual edit is believed",
    focus: { kinds: ["lease", "moment", "edit"], setting: { serverCount: 1, isOnLine: false } },
    believesEdits: true,
    decide(situation, command) {
      const { keys } = situation;
      const fields = { ...keys.fields, k: checksumOf(keys.fields) };
      return decide({ ...situation, keys: { ...keys, fields } }, command);
    },
    apply(now, expected, change) {
      const fields = { ...now.keys.fields, k: checksumOf(now.keys.fields) };
      const { keys } = expected.found;
      const found = withFound(expected, { fields: { ...keys.fields, k: checksumOf(keys.fields) } });
      return recordToWrite({ ...now, keys: { ...now.keys, fields } }, found, change);
    },
  },
  /**
   * Claim and skip in one step, before any other coordinator has heard of the claim: the record is open on the line at once. Until others hear of it, they may
   * acknowledge leases of another master, above where this one has skipped to.
   *
   * Its epoch is that of its time, without the counts of resynchronizations: with them, no replica that could acknowledge later comes unnoticed, and
   * the order would not matter. So that the order counts for most, no replica that has a later claim is made to follow a master that has
   * not. A replica that forgets the claim in a crash still costs that epoch a run now and then, in the guard's own order too.
   */
  {
    name: "skip-before-quorum",
    fault: "the counter skips with the claim, and not after the quorum has the claim",
    focus: {
      groups: ["failover", "cuts", "lag", "routes"],
      setting: { serverCount: 3, hostCount: 2, isOnLine: true, rate: 16, firstRun: 1 },
    },
    epochOf: withoutSyncs,
    sparesReturns: true,
    decide(situation, command) {
      if (command.step === "confirm") return nothingLeftToDo(situation, command) ?? decide(situation, command);
      const claimed = decide(situation, command);
      if (command.step !== "claim" || isRefusal(claimed)) return claimed;
      const { storeId, isSilenceAccepted } = command;
      const { generation } = claimed.record;
      const keys = { ...situation.keys, fields: storedFields(claimed.record) };
      const confirm = { step: "confirm", storeId, isSilenceAccepted, generation, floor: 0 } as const;
      return decide({ ...situation, keys }, confirm);
    },
    // A claim that skips rests on the mark.
    apply(now, expected, change) {
      const skips = Number(expected.found.keys.fields["g"]) < change.record.generation;
      return recordToWrite(now, skips ? { ...expected, rising: undefined } : expected, change);
    },
  },
  /**
   * The range counted back from the new mark by as many runs as were asked: when it was cut short, because room or run space are scarce,
   * it begins below the old mark.
   */
  {
    name: "range-backwards",
    fault: "a range is counted back from the new mark, also when it was cut short",
    decide(situation, command) {
      const decision = decide(situation, command);
      if (command.step !== "lease" || isRefusal(decision)) return decision;
      return { ...decision, runCount: Math.min(command.runCount, decision.record.highWaterMark) };
    },
    // The store adds what the runs below the decided mark were cut to.
    apply(now, expected, change) {
      const [lease] = change.leases;
      if (lease === undefined) return recordToWrite(now, expected, change);
      const runCount = change.record.highWaterMark - Number(expected.found.keys.fields["c"]);
      return recordToWrite(now, expected, { ...change, leases: [{ ...lease, runCount }] });
    },
  },
  /** The record and the server's life are not compared: a restart, a promotion, a restored disk are not noticed. */
  {
    name: "no-epoch",
    fault: "the epoch is always the same, whatever happened to the server",
    epochOf: () => "always",
  },
  /**
   * The epoch without `sync_partial_ok`, as it was until this suite ran for the first time: a replica that acknowledged another master's claim,
   * lost it in a crash and came back from its RDB made an old master lease again that had never been recovering.
   */
  {
    name: "no-partial-sync",
    fault: "a replica that comes back by a partial resynchronization makes no new epoch",
    focus: {
      kinds: ["lease", "lease", "lease", "moment", "wait", "failOver", "comeBack"],
      setting: { serverCount: 3, hostCount: 2, isOnLine: false, ageMs: 0, rate: 1, firstRun: 1 },
    },
    epochOf: (epoch) => epoch.split(":").slice(0, 3).join(":"),
  },
  /** `WAIT` is not judged: a master alone on its side of a cut goes on leasing. */
  {
    name: "no-quorum",
    fault: "the coordinator does not wait for the other nodes, nor check how many have it",
    pretendsQuorum: true,
  },
  /** The master is demoted, or claimed by another coordinator, while the quorum is waited for. */
  {
    name: "no-check",
    fault: "role, epoch and generation of the server are not compared after the quorum",
    focus: {
      groups: ["failover"],
      setting: { serverCount: 3, hostCount: 2, isOnLine: true, rate: 1, firstRun: 1 },
    },
    pretendsSameServer: true,
  },
  /** A replica that was copied in full by another master, and comes back, acknowledges what its first master is about to lease. */
  {
    name: "no-full-sync",
    fault: "a replica that comes back by a full resynchronization makes no new epoch",
    focus: {
      kinds: ["lease", "lease", "lease", "moment", "wait", "failOver", "follow"],
      setting: { serverCount: 3, hostCount: 2, isOnLine: false, ageMs: 0, rate: 1, firstRun: 1 },
    },
    epochOf(epoch) {
      const [runId, replId, , syncPartial] = epoch.split(":");
      return [runId, replId, syncPartial].join(":");
    },
  },
  /** A store that has forgotten leases goes on from what the coordinator remembers. */
  {
    name: "no-skip",
    fault: "after a rollback the counter is raised to what the coordinator remembers, and not onto the line",
    focus: { groups: ["crashes", "hosts"], setting: { serverCount: 1, isOnLine: false, firstRun: 1 } },
    decide(situation, command) {
      const decision = decide(situation, command);
      if (command.step !== "confirm" || isRefusal(decision)) return decision;
      const highWaterMark = Math.max(Number(situation.keys.fields["c"]), command.floor);
      return { ...decision, record: { ...decision.record, highWaterMark } };
    },
  },
  /** A record put back into the running server, older than the silence that is allowed, is believed. */
  {
    name: "no-gap",
    fault: "a record that was not written for long is believed",
    focus: { groups: ["rollbacks", "silences"], setting: { isOnLine: false, checkpoint: "none" } },
    bounds: { gapMs: Number.MAX_SAFE_INTEGER },
  },
  /** A record put back into the running server is believed by a coordinator that has lost its checkpoint. */
  {
    name: "no-attendance",
    fault: "a coordinator without a checkpoint believes a record that no other one has just written",
    focus: {
      kinds: ["lease", "wait", "putBack", "restartCoordinator"],
      setting: { isOnLine: false, checkpoint: "none" },
    },
    bounds: { attendedMs: Number.MAX_SAFE_INTEGER },
  },
  /** The store gets nothing of what the coordinator remembers: a record put back into the running server is believed. */
  {
    name: "no-floor",
    fault: "the store does not get what the coordinator remembers",
    focus: { groups: ["rollbacks"], setting: { isOnLine: false } },
    decide(situation, command) {
      const forgetful = {
        ...command,
        ...("floor" in command ? { floor: 0 } : {}),
        ...("generationMin" in command ? { generationMin: 0 } : {}),
      };
      return decide(situation, forgetful as typeof command);
    },
    apply: (now, expected, change) => {
      const { rising } = expected;
      if (rising === undefined) return recordToWrite(now, expected, change);
      return recordToWrite(now, { ...expected, rising: { ...rising, markIdMin: 0 } }, change);
    },
  },
  /** A coordinator that advances is believed: a store that forgot an advance leases the same version from its first run on again. */
  {
    name: "advance-dense",
    fault: "a recovering store goes on at run 1 of the next version",
    focus: {
      kinds: ["lease", "wait", "advance", "backUp", "restore", "restartCoordinator"],
      setting: { firstRun: RUN_MAX - 40, isOnLine: false, serverCount: 1, hostCount: 1, checkpoint: "none" },
    },
    decide(situation, command) {
      const decision = decide(situation, command);
      if (command.step !== "advance" || isRefusal(decision)) return decision;
      return { ...decision, record: { ...decision.record, phase: PHASES.open } };
    },
  },
  /**
   * The line of the next version begins 65,536 runs before this one's ends, so that something of it can be leased already; and a store that
   * forgot that recovers in this version, below the end, and advances once more without skipping runs.
   */
  {
    name: "advance-early",
    fault: "a version may be ended before its run ceiling has reached the last run",
    focus: {
      kinds: ["lease", "wait", "advance", "backUp", "restore", "restartCoordinator"],
      setting: {
        firstRun: RUN_MAX - BURST_RUNS - 4_000,
        isOnLine: false,
        ageMs: 0,
        rate: 1,
        serverCount: 1,
        hostCount: 1,
        checkpoint: "none",
      },
    },
    decide(situation, command) {
      if (command.step !== "advance") return decide(situation, command);
      const decision = decide(situation, command);
      if (!isRefusal(decision) || decision.code !== "EARLY") return decision;
      const touched = decide(situation, { ...command, step: "heartbeat" });
      if (isRefusal(touched)) return decision;
      const { record } = touched;
      const next = { version: record.version + 1, highWaterMark: 0, generation: record.generation + 1 };
      return { record: { ...record, ...next }, runCount: 0 };
    },
  },
  /** A seal that the old store forgets is all that keeps the two apart; then both lease below one line. */
  {
    name: "move-keeps-id",
    fault: "a moved store keeps its store id and its version",
    focus: {
      kinds: ["lease", "wait", "move", "leaseAtNewPlace", "backUp", "restore", "restartCoordinator"],
      setting: { serverCount: 1, hostCount: 1, isOnLine: true, firstRun: 1, checkpoint: "own" },
    },
    newPlaceOf(store, oldStoreId) {
      return new Proxy(store, {
        get(_, name: keyof Store) {
          if (name === "apply") return applyAs(store, oldStoreId);
          const value: unknown = store[name];
          return typeof value === "function" ? (value.bind(store) as unknown) : value;
        },
      });
    },
  },
  /** Nothing but the seal has the move: a store that forgets it is moved again, and both new stores begin in the same version. */
  {
    name: "move-forgets",
    fault: "no checkpoint has that the store was moved",
    focus: {
      kinds: ["lease", "wait", "move", "moveElsewhere", "leaseAtNewPlace", "backUp", "restore", "restartCoordinator"],
      setting: { serverCount: 1, hostCount: 1, isOnLine: true, firstRun: 1, checkpoint: "none" },
    },
    forgetsMoves: true,
  },
  ...WRITE_VARIANTS,
  /** Safe, and useless: no run is ever leased, so none is leased twice. */
  {
    name: "refuse-always",
    fault: "every lease is refused",
    breaks: "after healing a lease succeeds",
    decide: (situation, command) => (command.step === "lease" ? refusal("REPLICA") : decide(situation, command)),
  },
  /** The same, with the one error that is an honest end, returned before the end. */
  {
    name: "end-always",
    fault: "every lease is refused because the run space is said to be at its end",
    breaks: "after healing a lease succeeds",
    decide: (situation, command) => (command.step === "lease" ? refusal("EXHAUSTED") : decide(situation, command)),
  },
];

function withoutSyncs(epoch: string): string {
  return epoch.split(":").slice(0, 2).join(":");
}

function nothingLeftToDo({ keys, namespace, server }: StepContext, { generation }: ConfirmStep) {
  const record = readRecord(keys.fields, namespace);
  if (isRefusal(record) || record.phase !== PHASES.open) return undefined;
  return record.generation === generation && record.epoch === server.epoch ? { record, runCount: 0 } : undefined;
}

/** Makes the record under the old id, and answers as if it had done what it was asked. */
function applyAs(store: Store, oldStoreId: () => string): Store["apply"] {
  return async (namespace, expected, change) => {
    const { nodeCount, proofKey } = change.record;
    const { keys, server } = expected.found;
    if (keys.record !== "none") return await store.apply(namespace, expected, change);
    const decided = decide(
      { namespace, keys, server, nowMs: server.timeMs, bounds: DEFAULT_BOUNDS },
      {
        step: "recover",
        storeId: oldStoreId(),
        isSilenceAccepted: false,
        floor: 0,
        generationMin: 0,
        nodeCount,
        proofKey,
      },
    );
    if (isRefusal(decided)) throw new Error(`broken invariant: the new place is empty, and yet ${decided.code}`);
    return await store.apply(namespace, expected, { ...change, record: decided.record });
  };
}

function refusal(code: Refusal["code"]): Refusal {
  return { code, detail: "0" };
}
