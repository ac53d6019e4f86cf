/**
 * Move: a namespace leaves one store for another, as the same store: id, ledger, receipts. In this order, so that whatever is
 * killed in between, at most one store leases, and the same command goes on:
 *
 *   1 the source is sealed for good, for this target alone, and the quorum has the seal
 *   2 the ledger is copied, and compared, into a place that has no record, from which nothing can be leased; what of it stands in
 *     archive files stays there, for the target
 *   3 the target's record is made on the clock line, above everything that the source leased, to be claimed by a coordinator
 *   4 the labels are carried over: words for people, and nothing waits for them
 */
import { setTimeout as delay } from "node:timers/promises";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { freshNonce } from "../fresh-nonce.js";
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import { mustCount } from "../guard/judge.js";
import { whenLineReaches } from "../guard/line.js";
import { movedSeal } from "../guard/record.js";
import type { NamespaceRecord, Outcome, RecoverStep } from "../store.js";
import { parseStoreId } from "../store-id.js";
import { compareLedgers, copyArchivedPart, copyLedger } from "./ledger-copy.js";
import { floorOf, ledgersOf, type MoveOptions, type MovePlan, planMove } from "./move-plan.js";
import { openGuard } from "./open-guard.js";

export interface Moved {
  readonly namespace: string;
  readonly storeId: string;
  /** Carried over from the source, in this try or an earlier one. */
  readonly leaseCount: number;
  /** The target's record at the end. */
  readonly record: NamespaceRecord;
  /** The last run of the source. */
  readonly sourceMark: number;
  /** Whether an earlier try had done it all. */
  readonly wasDone: boolean;
}

/** Longer than the copying of any ledger takes. */
const MOVE_MAX_MS = 24 * 3_600_000;
/** Above every clock line. */
const BEYOND_THE_LINE = ledgerIdOf(VERSION_MAX, RUN_MAX);

/**
 * Moves the namespace, or goes on with a move that was cut short.
 * @throws CoordinatorError as `planMove`; every refusal of a lease, by the source: it is not sealed then; every refusal of
 *   `recover`, by the target. Once the source is sealed, nothing leases until the same move has succeeded.
 */
export async function moveNamespace(options: MoveOptions): Promise<Moved> {
  const plan = await planMove(options);
  if (plan.stage === "done") return await moved(options, plan, plan.source);
  if (plan.stage === "new") versionMustGoOn(options, plan);
  await targetMustBeFit(options, plan);
  const sealed = await sealSource(options);
  await copyLedger(ledgersOf(options), plan.copiedUpTo);
  await copyArchivedPart(ledgersOf(options), sealed.storeId);
  const leaseCount = await mustBeWhole(options);
  const { after } = await makeRecord(options, { ...plan, source: sealed });
  const { storeId, version, highWaterMark, generation, nodeCount } = after;
  options.target.witness.note({ storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount });
  return await moved(options, { ...plan, leaseCount }, sealed);
}

/** A move ends with a jump onto the line. Of a version whose line has passed its end there is none, and a seal is for good. */
function versionMustGoOn({ namespace, now = Date.now, bounds = DEFAULT_BOUNDS }: MoveOptions, plan: MovePlan): void {
  const { version } = runOfLedgerId(floorOf(plan));
  if (whenLineReaches(idOf(plan.source), version, RUN_MAX) > now() + MOVE_MAX_MS + 2 * bounds.epsMs) return;
  throw new CoordinatorError(
    "run_space_exhausted",
    `the clock line of version ${version} of namespace "${namespace}" has passed its last run, or is about to: the new store could lease ` +
      'nothing of it. Nothing was changed. "callnumber advance-version" first; then the same again',
  );
}

/**
 * Asks the target, by a recovery that can't succeed, whether it would refuse for another reason (a replica, too many nodes,
 * clocks apart): after the source is sealed is too late to hear it.
 */
