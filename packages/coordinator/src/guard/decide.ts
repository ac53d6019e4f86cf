/**
 * What a store decides about its record, as pure functions: the table to read when one asks why nothing was leased.
 * Every refusal comes before anything is written. The memory and the embedded store call these; the scripts in lua/ say the
 * same for Redis, and random states are played on both and compared answer by answer.
 * Guarantees: G1, G12, G13 (docs/guarantees.md).
 */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import type {
  AdvanceStep,
  ClaimStep,
  ConfirmStep,
  InitStep,
  LeaseStep,
  RecoverStep,
  SealStep,
  StepCommand,
  TouchStep,
} from "../store.js";
import { parseStoreId } from "../store-id.js";
import { ROOM_SHARE } from "./bounds.js";
import { ceilingAt, whenCeilingReaches } from "./ceiling.js";
import {
  checkCheckpoint,
  checkClocks,
  checkHealthy,
  checkHeartbeat,
  checkOwned,
  checkServer,
  clocksOf,
  markIdOf,
  type StepContext,
} from "./checks.js";
import { GENERATION_MAX, type NamespaceState, NO_SEAL, type ObservedFields, PHASES, readRecord } from "./record.js";
import { isRefusal, type Refusal, refusal } from "./refusals.js";
import { isMovedSeal, movedToIn, textOfMove } from "./seals.js";

/** What to write: the record, and for a lease how many runs up to its mark were granted. */
export interface Written {
  readonly record: NamespaceState;
  readonly runCount: number;
}

type Decide<S extends StepCommand> = (situation: StepContext, step: S) => Written | Refusal;

/** The decision on any step. */
export function decide(situation: StepContext, step: StepCommand): Written | Refusal {
  return (DECISIONS[step.step] as Decide<StepCommand>)(situation, step);
}

const DECISIONS: { readonly [S in StepCommand as S["step"]]: Decide<S> } = {
  lease: decideLease,
  touch: decideTouch,
  claim: decideClaim,
  confirm: decideConfirm,
  seal: decideSeal,
  recover: decideRecover,
  init: decideInit,
  advance: decideAdvance,
};

/**
 * The runs to grant, computed from the old mark upwards, never back from the new one: a range cut short by the end of the
 * run space would otherwise begin below the mark.
 */
function decideLease(situation: StepContext, step: LeaseStep): Written | Refusal {
  const record = checkHealthy(situation, step);
  if (isRefusal(record)) return record;
  if (markIdOf(record) < step.held) return refusal("FORKED", step.held);
  const { id, version, mark } = record;
  if (mark >= RUN_MAX) return refusal("EXHAUSTED", version);
  const { earliestMs } = clocksOf(situation);
  const room = ceilingAt(id, version, earliestMs) - mark;
  if (room < 1) return refusal("AHEAD", whenCeilingReaches(id, version, mark + 1) - earliestMs);
  const share = Math.max(Math.floor(room / ROOM_SHARE), 1);
  const runCount = Math.min(step.runCount, share, RUN_MAX - mark);
  return { record: { ...touched(record, situation), mark: mark + runCount }, runCount };
}

function decideTouch(situation: StepContext, step: TouchStep): Written | Refusal {
  const record = checkHealthy(situation, step);
  return isRefusal(record) ? record : { record: touched(record, situation), runCount: 0 };
}

/** The first half of a jump. The mark stays: before the quorum has the claim, another node may still lease. */
function decideClaim(situation: StepContext, step: ClaimStep): Written | Refusal {
  const record = checkOwned(situation, step);
  if (isRefusal(record)) return record;
  if (record.generation !== step.generation) return refusal("RACED", record.generation);
  const generation = Math.max(record.generation, step.generationMin) + 1;
  if (generation > GENERATION_MAX) return refusalOfGeneration();
  return { record: { ...inEpoch(record, situation), generation, phase: PHASES.claimed }, runCount: 0 };
}

