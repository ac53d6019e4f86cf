/**
 * Move: a namespace goes on in another store, as a store of its own with the next version of the call numbers. What the old store
 * leases after that, also one that forgot the move, is no number of the new one (docs/decisions/0013). In this order, so that the
 * same command goes on wherever it was killed:
 *
 *   1 the source is sealed, with the new place and store id, and the quorum has the seal: the ledger is complete
 *   2 the ledger is copied, and compared, into a place that has no record; its retention, too, and how far it was trimmed
 *   3 the target's record is made on the clock line of the new store, to be claimed by a coordinator
 *   4 the labels are carried over: words for people, and nothing waits for them
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import { whenCeilingReaches } from "../guard/ceiling.js";
import { type CheckpointFile, CORRUPT } from "../guard/checkpoint.js";
import { NamespaceGuard } from "../guard/namespace-guard.js";
import { PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import { isMovedSeal, type MovedTo, movedSeal, movedToIn, textOfMove } from "../guard/seals.js";
import { freshNonce, verifyOutcome } from "../guard/verify-outcome.js";
import { type Log, SILENT_LOG } from "../log.js";
import type { NamespaceRecord, RecoverStep, Store } from "../store.js";
import { nextStoreId, parseStoreId } from "../store-id.js";
import { compareLedgers, copyLedger, copyRetention, type LedgerComparison } from "./ledger-copy.js";

export interface Moved {
  readonly namespace: string;
  /** Of the new store. */
  readonly storeId: string;
  /** Undefined when an earlier try had done it all. */
  readonly leaseCount: number | undefined;
  /** The target's record at the end. */
  readonly record: NamespaceRecord;
}

/** Above every clock line. */
const BEYOND_THE_LINE = ledgerIdOf(VERSION_MAX, RUN_MAX);

/**
 * Moves the namespace, or goes on with a move that was cut short.
 * @throws CoordinatorError as `planMove`; every refusal of a lease, by the source: it is not sealed then; every refusal of
 *   `recover`, by the target. Once the source is sealed, nothing leases until the same move has succeeded.
 */
export async function moveNamespace(options: MoveOptions): Promise<Moved> {
  const { namespace, target } = options;
  const { storeId, ledger } = await planMove(options);
  let leaseCount: number | undefined;
  if (ledger !== undefined) {
    await targetMustBeFit(options, storeId);
    await sealSource(options, storeId);
    await copyLedger(ledgersOf(options), ledger.copiedUpTo);
    await copyRetention(ledgersOf(options), storeId);
    leaseCount = await mustBeWhole(options);
    await makeRecord(options, storeId);
  }
  await carryLabels(options);
  return { namespace, storeId, leaseCount, record: await target.store.readNamespace(namespace) };
}

/**
 * Asks the target, by a recovery that can't succeed, whether it would refuse for another reason (a replica, too many nodes,
 * clocks apart): after the source is sealed is too late to hear it.
 */
async function targetMustBeFit(options: MoveOptions, storeId: string): Promise<void> {
  try {
    await options.target.store.step(options.namespace, recovery(options, storeId, BEYOND_THE_LINE));
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "operator_needed") return;
    throw error;
  }
  throw new Error("broken invariant: a record was made above the clock line");
}

async function sealSource(options: MoveOptions, storeId: string): Promise<void> {
  const guard = await openGuard(options);
  try {
    await guard.seal(movedSeal({ storeId, place: options.target.place }));
  } finally {
    guard.close();
  }
}

/** Returns how many leases there are. */
async function mustBeWhole(options: MoveOptions): Promise<number> {
  const { leaseCount, copiedCount, hasMore } = await compareLedgers(ledgersOf(options));
  if (copiedCount === leaseCount && !hasMore) return leaseCount;
  throw new CoordinatorError(
    "store_replaced",
    `the new store holds ${hasMore ? "more than the" : copiedCount} of ${leaseCount} leases of namespace "${options.namespace}" after ` +
      "they were copied: something else writes there. It leases nothing. See that only this command works on it; then the same again",
  );
}

