/**
 * What a step does, as pure functions: read here why nothing was leased. Rules stand only here and in what it imports; no store knows one.
 * Guarantees: G1, G12, G13 (docs/guarantees.md).
 */
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ceilingAt, ROOM_SHARE, whenCeilingReaches } from "./ceiling.js";
import {
  checkAttached,
  checkCheckpoint,
  checkHealthy,
  checkMovable,
  checkNewServer,
  checkOwned,
  checkQuorum,
  checkRecord,
  checkServer,
  KEY_NAMES,
  type KeyName,
  markIdOf,
  type ObservedKeys,
  type StepContext,
  SUSPECT_EPOCH,
} from "./checks.js";
import { checkClocks, checkHeartbeat, clocksOf } from "./clocks.js";
import type {
  AdvanceStep,
  ClaimStep,
  ConfirmStep,
  HeartbeatStep,
  InitStep,
  LeaseStep,
  RecoverStep,
  SealStep,
  StepCommand,
  SuspectStep,
} from "./commands.js";
import {
  GENERATION_MAX,
  type NamespaceState,
  NO_SEAL,
  type ObservedFields,
  PHASES,
  readRecord,
  recoveredGenerationAfter,
} from "./record.js";
import { isRefusal, type Refusal, refusal } from "./refusals.js";
import {
  doneSeal,
  isDoneSeal,
  isMovedSeal,
  movedToIn,
  parseStoreId,
  type StoreIdFields,
  textOfMove,
} from "./store-id.js";

/** What to write: the record, and for a lease how many runs up to its high-water mark were granted. */
export interface Written {
  readonly record: NamespaceState;
  readonly runCount: number;
  /** Keys of another program in the place of ours, which are renamed first. */
  readonly movesAside?: readonly KeyName[];
  /** A time to live is removed, as only an operator's user may do. */
  readonly persists?: boolean;
  /** It is done in a copy, too, which is the store from then on: an operator states that the original is gone, or it leases no more. */
  readonly acceptsCopy?: boolean;
}

export type Decide<S extends StepCommand = StepCommand> = (context: StepContext, step: S) => Written | Refusal;

/** Decides on any step. */
export function decide(context: StepContext, step: StepCommand): Written | Refusal {
  return (DECISIONS[step.step] as Decide)(context, step);
}

const DECISIONS: { readonly [S in StepCommand as S["step"]]: Decide<S> } = {
  lease: decideLease,
  heartbeat: decideHeartbeat,
  claim: decideClaim,
  confirm: decideConfirm,
  seal: decideSeal,
  recover: decideRecover,
  init: decideInit,
  advance: decideAdvance,
  suspect: decideSuspect,
};

/**
 * Grants runs, computed from the old mark upwards, never back from the new one: a range that the end of the run space cuts short would
 * otherwise begin below the mark.
 */
function decideLease(context: StepContext, step: LeaseStep): Written | Refusal {
  if (step.runCount < 1) return refusal("MISUSE", "a lease of no runs");
  const record = checkHealthy(context, step);
  if (isRefusal(record)) return record;
  if (markIdOf(record) < step.provenRun) return refusal("FORKED", step.provenRun);
  const { id, version, highWaterMark } = record;
  if (highWaterMark >= RUN_MAX) return refusal("EXHAUSTED", version);
  const { earliestMs } = clocksOf(context);
  const headroom = ceilingAt(id, version, earliestMs) - highWaterMark;
  if (headroom < 1) return refusal("AHEAD", whenCeilingReaches(id, version, highWaterMark + 1) - earliestMs);
  const share = Math.max(Math.floor(headroom / ROOM_SHARE), 1);
  const runCount = Math.min(step.runCount, share, RUN_MAX - highWaterMark);
  return { record: { ...withTime(record, context), highWaterMark: highWaterMark + runCount }, runCount };
}

function decideHeartbeat(context: StepContext, step: HeartbeatStep): Written | Refusal {
  const record = checkHealthy(context, step);
  return isRefusal(record) ? record : { record: withTime(record, context), runCount: 0 };
}

