/**
 * What a move from one store to another finds, and whether it may begin, go on, or is done. Changes nothing.
 *
 *   source open, target empty                         nothing was done yet
 *   source sealed for this target, target empty       a move was cut short: it goes on
 *   source sealed for this target, target has record  it is done
 *
 * Guarantees: G13 (docs/guarantees.md).
 */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import { CoordinatorError } from "../errors.js";
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import { whenLineReaches } from "../guard/line.js";
import { isMovedSeal, type MovedTo, movedSeal, movedToIn, textOfMove } from "../guard/moved-seal.js";
import { PHASES } from "../guard/record.js";
import { DAMAGED, type Witness } from "../guard/checkpoint.js";
import { refused } from "../guard/refusals.js";
import type { NamespaceRecord, Store } from "../store.js";
import { nextStoreId, parseStoreId } from "../store-id.js";
import { compareLedgers, type LedgerComparison } from "./ledger-copy.js";
import type { VerbOptions } from "./open-guard.js";

/** The store that the namespace moves to. */
interface MoveTarget {
  readonly store: Store;
  /** Where it is, without secrets, the same text at every try; it fits in a seal. */
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
  if (id === undefined || whenLineReaches(id, version, RUN_MAX) <= now() + 2 * bounds.epsMs) {
    throw versionEnded(namespace, version);
  }
  return { storeId: nextStoreId(storeId, version + 1, now()), place };
}

/** Coordinators at the place would refuse another store than the one in its record or in their witness folder. */
function mustBeFree({ namespace, target }: MoveOptions, storeId: string, found: NamespaceRecord | undefined): void {
  const remembered = target.witness.read();
  const known = found?.storeId ?? (remembered === DAMAGED ? undefined : remembered?.storeId);
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