/** The second half: onto the line, past everything that could have been leased and forgotten. */
function decideConfirm(situation: StepContext, step: ConfirmStep): Written | Refusal {
  const record = checkOwned(situation, step);
  if (isRefusal(record)) return record;
  const isOurClaim =
    record.phase === PHASES.claimed && record.generation === step.generation && record.epoch === situation.server.epoch;
  if (!isOurClaim) return refusal("RACED", record.generation);
  const mark = markAfterJump(situation, record, step.floor);
  if (typeof mark !== "number") return mark;
  return { record: { ...touched(record, situation), mark, phase: PHASES.open }, runCount: 0 };
}

/**
 * The seal of a move is set again where it is set already: only an answer to this very step proves that the quorum has it. The
 * store that it names leases no version that this one has reached.
 */
function decideSeal(situation: StepContext, step: SealStep): Written | Refusal {
  if (isMovedSeal(step.seal)) {
    const moved = checkOwned(situation, step, step.seal);
    if (!isRefusal(moved) && moved.phase === PHASES.sealed) return { record: inEpoch(moved, situation), runCount: 0 };
  }
  const record = checkHealthy(situation, step);
  if (isRefusal(record)) return record;
  const next = parseStoreId(movedToIn(textOfMove(step.seal))?.storeId ?? "");
  if (next !== undefined && next.firstVersion <= record.version) return refusal("RACED", record.generation);
  return {
    record: { ...touched(record, situation), phase: PHASES.sealed, seal: step.seal },
    runCount: 0,
  };
}

/** What an operator does when nothing else helps: the record is made anew on the line, and left to be claimed. */
function decideRecover(situation: StepContext, step: RecoverStep): Written | Refusal {
  const id = parseStoreId(step.storeId);
  if (id === undefined) return refusal("MISUSE", "not a store id");
  const { keys } = situation;
  // A key of another type is another program's: it is moved aside, and what it stood for is lost.
  const found = keys.record === "hash" ? readRecord(keys.fields, situation.namespace) : undefined;
  const kept = found === undefined || isRefusal(found) ? undefined : found;
  if (kept !== undefined && kept.storeId !== step.storeId) return refusal("FOREIGN", kept.storeId);
  if (found !== undefined && isRefusal(found)) {
    // A record that was edited may be recovered only as what it still says it is.
    if (found.word !== "CORRUPT") return found;
    if (isOfAnyStore(keys.fields) && keys.fields["sid"] !== step.storeId) {
      return refusal("FOREIGN", keys.fields["sid"] ?? "");
    }
  }
  const nodeCount = step.nodeCount ?? kept?.nodeCount ?? 1;
  const unfit = checkServer(situation, nodeCount) ?? checkClocks(situation);
  if (unfit !== undefined) return unfit;
  if (kept !== undefined && isMovedSeal(kept.seal)) {
    // Moved it stays. Only what every other step refuses goes.
    if (keys.expires) return { record: inEpoch(kept, situation), runCount: 0 };
    return refusal("MOVED", textOfMove(kept.seal));
  }
  const { latestMs } = clocksOf(situation);
  const silence = kept === undefined ? undefined : checkHeartbeat(situation, kept, step.isSilenceAccepted);
  if (silence !== undefined) return silence;
  const { version: versionKnown } = runOfLedgerId(Math.max(step.floor, keys.ledgerMark));
  // A greater one could be written, but never be read again.
  if (versionKnown > VERSION_MAX) return refusal("OPERATOR", "line");
  const base: NamespaceState = kept ?? {
    namespace: situation.namespace,
    storeId: step.storeId,
    id,
    version: Math.max(versionKnown, id.firstVersion),
    mark: versionKnown <= id.firstVersion ? id.firstRun - 1 : 0,
    changedAtMs: 0,
    epoch: NO_SEAL,
    generation: 0,
    phase: PHASES.claimed,
    nodeCount,
    receiptKey: step.receiptKey,
    seal: NO_SEAL,
  };
  const version = Math.max(base.version, runOfLedgerId(step.floor).version);
  const markOfVersion = version > base.version ? 0 : base.mark;
  const mark = markAfterJump(situation, { ...base, version, mark: markOfVersion }, step.floor);
  if (typeof mark !== "number") return mark;
  const generation = Math.max(base.generation + 1, step.generationMin + 1, latestMs);
  if (generation > GENERATION_MAX) return refusalOfGeneration();
  return {
    record: {
      ...inEpoch(base, situation),
      version,
      mark,
      generation,
      phase: PHASES.claimed,
      nodeCount,
      seal: NO_SEAL,
    },
    runCount: 0,
  };
}