/** On the line, also where the target had leased and lost its record since: nothing it may have leased lies above. */
async function makeRecord(options: MoveOptions, storeId: string): Promise<void> {
  const { namespace, target } = options;
  const command = recovery(options, storeId, 0);
  const outcome = await target.store.step(namespace, command);
  verifyOutcome(outcome, command);
  const { version, highWaterMark, generation, nodeCount } = outcome.after;
  target.checkpointFile.note({ storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount });
}

function recovery({ nodeCount }: MoveOptions, storeId: string, floor: number): RecoverStep {
  return {
    step: "recover",
    storeId,
    nonce: freshNonce(),
    isSilenceAccepted: false,
    floor,
    generationMin: 0,
    nodeCount,
    receiptKey: randomBytes(32).toString("hex"),
  };
}

/** Last, as they belong to a record; those that the new store was given since stay. */
async function carryLabels({ store, target, namespace }: MoveOptions): Promise<void> {
  if (Object.keys(await target.store.readDescription(namespace)).length > 0) return;
  const labels = await store.readDescription(namespace).catch(withoutLabels);
  if (Object.keys(labels).length > 0) await target.store.describeNamespace(namespace, labels);
}

/** Labels that were edited and can't be read hold up nothing. */
function withoutLabels(error: unknown): Readonly<Record<string, string>> {
  if (error instanceof CoordinatorError && error.code === "store_corrupt") return {};
  throw error;
}

/** The store that the namespace moves to. */
interface MoveTarget {
  readonly store: Store;
  /** Where it is, without secrets, the same text at every try; it fits in a seal. */
  readonly place: string;
  readonly checkpointFile: CheckpointFile;
}

/** `store` and `witness` are the old store's. */
export interface MoveOptions extends OperatorOptions {
  readonly target: MoveTarget;
  /** How many data nodes the target has. */
  readonly nodeCount: number;
  /** Leases that are read and written at once. Default 500. */
  readonly pageLeaseCount?: number;
}

export interface MovePlan {
  readonly namespace: string;
  readonly stage: "new" | "begun" | "done";
  readonly source: NamespaceRecord;
  /** The store id that the namespace goes on as; decided once the source is sealed. */
  readonly storeId: string;
  /** What the target holds of the namespace; undefined for no record. */
  readonly target: NamespaceRecord | undefined;
  /** Undefined when the move is done. */
  readonly ledger: LedgerComparison | undefined;
}

const PAGE_LEASE_COUNT = 500;

/**
 * Looks at both stores.
 * @throws TypeError for a place that no seal can name. CoordinatorError `store_moved` to another place, `store_forked`;
 *   `run_space_exhausted` in the last version, or when the clock line of the version has reached its end;
 *   `namespace_already_initialised` when the target's place keeps or kept another store; `store_replaced` when it holds leases of one.
 */
export async function planMove(options: MoveOptions): Promise<MovePlan> {
  const { namespace, store, target } = options;
  const source = await store.readNamespace(namespace);
  const { storeId } = movedToOf(source, options);
  if (!isMovedSeal(movedSeal({ storeId, place: target.place }))) {
    throw new TypeError(
      `the new store's address is too long to be kept in the old store's seal: ${target.place.slice(0, 60)}…`,
    );
  }
  const found = await recordIn(target.store, namespace);
  mustBeFree(options, storeId, found);
  if (found !== undefined) return { namespace, stage: "done", source, storeId, target: found, ledger: undefined };
  const ledger = await compareLedgers(ledgersOf(options));
  if (ledger.hasMore) throw beyondSource(namespace, target);
  const stage = source.phase === PHASES.sealed ? "begun" : "new";
  return { namespace, stage, source, storeId, target: undefined, ledger };
}

export function ledgersOf({ namespace, store: source, target, pageLeaseCount = PAGE_LEASE_COUNT }: MoveOptions) {
  return { namespace, source, target: target.store, pageLeaseCount };
}

