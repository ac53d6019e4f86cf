/**
 * Move: a namespace continues in another store, as a store of its own with the next version of the call numbers. No number that the old store
 * leases after that, even after it lost the move, is a number of the new one (docs/adr/0013). The same command continues wherever it
 * was killed, because it works in this order:
 *
 *   1 the source is sealed, with the new place and store id, and the quorum has the seal: the ledger is complete. The checkpoint of the
 *     source has the same on the disk: a source that forgets its seal leases nothing, and is moved nowhere else, whatever its address is then
 *   2 the ledger is copied, and compared, into a place without a record; so is the retention, with how far it was trimmed
 *   3 the seal says that this is done: it is set once, and only who has set it goes on, so that no second new store is made
 *   4 the target's record is made at the ceiling of the new store, to be claimed by a coordinator
 *
 * Guarantees: G13 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import {
  type Checkpoint,
  type CheckpointFile,
  checkpointOf,
  leasedIdOf,
  mergeCheckpoints,
  movedOn,
} from "../guard/checkpoint.js";
import { hasItsEpoch } from "../guard/checks.js";
import type { RecoverStep, SealStep } from "../guard/commands.js";
import { asNamespaceLost } from "../guard/guard-state.js";
import { newProofKey } from "../guard/lease-proof.js";
import type { NamespaceGuardOptions } from "../guard/namespace-guard.js";
import { doStep, refusalOfStep } from "../guard/namespace-steps.js";
import { assertFitFor } from "../guard/preflight.js";
import { type NamespaceRecord, PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import {
  doneSeal,
  isDoneSeal,
  isMovedFrom,
  isMovedSeal,
  movedSeal,
  movedToIn,
  storeIdFields,
  textOfMove,
} from "../guard/store-id.js";
import type { Store } from "../stores/store.js";
import { compareLedgers, copyLedger, copyRetention, type LedgerComparison } from "./ledger-copy.js";
import { storeIdOf } from "./move-ids.js";
import {
  assertClockIsChecked,
  assertFree,
  assertHasBegun,
  assertNoCopy,
  assertNodeCount,
  assertWhole,
  moveBegun,
  newStoreMissing,
  ofSource,
  ofTarget,
} from "./move-refusals.js";

/** The store that the namespace moves to. */
interface MoveTarget {
  readonly store: Store;
  /** Where it is, without secrets: the same text at every try, and short enough for a seal. */
  readonly place: string;
  /** As printed commands name it. Default: by its place, which has no user. */
  readonly url?: string | undefined;
  readonly checkpointFile: CheckpointFile;
  /** It is not made yet, and `store` is an empty one in its place: nothing is known of its servers. Default false. */
  readonly isMissing?: boolean;
}

/** `store` and `checkpointFile` are those of the old store. */
export interface MoveOptions extends NamespaceGuardOptions {
  readonly target: MoveTarget;
  /** How many data nodes the target has. */
  readonly nodeCount: number;
  /** Names of findings of the target that the operator accepts. Default: none. */
  readonly overrides?: readonly string[];
  /** The operator has checked the clocks: a long heartbeat gap was only that. Default false. */
  readonly isClockChecked?: boolean;
  /** The id of the new store, which runs nowhere, as the operator knows: it is made again, or another one at another place. Default: none. */
  readonly lostStoreId?: string | undefined;
  /** Leases in one read and write. Default 500. */
  readonly pageLeaseCount?: number;
}

/**
 * What a move finds, and whether it is new, begun or done:
 *
 *   source open, target empty                         new
 *   source sealed for this target, target empty       begun: an earlier move was cut short
 *   source sealed for this target, target has record  done
 *   source sealed for another target, or it says      refused: the new store may run at another address. Begun, or done, once the operator
 *   that it is done, or may have gone back               knows that it runs nowhere
 *
 * A source that has forgotten its seal is sealed again, as long as a checkpoint of its store id has the move, and the target its record.
 */