/** The first half of a recovery. The mark stays: before the quorum has the claim, another node may still lease. */
function decideClaim(context: StepContext, step: ClaimStep): Written | Refusal {
  const record = checkOwned(context, step);
  if (isRefusal(record)) return record;
  if (record.generation !== step.generation) return refusal("RACED", record.generation);
  const generation = Math.max(record.generation, step.generationMin) + 1;
  if (generation > GENERATION_MAX) return refuseGeneration();
  return { record: { ...inEpoch(record, context), generation, phase: PHASES.claimed }, runCount: 0 };
}

/** The second half: moves the mark to the ceiling, past everything that could have been leased and lost. */
function decideConfirm(context: StepContext, step: ConfirmStep): Written | Refusal {
  const record = checkOwned(context, step);
  if (isRefusal(record)) return record;
  const isOurClaim =
    record.phase === PHASES.claimed && record.generation === step.generation && record.epoch === context.server.epoch;
  if (!isOurClaim) return refusal("RACED", record.generation);
  const highWaterMark = markAfterRecovery(context, record, step.floor);
  if (typeof highWaterMark !== "number") return highWaterMark;
  return { record: { ...withTime(record, context), highWaterMark, phase: PHASES.open }, runCount: 0 };
}

/** Ends leasing: until `recover` where two copies were met, permanently for a move. */
function decideSeal(context: StepContext, step: SealStep): Written | Refusal {
  if (isMovedSeal(step.seal)) return decideMove(context, step);
  const record = checkHealthy(context, step);
  if (isRefusal(record)) return record;
  return { record: { ...withTime(record, context), phase: PHASES.sealed, seal: step.seal }, runCount: 0 };
}

/**
 * Sets the seal of a move, and again where it is set already: only the answer to this step proves that the quorum has it. The store that it
 * names leases no version that this one has reached, as far as record, ledger and caller know.
 */
function decideMove(context: StepContext, step: SealStep): Written | Refusal {
  const record = checkMovable(context, step);
  if (isRefusal(record)) return record;
  if (step.makesStore === true) {
    // At most one does, and none where the store may have gone back since.
    if (isDoneSeal(record.seal)) return refusal("MOVED", textOfMove(record.seal));
    const isSealed = record.phase === PHASES.sealed && record.epoch === context.server.epoch;
    if (!isSealed) return refusal("RACED", record.generation);
  }
  const { firstVersion = Infinity } = parseStoreId(movedToIn(textOfMove(step.seal))?.storeId ?? "") ?? {};
  const known = Math.max(markIdOf(record), step.floor, context.keys.ledgerMark);
  if (record.phase !== PHASES.sealed && firstVersion <= runOfLedgerId(known).version) {
    return refusal("RACED", record.generation);
  }
  const isSamePlace = textOfMove(record.seal) === textOfMove(step.seal);
  const seal = isSamePlace && isDoneSeal(record.seal) ? record.seal : step.seal;
  return { record: { ...inEpoch(record, context), phase: PHASES.sealed, seal }, runCount: 0, acceptsCopy: true };
}

