/**
 * Move: a namespace continues in another store, as a store of its own with the next version of the call numbers. No number that the old store
 * leases after that, even after it lost the move, is a number of the new one (docs/adr/0013). The same command continues wherever it
 * was killed, because it works in this order:
 *
 *   1 the source is sealed, with the new place and store id, and the quorum has the seal: the ledger is complete
 *   2 the ledger is copied, and compared, into a place without a record; so is the retention, with how far it was trimmed
 *   3 the target's record is made at the ceiling of the new store, to be claimed by a coordinator
 *
 * Guarantees: G13 (docs/guarantees.md).
 */
import { randomBytes } from "node:crypto";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import { whenCeilingReaches } from "../guard/ceiling.js";
import { type CheckpointFile, CORRUPT, checkpointOf } from "../guard/checkpoint.js";
import { NamespaceGuard, type NamespaceGuardOptions } from "../guard/namespace-guard.js";
import { PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import { isMovedSeal, type MovedTo, movedSeal, movedToIn, textOfMove } from "../guard/seals.js";
import { nextStoreId, parseStoreId } from "../guard/store-id.js";
import { doStep } from "../guard/verify-outcome.js";
import type { NamespaceRecord, RecoverStep, Store } from "../stores/store.js";
import { compareLedgers, copyLedger, copyRetention, type LedgerComparison } from "./ledger-copy.js";

/** The store that the namespace moves to. */
interface MoveTarget {
  readonly store: Store;
  /** Where it is, without secrets: the same text at every try, and short enough for a seal. */
  readonly place: string;
  readonly checkpointFile: CheckpointFile;
}

/** `store` and `checkpointFile` are those of the old store. */
export interface MoveOptions extends NamespaceGuardOptions {
  readonly target: MoveTarget;
  /** How many data nodes the target has. */
  readonly nodeCount: number;
  /** Leases in one read and write. Default 500. */
  readonly pageLeaseCount?: number;
}

/**
 * What a move finds, and whether it is new, begun or done:
 *
 *   source open, target empty                         new
 *   source sealed for this target, target empty       begun: an earlier move was cut short
 *   source sealed for this target, target has record  done
 */
export interface MovePlan {
  readonly namespace: string;
  readonly stage: "new" | "begun" | "done";
  readonly source: NamespaceRecord;
  /** The id of the new store; decided once the source is sealed. */
  readonly storeId: string;
  /** What the target holds of the namespace; undefined for no record. */
  readonly target: NamespaceRecord | undefined;
  /** Undefined when the move is done. */
  readonly ledger: LedgerComparison | undefined;
}

const PAGE_LEASE_COUNT = 500;

/**
 * Plans a move. Changes nothing.
 * @throws TypeError for a place that no seal can name. CoordinatorError `namespace_moved` to another place, `store_forked`;
 *   `run_space_exhausted` in the last version, or when the run ceiling of the version has reached its end;
 *   `namespace_exists` when the target's place keeps or kept another store; `store_id_mismatch` when it holds leases of one.
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
  assertFree(options, storeId, found);
  if (found !== undefined) return { namespace, stage: "done", source, storeId, target: found, ledger: undefined };
  const ledger = await compareLedgers(ledgersOf(options));
  const stage = source.phase === PHASES.sealed ? "begun" : "new";
  return { namespace, stage, source, storeId, target: undefined, ledger };
}

function ledgersOf({ namespace, store: source, target, pageLeaseCount = PAGE_LEASE_COUNT }: MoveOptions) {
  return { namespace, source, target: target.store, pageLeaseCount };
}

/** Returns what the seal has; without one a new store in the next version, none of whose numbers can be one of the source's. */
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
  const cannotMove = (why: string) =>
    new CoordinatorError("run_space_exhausted", `namespace "${namespace}" can't move: ${why}`);
  if (version >= VERSION_MAX) {
    throw cannotMove(
      `version ${version} is the last, and a move takes the next one. Between Redis servers, replicate and promote instead: version and ` +
        "store id stay",
    );
  }
  const id = parseStoreId(storeId);
  // A source that lost an `advance-version` has leased from the next version already, and a move would begin that version again. This is
  // possible only after the ceiling of this version has reached its end.
  if (id === undefined || whenCeilingReaches(id, version, RUN_MAX) <= now() + 2 * bounds.epsMs) {
    throw cannotMove(
      `the run ceiling of version ${version} has reached its end, so version ${version + 1} may be in use. Run ` +
        `\`${commandLine("advance-version", namespace)}\` first`,
    );
  }
  return { storeId: nextStoreId(storeId, version + 1, now()), place };
}