/** Whether what stands in place of a record names a store. Else it may be another program's, and is moved aside as a key of another type. */
export function isOfAnyStore(fields: ObservedFields): boolean {
  return parseStoreId(fields["sid"] ?? "") !== undefined;
}

function decideInit(situation: StepContext, step: InitStep): Written | Refusal {
  const id = parseStoreId(step.storeId);
  if (id === undefined) return refusal("MISUSE", "not a store id");
  const { keys, server } = situation;
  if (keys.record !== "none") return refusal("ALREADY", "the record exists");
  if (keys.ledger !== "none") return refusal("CORRUPT", "there is a ledger, but no record");
  const unfit = checkServer(situation, step.nodeCount) ?? checkClocks(situation);
  if (unfit !== undefined) return unfit;
  return {
    record: {
      namespace: situation.namespace,
      storeId: step.storeId,
      id,
      version: id.firstVersion,
      mark: id.firstRun - 1,
      changedAtMs: clocksOf(situation).latestMs,
      epoch: server.epoch ?? "",
      generation: 0,
      phase: PHASES.open,
      nodeCount: step.nodeCount,
      receiptKey: step.receiptKey,
      seal: NO_SEAL,
    },
    runCount: 0,
  };
}

/**
 * Onto the next version, at run 1 of it; not before the line of this one has passed its end. From then on no jump can land in
 * this version any more, so a store that forgot the advance leases nothing until it has advanced again. A store in doubt may
 * have done so before, and leased: it is left to be claimed, and jumps onto the line of the next version.
 */
function decideAdvance(situation: StepContext, step: AdvanceStep): Written | Refusal {
  const record = checkOwned(situation, step);
  if (isRefusal(record)) return record;
  const { id, version } = record;
  if (version !== step.version) return refusal("RACED", record.generation);
  if (version >= VERSION_MAX) return refusal("EXHAUSTED", version);
  const earlyMs = whenCeilingReaches(id, version, RUN_MAX) - clocksOf(situation).earliestMs;
  if (earlyMs > 0) return refusal("EARLY", earlyMs);
  const fault = checkCheckpoint(situation, record, step);
  // Which only an operator may judge is no doubt that a jump settles.
  if (fault?.word === "OPERATOR") return fault;
  const generation = Math.max(record.generation, step.generationMin) + 1;
  if (generation > GENERATION_MAX) return refusalOfGeneration();
  const phase = fault === undefined ? PHASES.open : PHASES.claimed;
  return { record: { ...inEpoch(record, situation), version: version + 1, mark: 0, generation, phase }, runCount: 0 };
}

/** A greater one could be written, but never be read again. */
function refusalOfGeneration(): Refusal {
  return refusal("CORRUPT", "the generation has reached its end");
}

/** The run to jump to: the line, a little ahead of the later clock. */
function markAfterJump(situation: StepContext, record: NamespaceState, floor: number): number | Refusal {
  const { id, version } = record;
  const target = ceilingAt(id, version, clocksOf(situation).latestMs + 2 * situation.bounds.epsMs);
  // First: whatever is known of a later version, an advance is the way on.
  if (target >= RUN_MAX) return refusal("EXHAUSTED", version);
  const known = Math.max(markIdOf(record), floor, situation.keys.ledgerMark);
  return known > ledgerIdOf(version, target) ? refusal("OPERATOR", "line") : target;
}

function touched(record: NamespaceState, situation: StepContext): NamespaceState {
  return { ...record, changedAtMs: Math.max(record.changedAtMs, clocksOf(situation).latestMs) };
}

function inEpoch(record: NamespaceState, situation: StepContext): NamespaceState {
  return { ...touched(record, situation), epoch: situation.server.epoch ?? "" };
}