/** As the seal says; without one a store of its own, in the next version: no number of it can be one of the source's. */
function movedToOf(
  { namespace, storeId, version, phase, seal }: NamespaceRecord,
  { target: { place }, now = Date.now, bounds = DEFAULT_BOUNDS }: MoveOptions,
): MovedTo {
  if (phase === PHASES.sealed) {
    const to = movedToIn(textOfMove(seal));
    if (to?.place === place) return to;
    if (isMovedSeal(seal)) throw refused("MOVED", textOfMove(seal), namespace);
    throw refused("FORKED", "0", namespace);
  }
  if (version >= VERSION_MAX) throw lastVersion(namespace, version);
  const id = parseStoreId(storeId);
  // A source that lost an `advance-version` has leased from the next version already, and a move would begin it a second time. That
  // is possible only after the clock line of this version has reached its end.
  if (id === undefined || whenCeilingReaches(id, version, RUN_MAX) <= now() + 2 * bounds.epsMs) {
    throw versionEnded(namespace, version);
  }
  return { storeId: nextStoreId(storeId, version + 1, now()), place };
}

/** Coordinators at the place would refuse another store than the one in its record or in their witness folder. */
function mustBeFree({ namespace, target }: MoveOptions, storeId: string, found: NamespaceRecord | undefined): void {
  const remembered = target.checkpointFile.read();
  const known = found?.storeId ?? (remembered === CORRUPT ? undefined : remembered?.storeId);
  if (known === undefined || known === storeId) return;
  const kept =
    found === undefined
      ? `the witness folder remembers store ${known} there`
      : `it holds store ${known}${isMovedSeal(found.seal) ? ", which was moved away" : ""}`;
  throw new CoordinatorError(
    "namespace_already_initialised",
    `namespace "${namespace}" can't move to ${target.place}: ${kept}. Move to an empty place: another file or "?prefix="`,
  );
}

async function recordIn(store: Store, namespace: string): Promise<NamespaceRecord | undefined> {
  try {
    return await store.readNamespace(namespace);
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "namespace_not_initialised") return undefined;
    throw error;
  }
}

function versionEnded(namespace: string, version: number): CoordinatorError {
  return new CoordinatorError(
    "run_space_exhausted",
    `namespace "${namespace}" can't move: the clock line of version ${version} has reached its end, so version ${version + 1} may be in use. Run ` +
      `\`${commandLine("advance-version", namespace)}\` first`,
  );
}

function lastVersion(namespace: string, version: number): CoordinatorError {
  return new CoordinatorError(
    "run_space_exhausted",
    `namespace "${namespace}" can't move: version ${version} is the last, and a move takes the next one. Between Redis servers, replicate and ` +
      "promote instead: version and store id stay",
  );
}

function beyondSource(namespace: string, { place }: MoveTarget): CoordinatorError {
  return new CoordinatorError(
    "store_replaced",
    `the ledger of namespace "${namespace}" at ${place} holds leases that the old store does not have: remains of another store, ` +
      "or the old store was restored. Nothing was changed. Move to an empty place, such as another ?prefix=",
  );
}

export interface OperatorOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly checkpointFile: CheckpointFile;
  readonly log?: Log;
  readonly now?: () => number;
  /** Others than the defaults are for tests, as are the two below. */
  readonly bounds?: Bounds;
  readonly pause?: (pauseMs: number) => Promise<void>;
  readonly random?: () => number;
}

/** @throws CoordinatorError as `NamespaceGuard.open`. */
export function openGuard({
  store,
  namespace,
  checkpointFile,
  log = SILENT_LOG,
  now = Date.now,
  bounds = DEFAULT_BOUNDS,
  pause = async (pauseMs) => void (await delay(pauseMs)),
  random = Math.random,
}: OperatorOptions): Promise<NamespaceGuard> {
  return NamespaceGuard.open({ store, namespace, checkpointFile, log, now, bounds, pause, random });
}