export interface MovePlan {
  readonly namespace: string;
  readonly stage: "new" | "begun" | "done";
  /** The new store may have been made, and runs nowhere, as the operator has confirmed. */
  readonly isRemade: boolean;
  readonly source: NamespaceRecord;
  /** The id of the new store; decided once the source is sealed. */
  readonly storeId: string;
  /** The first version of the new store: above every one that the source can have reached. */
  readonly firstVersion: number;
  /** What the target holds of the namespace; undefined for no record. */
  readonly target: NamespaceRecord | undefined;
  /** Undefined when the move is done. */
  readonly ledger: LedgerComparison | undefined;
}

const PAGE_LEASE_COUNT = 500;

/**
 * Plans a move, and tests all that both stores would refuse it for. Changes nothing.
 * @throws TypeError for a place that no seal can name. CoordinatorError `namespace_moved` to another place, `store_forked`; `namespace_lost`;
 *   `run_space_exhausted` when no version is left; `namespace_exists` when the target's place keeps or kept another store;
 *   `store_id_mismatch` when it holds leases of one, or when the checkpoint is of another source; as a seal, by the source; as `recover`,
 *   by the target.
 */
export async function planMove(options: MoveOptions): Promise<MovePlan> {
  const { namespace, store, target, checkpointFile } = options;
  const known = checkpointFile.readable();
  const source = await readSource(store, namespace, known);
  if (known !== undefined && known.storeId !== source.storeId) throw refused("FOREIGN", source.storeId, namespace);
  if (source.phase === PHASES.sealed && !isMovedSeal(source.seal)) throw refused("FORKED", "0", namespace);
  const begun = moveBegun(source, checkpointFile.movesOf(source.storeId), options);
  assertClockIsChecked(source, options);
  const later = checkpointFile.laterStoresOf(source.storeId);
  const observed = await store.read(namespace);
  const storeId = storeIdOf(options, Math.max(source.changedAtMs, observed.server.timeMs), {
    source,
    known,
    begun,
    later,
  });
  if (!isMovedSeal(movedSeal({ storeId, place: target.place }))) {
    throw new TypeError(
      `the new store's address is too long to be kept in the old store's seal: ${target.place.slice(0, 60)}…`,
    );
  }
  const found = await ofTarget(target, recordIn(target.store, namespace));
  const checkpoint = target.checkpointFile.readable();
  // A source that has forgotten its seal, or may have gone back since, can't say whether the move was done.
  const isSure = begun === undefined || (textOfMove(source.seal) === begun.text && hasItsEpoch(observed));
  // No readable note of the move is left, but the store that it became; or that one was moved on.
  const another = later.find((each) => begun === undefined || isMovedFrom(begun.storeId, each.storeId));
  if (found === undefined && another !== undefined) throw movedOn(namespace, another.storeId);
  const mayBeDone = begun?.isElsewhere || isDoneSeal(source.seal) || !isSure || leasedIdOf(later, storeId) > 0;
  const isRemade = found === undefined && mayBeDone;
  const isRefused = isRemade && options.lostStoreId !== begun?.storeId;
  const at = { place: target.place, url: target.url, found, checkpoint };
  assertFree({ ...options, ...at, source, storeId, begun, mayBeDone: isRefused });
  if (found === undefined) assertNodeCount(checkpoint, storeId, options.nodeCount);
  if (begun === undefined) await assertNoCopy(store);
  else if (found === undefined) assertHasBegun(namespace, storeId, (options.now ?? Date.now)());
  const isDone = found !== undefined;
  const compared = await compareLedgers(ledgersOf(options), begun !== undefined);
  if (isDone) assertWhole(namespace, compared);
  const ledger = isDone ? undefined : compared;
  await assertFit(options, source, storeId, isDone);
  const { firstVersion } = storeIdFields(storeId);
  const stage = isDone ? "done" : begun === undefined ? "new" : "begun";
  return { namespace, stage, isRemade, source, storeId, firstVersion, target: found, ledger };
}