/** What an operator does when nothing else helps: makes the record again at the ceiling, to be claimed. */
function decideRecover(context: StepContext, step: RecoverStep): Written | Refusal {
  const id = parseStoreId(step.storeId);
  if (id === undefined) return refusal("MISUSE", "not a store id");
  const { keys } = context;
  const kept = recordToKeep(context, step.storeId);
  if (kept !== undefined && isRefusal(kept)) return kept;
  const nodeCount = step.nodeCount ?? kept?.nodeCount ?? 1;
  const movesAside = foreignKeys(keys, kept);
  const unfit = checkServerOf(context, kept, nodeCount) ?? checkClocks(context);
  if (unfit !== undefined) return unfit;
  if (kept !== undefined && isMovedSeal(kept.seal)) {
    // It stays moved. Only what every other step refuses goes: a time to live, keys of another program, a node that is lost.
    if (keys.expires || movesAside.length > 0 || nodeCount !== kept.nodeCount) {
      // Of another life of the store, it may have forgotten that the new store was made.
      const seal = kept.epoch === context.server.epoch ? kept.seal : doneSeal(kept.seal);
      const record = { ...inEpoch(kept, context), nodeCount, seal };
      return { record, runCount: 0, movesAside, persists: true, acceptsCopy: true };
    }
    return refusal("MOVED", textOfMove(kept.seal));
  }
  const heartbeatFault = kept === undefined ? undefined : checkHeartbeat(context, kept, step.isSilenceAccepted);
  if (heartbeatFault !== undefined) return heartbeatFault;
  const { version: versionKnown } = runOfLedgerId(Math.max(step.floor, keys.ledgerMark));
  if (versionKnown > VERSION_MAX) return refusal("OPERATOR", "line");
  const base = kept ?? lostRecord(context, step, id, versionKnown);
  const version = Math.max(base.version, runOfLedgerId(step.floor).version);
  const markOfVersion = version > base.version ? 0 : base.highWaterMark;
  const highWaterMark = markAfterRecovery(context, { ...base, version, highWaterMark: markOfVersion }, step.floor);
  if (typeof highWaterMark !== "number") return highWaterMark;
  const known = Math.max(base.generation, step.generationMin);
  const generation = recoveredGenerationAfter(known, clocksOf(context).latestMs);
  if (generation > GENERATION_MAX) return refuseGeneration();
  const recovered = { version, highWaterMark, generation, phase: PHASES.claimed, nodeCount, seal: NO_SEAL };
  return {
    record: { ...inEpoch(base, context), ...recovered },
    runCount: 0,
    movesAside,
    persists: true,
    acceptsCopy: true,
  };
}

/** A record stays as it counts its nodes, also where its replicas are away: they may come back. */
function checkServerOf(context: StepContext, kept: NamespaceState | undefined, nodeCount: number): Refusal | undefined {
  if (kept === undefined) return checkNewServer(context, nodeCount);
  const isRaised = nodeCount > kept.nodeCount;
  return checkServer(context, nodeCount) ?? (isRaised ? checkQuorum(context, nodeCount) : undefined);
}

/** Keys of another type are another program's, and so are fields that name no store. */
function foreignKeys({ record, fields, ledger, holders }: ObservedKeys, kept: NamespaceState | undefined): KeyName[] {
  const isForeign = {
    record: record === "other" || (record === "hash" && kept === undefined && !isOfAnyStore(fields)),
    ledger: ledger === "other",
    holders: holders === "other",
  };
  return KEY_NAMES.filter((name) => isForeign[name]);
}

/** Returns the record that a recovery keeps, or undefined where it makes a new one: there is none, or it can't be read. */
function recordToKeep({ keys, namespace }: StepContext, storeId: string): NamespaceState | Refusal | undefined {
  // A key of another type belongs to another program: it is renamed, and what was in its place is lost.
  if (keys.record !== "hash") return undefined;
  const found = readRecord(keys.fields, namespace);
  if (!isRefusal(found)) return found.storeId === storeId ? found : refusal("FOREIGN", found.storeId);
  if (found.code !== "CORRUPT") return found;
  // An edited record may be recovered only as the store that it still names.
  const named = keys.fields["sid"] ?? "";
  return isOfAnyStore(keys.fields) && named !== storeId ? refusal("FOREIGN", named) : undefined;
}

/** Returns the record of a namespace whose record is lost, at the beginning of the greatest version that is known. */
function lostRecord(
  { namespace }: StepContext,
  { storeId, proofKey }: RecoverStep,
  id: StoreIdFields,
  versionKnown: number,
): NamespaceState {
  return {
    namespace,
    storeId,
    id,
    version: Math.max(versionKnown, id.firstVersion),
    highWaterMark: versionKnown <= id.firstVersion ? id.firstRun - 1 : 0,
    changedAtMs: 0,
    epoch: NO_SEAL,
    generation: 0,
    phase: PHASES.claimed,
    nodeCount: 1,
    proofKey,
    seal: NO_SEAL,
  };
}

/** Whether the fields in place of a record name a store. Else they may belong to another program, and are renamed as a key of another type. */
function isOfAnyStore(fields: ObservedFields): boolean {
  return parseStoreId(fields["sid"] ?? "") !== undefined;
}