async function targetMustBeFit(options: MoveOptions, plan: MovePlan): Promise<void> {
  try {
    await options.target.store.step(options.namespace, recovery(options, plan, BEYOND_THE_LINE));
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "operator_needed") return;
    throw error;
  }
  throw new Error("broken invariant: a record was made above the clock line");
}

/** Seals the source, or hears again that it is sealed. Answers the record under the seal. */
async function sealSource(options: MoveOptions): Promise<NamespaceRecord> {
  const guard = await openGuard(options);
  try {
    await guard.seal(movedSeal(options.target.place));
    return await guard.readRecord();
  } finally {
    guard.close();
  }
}

/** Answers how many leases there are. */
async function mustBeWhole(options: MoveOptions): Promise<number> {
  const { leaseCount, copiedCount, hasMore } = await compareLedgers(ledgersOf(options));
  if (copiedCount === leaseCount && !hasMore) return leaseCount;
  throw new CoordinatorError(
    "store_replaced",
    `the new store holds ${hasMore ? "more than the" : copiedCount} of ${leaseCount} leases of namespace "${options.namespace}" after ` +
      "they were copied: somebody else writes there. It leases nothing. See that nothing but this command works on it; then the same again",
  );
}

async function makeRecord(options: MoveOptions, plan: MovePlan): Promise<Outcome> {
  const floor = floorOf(plan);
  await untilTheLineIsAbove(options, plan, floor);
  const command = recovery(options, plan, floor);
  const outcome = await options.target.store.step(options.namespace, command);
  mustCount(outcome, command);
  return outcome;
}

/** The source may have jumped by a clock that was ahead of ours and of the target's, by no more than eps. */
async function untilTheLineIsAbove(options: MoveOptions, { source }: MovePlan, floor: number): Promise<void> {
  const { now = Date.now, bounds = DEFAULT_BOUNDS } = options;
  const { version, run } = runOfLedgerId(floor);
  const waitMs = whenLineReaches(idOf(source), version, run) - 2 * bounds.epsMs - now();
  if (waitMs > 0 && waitMs <= 2 * bounds.epsMs) await delay(waitMs);
}

function recovery({ nodeCount }: MoveOptions, { source, remembered }: MovePlan, floor: number): RecoverStep {
  return {
    step: "recover",
    storeId: source.storeId,
    nonce: freshNonce(),
    isSilenceAccepted: false,
    floor,
    generationMin: Math.max(source.generation, remembered?.generation ?? 0),
    nodeCount,
    receiptKey: source.receiptKey,
  };
}

async function moved(options: MoveOptions, { leaseCount, stage }: MovePlan, source: NamespaceRecord): Promise<Moved> {
  const { namespace, target } = options;
  const record = await target.store.readNamespace(namespace);
  const { storeId } = source;
  const isAbove =
    record.storeId === storeId &&
    record.generation > source.generation &&
    ledgerIdOf(record.version, record.highWaterMark) >= ledgerIdOf(source.version, source.highWaterMark);
  if (!isAbove) {
    throw new CoordinatorError(
      "store_went_back",
      `the new store's record of namespace "${namespace}" is not above the old one's: it was restored meanwhile, or another hand ` +
        "wrote there. Start no coordinator on it before the same move has succeeded",
    );
  }
  await carryLabels(options);
  return { namespace, storeId, leaseCount, record, sourceMark: source.highWaterMark, wasDone: stage === "done" };
}

/** Last, as they belong to a record; those that the new store was given since stay. */
async function carryLabels({ store, target, namespace }: MoveOptions): Promise<void> {
  if (Object.keys(await target.store.readDescription(namespace)).length > 0) return;
  const labels = await store.readDescription(namespace).catch(withoutLabels);
  if (Object.keys(labels).length > 0) await target.store.describeNamespace(namespace, labels);
}

/** Labels that another hand has spoilt hold up nothing. */
function withoutLabels(error: unknown): Readonly<Record<string, string>> {
  if (error instanceof CoordinatorError && error.code === "store_corrupt") return {};
  throw error;
}

function idOf({ storeId }: NamespaceRecord) {
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  return id;
}