function ledgersOf({ namespace, store: source, target, pageLeaseCount = PAGE_LEASE_COUNT }: MoveOptions) {
  return { namespace, source, target: target.store, pageLeaseCount };
}

/** @throws CoordinatorError `namespace_lost` with the command that makes the record again, also for a move that was cut short. */
async function readSource(store: Store, namespace: string, known: Checkpoint | undefined): Promise<NamespaceRecord> {
  try {
    return await store.readNamespace(namespace);
  } catch (error) {
    if (known === undefined) throw error;
    const { movedTo: _, ...checkpoint } = known;
    throw asNamespaceLost(error, namespace, checkpoint);
  }
}

async function recordIn(store: Store, namespace: string): Promise<NamespaceRecord | undefined> {
  try {
    return await store.readNamespace(namespace);
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "namespace_not_found") return undefined;
    throw error;
  }
}

/** What a move did. */
export interface Moved {
  readonly namespace: string;
  /** Of the new store. */
  readonly storeId: string;
  /** Undefined when an earlier try had done it all. */
  readonly leaseCount: number | undefined;
  /** The target's record at the end. */
  readonly record: NamespaceRecord;
}

/**
 * Moves the namespace, or continues a move that was cut short.
 * @throws CoordinatorError as `planMove`, with both stores as they were. Once the source is sealed, nothing leases until the same move has succeeded.
 */
export async function moveNamespace(options: MoveOptions): Promise<Moved> {
  const { namespace, target } = options;
  const plan = await planMove(options);
  const { storeId, ledger } = plan;
  let leaseCount: number | undefined;
  await sealSource(options, plan);
  if (ledger !== undefined) {
    await copyLedger(ledgersOf(options), ledger.copiedUpTo);
    await copyRetention(ledgersOf(options));
    leaseCount = await verifyCopy(options);
    await sealDone(options, plan);
    await makeRecord(options, plan);
  }
  const record = await ofTarget(target, target.store.readNamespace(namespace));
  return { namespace, storeId, leaseCount, record };
}

/** @throws CoordinatorError for what each store would refuse now: after the source is sealed it is too late to find out. */
async function assertFit(
  options: MoveOptions,
  source: NamespaceRecord,
  storeId: string,
  isDone: boolean,
): Promise<void> {
  const { store, namespace, target, nodeCount, overrides = [] } = options;
  const isTargetKnown = !isDone && target.isMissing !== true;
  if (isTargetKnown) {
    const fit = assertFitFor({ store: target.store, overrides }, { namespace, nodeCount });
    await ofTarget(target, fit);
  }
  const refusals = [
    isDone && source.phase === PHASES.sealed
      ? undefined
      : refusalOfStep(store, namespace, sealing(options, source, storeId), options),
    isTargetKnown ? refusalOfStep(target.store, namespace, recovery(options, source, storeId), options) : undefined,
  ];
  const [atSource, atTarget] = await Promise.all(refusals);
  if (atSource !== undefined) await ofSource(namespace, Promise.reject(atSource));
  if (atTarget !== undefined) await ofTarget(target, Promise.reject(atTarget));
}

/**
 * Nothing of the target may be leased before this is done: the source may forget its seal, and its checkpoint then has the move. Where the new
 * store is there, the seal says so at once: one without it would let another move make it again.
 * @throws CoordinatorError as the step; `namespace_moved` when a copy of the source was moved elsewhere meanwhile.
 */