function decideInit(context: StepContext, step: InitStep): Written | Refusal {
  const id = parseStoreId(step.storeId);
  if (id === undefined) return refusal("MISUSE", "not a store id");
  const { keys, server } = context;
  if (keys.record !== "none") return refusal("ALREADY", "the record exists");
  if (keys.ledger !== "none") return refusal("CORRUPT", "there is a ledger, but no record");
  const unfit = checkNewServer(context, step.nodeCount) ?? checkClocks(context);
  if (unfit !== undefined) return unfit;
  return {
    record: {
      namespace: context.namespace,
      storeId: step.storeId,
      id,
      version: id.firstVersion,
      highWaterMark: id.firstRun - 1,
      changedAtMs: clocksOf(context).latestMs,
      epoch: server.epoch ?? "",
      generation: 0,
      phase: PHASES.open,
      nodeCount: step.nodeCount,
      proofKey: step.proofKey,
      seal: NO_SEAL,
    },
    runCount: 0,
  };
}

/**
 * Continues in the next version at run 1; not before the ceiling of this one has passed its end. From then on no recovery can end in this
 * version any more, so a store that lost the advance leases nothing until it has advanced again. A store that may have rolled back may have
 * advanced before, and leased: it is left to be claimed, and its recovery goes to the ceiling of the next version.
 */
function decideAdvance(context: StepContext, step: AdvanceStep): Written | Refusal {
  const record = checkOwned(context, step);
  if (isRefusal(record)) return record;
  const { id, version } = record;
  if (version !== step.version) return refusal("RACED", record.generation);
  if (version >= VERSION_MAX) return refusal("EXHAUSTED", version);
  const earlyMs = whenCeilingReaches(id, version, RUN_MAX) - clocksOf(context).earliestMs;
  if (earlyMs > 0) return refusal("EARLY", earlyMs);
  const fault = checkCheckpoint(context, record, step);
  const generation = Math.max(record.generation, step.generationMin) + 1;
  if (generation > GENERATION_MAX) return refuseGeneration();
  const phase = fault === undefined ? PHASES.open : PHASES.claimed;
  return {
    record: { ...inEpoch(record, context), version: version + 1, highWaterMark: 0, generation, phase },
    runCount: 0,
  };
}

/** One node to which another was attached: that may be promoted and lease when nothing of it is seen any more. A seal stays as it is. */
function decideSuspect(context: StepContext, step: SuspectStep): Written | Refusal {
  const record = checkRecord(context, step.storeId);
  if (isRefusal(record)) return record;
  const { role, connectedReplicas } = context.server;
  const isAttached = record.nodeCount === 1 && connectedReplicas > 0;
  const isSeen = isAttached || checkAttached(context, record, step)?.detail === "replica";
  if (!isSeen || record.phase === PHASES.sealed || role !== "master") return refusal("RACED", record.generation);
  // Any `recover` then reaches what the caller has noted, also where that is not known.
  const generation = Math.max(record.generation, (step.recoveredMin ?? 0) - 1);
  return { record: { ...record, epoch: SUSPECT_EPOCH, generation }, runCount: 0 };
}

/** A greater one could be written, but never be read again. */
function refuseGeneration(): Refusal {
  return refusal("CORRUPT", "the generation has reached its end");
}

/** Returns the mark after a recovery: the ceiling, a little ahead of the later clock. */
function markAfterRecovery(context: StepContext, record: NamespaceState, floor: number): number | Refusal {
  const { id, version } = record;
  const target = ceilingAt(id, version, clocksOf(context).latestMs + 2 * context.bounds.epsMs);
  // First: whatever is known of a later version, the way on is to advance.
  if (target >= RUN_MAX) return refusal("EXHAUSTED", version);
  const known = Math.max(markIdOf(record), floor, context.keys.ledgerMark);
  return known > ledgerIdOf(version, target) ? refusal("OPERATOR", "line") : target;
}

function withTime(record: NamespaceState, context: StepContext): NamespaceState {
  return { ...record, changedAtMs: Math.max(record.changedAtMs, clocksOf(context).latestMs) };
}

function inEpoch(record: NamespaceState, context: StepContext): NamespaceState {
  return { ...withTime(record, context), epoch: context.server.epoch ?? "" };
}
