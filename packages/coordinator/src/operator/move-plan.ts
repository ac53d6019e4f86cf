/**
 * What a move from one store to another finds, and whether it may begin, go on, or is done. Changes nothing.
 *
 *   source open, target empty                          nothing was done yet
 *   source sealed for this target, target unfinished   a move was cut short: it goes on
 *   source sealed for this target, target leases       it is done
 *
 * Everything else is refused: two stores that lease from one clock line lease the same runs.
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { isMovedSeal, movedSeal, PHASES, placeInSeal } from "../guard/record.js";
import { DAMAGED, type Remembrance, type Witness } from "../guard/witness.js";
import { refused } from "../refusals.js";
import type { NamespaceRecord, Store } from "../store.js";
import { compareLedgers } from "./ledger-copy.js";
import type { VerbOptions } from "./open-guard.js";

/** The store that the namespace moves to. */
interface MoveTarget {
  readonly store: Store;
  /** Where it is, without secrets, spelt the same at every try; it fits `movedSeal`. */
  readonly place: string;
  readonly witness: Witness;
}

/** `store` and `witness` are the old store's. */
export interface MoveOptions extends VerbOptions {
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
  /** What the target holds of the namespace; undefined for no record. */
  readonly target: NamespaceRecord | undefined;
  readonly leaseCount: number;
  /** How many of them the target holds already. */
  readonly copiedCount: number;
  /** Ledger id of the newest of those; 0 for none. */
  readonly copiedUpTo: number;
  /** What is remembered of the target's place: it kept this store before. */
  readonly remembered: Remembrance | undefined;
}

const PAGE_LEASE_COUNT = 500;

/**
 * Looks at both stores.
 * @throws TypeError for a place that no seal can name. CoordinatorError `store_moved` to another place,
 *   `store_forked` (the target is a copy of the source), `store_replaced` (it holds another store),
 *   `namespace_already_initialised` (its record was made by another hand).
 */
export async function planMove(options: MoveOptions): Promise<MovePlan> {
  const { namespace, store, target } = options;
  const { place } = target;
  if (!isMovedSeal(movedSeal(place))) {
    throw new TypeError(
      `the new store's address is too long to be kept in the old store's seal: ${place.slice(0, 60)}…`,
    );
  }
  const source = await store.readNamespace(namespace);
  mustBeMovable(source, place);
  const found = await recordIn(target.store, namespace);
  const remembered = rememberedAt(target);
  for (const storeId of [found?.storeId, remembered?.storeId]) {
    if (storeId !== undefined && storeId !== source.storeId) throw otherStore(namespace, target, storeId);
  }
  const stage = stageOf(source, found);
  if (stage === "new" && found !== undefined) throw twoCopies(namespace, target, found);
  const { hasMore, ...ledgers } = await compareLedgers(ledgersOf(options));
  if (hasMore && stage !== "done") throw beyondSource(namespace, target);
  if (found !== undefined && ledgers.copiedCount < ledgers.leaseCount) throw incomplete(namespace, target, ledgers);
  return { namespace, stage, source, target: found, ...ledgers, remembered };
}

export function ledgersOf({ namespace, store: source, target, pageLeaseCount = PAGE_LEASE_COUNT }: MoveOptions) {
  return { namespace, source, target: target.store, pageLeaseCount };
}

/** A lower bound for the target's record: ledger id of the greatest run that anybody knows of. */
export function floorOf({ source, remembered }: MovePlan): number {
  return Math.max(ledgerIdOf(source.version, source.highWaterMark), remembered?.ledgerId ?? 0);
}

function stageOf({ phase }: NamespaceRecord, found: NamespaceRecord | undefined): MovePlan["stage"] {
  if (phase !== PHASES.sealed) return "new";
  return found === undefined || found.phase === PHASES.claimed ? "begun" : "done";
}

function mustBeMovable({ namespace, phase, seal }: NamespaceRecord, place: string): void {
  if (phase !== PHASES.sealed || seal === movedSeal(place)) return;
  if (isMovedSeal(seal)) throw refused("MOVED", placeInSeal(seal), namespace);
  throw refused("FORKED", "0", namespace);
}

async function recordIn(store: Store, namespace: string): Promise<NamespaceRecord | undefined> {
  try {
    return await store.readNamespace(namespace);
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "namespace_not_initialised") return undefined;
    throw error;
  }
}

function rememberedAt({ witness }: MoveTarget): Remembrance | undefined {
  const remembered = witness.read();
  return remembered === DAMAGED ? undefined : remembered;
}

function otherStore(namespace: string, { place }: MoveTarget, storeId: string): CoordinatorError {
  return new CoordinatorError(
    "store_replaced",
    `namespace "${namespace}" at ${place} belongs to another store (${storeId}, as its record or the witness folder says). ` +
      "Nothing was changed. Move to an empty place, such as another ?prefix=",
  );
}

function twoCopies(namespace: string, { place }: MoveTarget, { phase }: NamespaceRecord): CoordinatorError {
  return new CoordinatorError(
    "store_forked",
    `${place} holds namespace "${namespace}" already, as the same store${phase === PHASES.open ? ", and leases from it" : ""}, while the old ` +
      "one was not moved there (or was restored since). Nothing was changed. If it is the same place by another name, there is " +
      "nothing to move. Otherwise two copies are alive: stop the one that should not be, for good",
  );
}

function incomplete(
  namespace: string,
  { place }: MoveTarget,
  { copiedCount, leaseCount }: Pick<MovePlan, "copiedCount" | "leaseCount">,
): CoordinatorError {
  return new CoordinatorError(
    "namespace_already_initialised",
    `${place} has a record of namespace "${namespace}", as the same store, but only ${copiedCount} of its ${leaseCount} leases: another hand ` +
      "made it there. Nothing was changed. Runs are leased from there all the same; what is missing can only be looked up in the old store",
  );
}

function beyondSource(namespace: string, { place }: MoveTarget): CoordinatorError {
  return new CoordinatorError(
    "store_replaced",
    `the ledger of namespace "${namespace}" at ${place} holds leases that the old store does not have: remains of another store, ` +
      "or the old store was restored. Nothing was changed. Move to an empty place, such as another ?prefix=",
  );
}