async function sealSource(options: MoveOptions, { source, storeId, stage, isRemade }: MovePlan): Promise<void> {
  const { store, namespace, checkpointFile } = options;
  const step = sealing(options, source, storeId, stage === "done" || isRemade);
  const movedTo = textOfMove(step.seal);
  const read = checkpointFile.readable();
  const known = read === undefined ? checkpointOf(source) : mergeCheckpoints(read, checkpointOf(source));
  // First, so that coordinators of the target know of it however early this process is killed.
  checkpointFile.note({ ...known, movesTo: movedTo });
  const isSealed = stage === "done" && source.seal === step.seal;
  const { after } = isSealed ? { after: source } : await ofSource(namespace, doStep(store, namespace, step, options));
  checkpointFile.note({ ...mergeCheckpoints(known, checkpointOf(after)), movedTo });
  // A copy of the source may have been moved meanwhile: of two that are noted, at least the later one sees both. What was given up is earlier.
  const others = checkpointFile.movesOf(source.storeId).filter((move) => move !== movedTo);
  const another = others.find((move) => !isMovedFrom(movedToIn(move)?.storeId ?? "", storeId));
  if (another !== undefined) throw refused("MOVED", another, namespace);
}

/** @throws CoordinatorError as the step; `namespace_moved` when another process has done it. */
async function sealDone(options: MoveOptions, { source, storeId, isRemade }: MovePlan): Promise<void> {
  // Where the new store is made again, the seal says so already, and must still be the same.
  const step = { ...sealing(options, source, storeId, true), makesStore: !isRemade };
  await ofSource(options.namespace, doStep(options.store, options.namespace, step, options));
}

function sealing(
  { target: { place }, checkpointFile }: MoveOptions,
  source: NamespaceRecord,
  storeId: string,
  isDone = false,
): SealStep {
  const first = movedSeal({ storeId, place });
  const seal = isDone ? doneSeal(first) : first;
  const floor = checkpointFile.readable()?.ledgerId ?? 0;
  const bounds = { isSilenceAccepted: false, floor, generationMin: 0 };
  const replaces = isMovedSeal(source.seal) ? source.seal : undefined;
  return { step: "seal", storeId: source.storeId, ...bounds, seal, replaces };
}

/** Returns how many leases there are. */
async function verifyCopy(options: MoveOptions): Promise<number> {
  const { leaseCount, copiedCount } = await compareLedgers(ledgersOf(options), true);
  if (copiedCount === leaseCount) return leaseCount;
  throw new CoordinatorError(
    "store_id_mismatch",
    `the new store holds ${copiedCount} of ${leaseCount} leases of namespace "${options.namespace}" after they were copied: another program ` +
      "writes there. It leases nothing. Stop that program, then run the same again",
  );
}

/**
 * At the ceiling, as a lost store is made again. The new store is noted before it is made: one that is missing later is then missed also by
 * who sees no more of the source than its first seal. @throws CoordinatorError `namespace_lost` when it was made elsewhere meanwhile.
 */
async function makeRecord(options: MoveOptions, { source, storeId, isRemade }: MovePlan): Promise<void> {
  const { namespace, target, nodeCount } = options;
  const { store, checkpointFile } = target;
  const isKnown = leasedIdOf(checkpointFile.laterStoresOf(source.storeId), storeId) > 0;
  if (isKnown && !isRemade) throw newStoreMissing(options, storeId, target);
  const { firstVersion, firstRun } = storeIdFields(storeId);
  checkpointFile.note({ storeId, ledgerId: ledgerIdOf(firstVersion, firstRun), generation: 0, nodeCount });
  const { after } = await ofTarget(target, doStep(store, namespace, recovery(options, source, storeId), options));
  checkpointFile.note(checkpointOf(after));
}

/** Above all that is known of a store of that id, at whatever address. */
function recovery({ nodeCount, checkpointFile }: MoveOptions, source: NamespaceRecord, storeId: string): RecoverStep {
  const proofKey = newProofKey();
  const floor = leasedIdOf(checkpointFile.laterStoresOf(source.storeId), storeId);
  return { step: "recover", storeId, isSilenceAccepted: false, floor, generationMin: 0, nodeCount, proofKey };
}