/** Coordinators at the target's place would reject any other store than the one in its record or in their checkpoints. */
function assertFree({ namespace, target }: MoveOptions, storeId: string, found: NamespaceRecord | undefined): void {
  const checkpoint = target.checkpointFile.read();
  const known = found?.storeId ?? (checkpoint === CORRUPT ? undefined : checkpoint?.storeId);
  if (known === undefined || known === storeId) return;
  const kept =
    found === undefined
      ? `the checkpoint directory remembers store ${known} there`
      : `it holds store ${known}${isMovedSeal(found.seal) ? ", which was moved away" : ""}`;
  throw new CoordinatorError(
    "namespace_exists",
    `namespace "${namespace}" can't move to ${target.place}: ${kept}. Move to an empty place: another file or "?prefix="`,
  );
}

async function recordIn(store: Store, namespace: string): Promise<NamespaceRecord | undefined> {
  try {
    return await store.readNamespace(namespace);
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "namespace_not_found") return undefined;
    throw error;
  }
}

export interface Moved {
  readonly namespace: string;
  /** Of the new store. */
  readonly storeId: string;
  /** Undefined when an earlier try had done it all. */
  readonly leaseCount: number | undefined;
  /** The target's record at the end. */
  readonly record: NamespaceRecord;
}

/** Above every run ceiling. */
const ABOVE_EVERY_CEILING = ledgerIdOf(VERSION_MAX, RUN_MAX);

/**
 * Moves the namespace, or continues a move that was cut short.
 * @throws CoordinatorError as `planMove`; as a lease, by the source, which is not sealed then; as `recover`, by the target. Once the source is sealed, nothing leases until the same move has succeeded.
 */
export async function moveNamespace(options: MoveOptions): Promise<Moved> {
  const { namespace, target } = options;
  const { storeId, ledger } = await planMove(options);
  let leaseCount: number | undefined;
  if (ledger !== undefined) {
    await assertTargetIsFit(options, storeId);
    await sealSource(options, storeId);
    await copyLedger(ledgersOf(options), ledger.copiedUpTo);
    await copyRetention(ledgersOf(options), storeId);
    leaseCount = await verifyCopy(options);
    await makeRecord(options, storeId);
  }
  return { namespace, storeId, leaseCount, record: await target.store.readNamespace(namespace) };
}

/**
 * Tests with a recovery that can't succeed whether the target would refuse for another reason (a replica, too many nodes, clock skew): after
 * the source is sealed it is too late to find out.
 */
async function assertTargetIsFit(options: MoveOptions, storeId: string): Promise<void> {
  try {
    await doStep(options.target.store, options.namespace, recovery(options, storeId, ABOVE_EVERY_CEILING));
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "manual_recovery_required") return;
    throw error;
  }
  throw new Error("broken invariant: a record was made above the run ceiling");
}

async function sealSource(options: MoveOptions, storeId: string): Promise<void> {
  const guard = await NamespaceGuard.open(options);
  try {
    await guard.seal(movedSeal({ storeId, place: options.target.place }));
  } finally {
    guard.close();
  }
}

/** Returns how many leases there are. */
async function verifyCopy(options: MoveOptions): Promise<number> {
  const { leaseCount, copiedCount } = await compareLedgers(ledgersOf(options));
  if (copiedCount === leaseCount) return leaseCount;
  throw new CoordinatorError(
    "store_id_mismatch",
    `the new store holds ${copiedCount} of ${leaseCount} leases of namespace "${options.namespace}" after they were copied: another program ` +
      "writes there. It leases nothing. Stop that program, then run the same again",
  );
}

/** At the ceiling, in case the target had leased and then lost its record: nothing that it may have leased is above. */
async function makeRecord(options: MoveOptions, storeId: string): Promise<void> {
  const { namespace, target } = options;
  const { after } = await doStep(target.store, namespace, recovery(options, storeId, 0));
  target.checkpointFile.note(checkpointOf(after));
}

function recovery({ nodeCount }: MoveOptions, storeId: string, floor: number): Omit<RecoverStep, "nonce"> {
  return {
    step: "recover",
    storeId,
    isSilenceAccepted: false,
    floor,
    generationMin: 0,
    nodeCount,
    proofKey: randomBytes(32).toString("hex"),
  };
}
