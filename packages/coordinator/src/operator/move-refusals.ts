/** Why a move is refused for what its stores hold, and what the operator does then. */
import { commandLine, STORE_URL, shellWord } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import { whenCeilingReaches } from "../guard/ceiling.js";
import type { Checkpoint } from "../guard/checkpoint.js";
import { SILENCE_MAX_MS } from "../guard/clocks.js";
import { STRAY_HELP } from "../guard/guard-state.js";
import type { NamespaceRecord } from "../guard/record.js";
import { refused, runCommand } from "../guard/refusals.js";
import {
  isMovedFrom,
  isMovedSeal,
  latestFirst,
  type MovedTo,
  movedToIn,
  storeIdFields,
  textOfMove,
  urlOfPlace,
} from "../guard/store-id.js";
import type { Store } from "../stores/store.js";
import { formatDuration } from "../text.js";
import { LEDGER_LEFT, type LedgerComparison } from "./ledger-copy.js";

/** What the command for a refused `move` keeps of the one that was typed. */
export interface TypedMove {
  readonly namespace: string;
  readonly nodeCount: number;
  readonly overrides?: readonly string[];
}

/** Where a namespace moves to. `url`: as commands name it, if not by its place. */
interface NamedPlace {
  readonly place: string;
  readonly url?: string | undefined;
}

function commandUrlOf({ place, url = urlOfPlace(place) }: NamedPlace): string {
  return url;
}

/** The command for an operator who knows that the new store runs nowhere. */
function confirming({ namespace, nodeCount, overrides = [] }: TypedMove, lostStoreId: string, to: string): string {
  const nodes = nodeCount === 1 ? {} : { nodes: nodeCount };
  const ignored = overrides.length === 0 ? {} : { "ignore-findings": overrides.join(",") };
  return commandLine("move", namespace, { to, ...nodes, ...ignored, "confirm-loss": lostStoreId, apply: true });
}

const IF_LOST = "runs nowhere, was not moved on, and no other move is running";

/** A move that has begun. */
export interface BegunMove extends MovedTo {
  /** As the seal has it. */
  readonly text: string;
  /** It has begun for another place than this one. */
  readonly isElsewhere: boolean;
}

/**
 * Returns the latest move that the seal of the source and the checkpoints have, undefined for none.
 * @throws CoordinatorError `namespace_moved` to another place, unless the operator knows that this new store runs nowhere.
 */
export function moveBegun(
  { storeId: from, seal }: NamespaceRecord,
  noted: readonly string[],
  options: TypedMove & { readonly target: NamedPlace; readonly lostStoreId?: string | undefined },
): BegunMove | undefined {
  const { namespace, target } = options;
  const [text] = latestFirst([...noted, ...(isMovedSeal(seal) ? [textOfMove(seal)] : [])]);
  const move = movedToIn(text ?? "");
  const { lostStoreId = "" } = options;
  // Nothing else may be left that shows the store which the operator names.
  if (isMovedFrom(move?.storeId ?? from, lostStoreId))
    return { storeId: lostStoreId, place: "", text: "", isElsewhere: true };
  if (text === undefined) return undefined;
  if (move === undefined) throw refused("MOVED", text, namespace);
  const isElsewhere = move.place !== target.place;
  if (!isElsewhere || lostStoreId === move.storeId) return { ...move, text, isElsewhere };
  const { code, message } = refused("MOVED", text, namespace);
  const again = confirming(options, move.storeId, commandUrlOf(target));
  throw new CoordinatorError(code, `${message}. Only if that store ${IF_LOST}, take this place: \`${again}\``, {
    movedTo: text,
  });
}

/** The place that a namespace moves to, and what is known of it. */
interface TargetPlace extends TypedMove, NamedPlace {
  readonly source: NamespaceRecord;
  /** The id of the new store. */
  readonly storeId: string;
  readonly found: NamespaceRecord | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly begun: MovedTo | undefined;
  /** The new store may have been made by an earlier try. */
  readonly mayBeDone: boolean;
}

/**
 * Coordinators at the target's place would reject any other store than the one in its record or in their checkpoints. A new store that has a
 * checkpoint there, but no record, or may have been made, may run elsewhere: made again, it would run twice.
 * @throws CoordinatorError `namespace_exists`, `namespace_lost`; `namespace_moved` when it is there, and the source has forgotten that.
 */
export function assertFree(target: TargetPlace): void {
  const { namespace, source, storeId, place, found, checkpoint, begun, mayBeDone } = target;
  if (found === undefined && mayBeDone) throw newStoreMissing(target, begun?.storeId ?? storeId, target);
  const known = found?.storeId ?? checkpoint?.storeId;
  if (known === undefined || known === storeId) return;
  if (isMovedFrom(source.storeId, known) && (begun === undefined || !isMovedFrom(known, begun.storeId))) {
    const serve = `callnumber serve --store ${shellWord(urlOfPlace(place))}`;
    const text = `namespace "${namespace}" was moved to ${place} before, as store ${known}, and the old store forgot that. Nothing was changed`;
    throw new CoordinatorError("namespace_moved", `${text}. To lease there, run \`${serve}\``, {
      movedTo: `${known}@${place}`,
    });
  }
  const kept =
    found === undefined
      ? `the checkpoint directory remembers store ${known} there`
      : `it holds store ${known}${isMovedSeal(found.seal) ? ", which was moved away" : ""}`;
  const way = begun
    ? `The move goes nowhere else now. If no archive has numbers of that store, remove it (${STRAY_HELP}), then run the same again. ` +
      `Else continue in an empty place: \`${confirming(target, begun.storeId, "NEW_STORE_URL")}\``
    : 'Move to an empty place: another file, "?prefix=" or "?schema="';
  throw new CoordinatorError("namespace_exists", `namespace "${namespace}" can't move to ${place}: ${kept}. ${way}`);
}

/** The error for a new store that may have been made, and that is not at its place. */
export function newStoreMissing(move: TypedMove, storeId: string, target: NamedPlace): CoordinatorError {
  return new CoordinatorError(
    "namespace_lost",
    `namespace "${move.namespace}" may be in a new store at ${target.place} already, and is not there. If that store runs under another address, start ` +
      `it there: made again, it would repeat numbers. Only if it ${IF_LOST}, run \`${confirming(move, storeId, commandUrlOf(target))}\``,
  );
}

/** A new store that is made by a clock years ahead would lease nothing with the right one. @throws CoordinatorError `manual_recovery_required`. */
export function assertClockIsChecked(
  { namespace, changedAtMs }: NamespaceRecord,
  {
    now = Date.now,
    isClockChecked = false,
  }: { readonly now?: (() => number) | undefined; readonly isClockChecked?: boolean },
): void {
  const silentMs = now() - changedAtMs;
  if (isClockChecked || silentMs <= SILENCE_MAX_MS) return;
  throw new CoordinatorError(
    "manual_recovery_required",
    `the last write of namespace "${namespace}" was ${formatDuration(silentMs)} ago: it was stopped, or a clock leapt. Nothing was moved. Check ` +
      "the clock, then run the same with --confirm-clock",
  );
}

/** A copy is moved only where the move has begun: from then on it leases nothing, whichever file it is. @throws CoordinatorError `store_copied`. */
export async function assertNoCopy(source: Store): Promise<void> {
  // Only the store that opened a file knows.
  const findings = source.isExclusive ? await source.preflight() : [];
  for (const { code, what } of findings) if (code === "store_copied") throw new CoordinatorError(code, what);
}

/**
 * A store that is made by a clock that was ahead leases nothing until then, and can't be made before.
 * @throws CoordinatorError `manual_recovery_required`.
 */
export function assertHasBegun(namespace: string, storeId: string, nowMs: number): void {
  const id = storeIdFields(storeId);
  const freeAtMs = whenCeilingReaches(id, id.firstVersion, id.firstRun);
  if (freeAtMs <= nowMs) return;
  throw new CoordinatorError(
    "manual_recovery_required",
    `namespace "${namespace}" can't go on as store ${storeId} yet: an earlier try was made by a clock that was ahead. Set the clocks right. With ` +
      `them as they are, run the same again after ${new Date(freeAtMs).toISOString()}`,
  );
}

/** A kill may have left the note of the new store without its record. @throws RangeError for another number of nodes than it was to have. */
export function assertNodeCount(checkpoint: Checkpoint | undefined, storeId: string, nodeCount: number): void {
  if (checkpoint?.storeId !== storeId || checkpoint.nodeCount === nodeCount) return;
  throw new RangeError(
    `the new store was to have ${checkpoint.nodeCount} data nodes: pass --nodes ${checkpoint.nodeCount}`,
  );
}

/** Makes the commands of an error of the target name the target. */
export async function ofTarget<T>(target: NamedPlace, result: Promise<T>): Promise<T> {
  return await result.catch((error: unknown) => {
    if (!(error instanceof CoordinatorError)) throw error;
    const { code, reason, message } = error;
    const named = message.replaceAll(`--store ${STORE_URL}`, `--store ${shellWord(commandUrlOf(target))}`);
    throw new CoordinatorError(code, named, { cause: error, reason });
  });
}

/** Makes the way out of a source that lacks other nodes name the source: `--nodes` of `move` counts those of the new store. */
export async function ofSource<T>(namespace: string, result: Promise<T>): Promise<T> {
  return await result.catch((error: unknown) => {
    const { code, message } = error as CoordinatorError;
    const [circular, nodes] = /pass --nodes (\d+)/.exec(message) ?? [];
    if (code !== "quorum_missing" || circular === undefined) throw error;
    const recover = runCommand("recover", namespace, { nodes, apply: true });
    throw new CoordinatorError(code, `in the old store, ${message.replace(circular, `first ${recover}`)}`, {
      cause: error,
    });
  });
}

/** @throws CoordinatorError `store_id_mismatch` when the new store of a move that is done lacks leases of the old one. */
export function assertWhole(namespace: string, { leaseCount, copiedCount }: LedgerComparison): void {
  if (copiedCount === leaseCount) return;
  throw new CoordinatorError(
    "store_id_mismatch",
    `namespace "${namespace}" was moved, but the new store has ${copiedCount} of ${leaseCount} leases. ${LEDGER_LEFT}`,
  );
}

/** The error for a store that was moved, with what to do when that place is lost and the old store can't be moved. */
export function movedElsewhere(namespace: string, text: string): CoordinatorError {
  const error = refused("MOVED", text, namespace);
  const moved = movedToIn(text);
  if (moved === undefined) return error;
  return new CoordinatorError(
    error.code,
    `${error.message}. If that place is lost permanently, and this id runs nowhere and was not moved on, continue in an empty place: ` +
      `\`${commandLine("recover", namespace, { store: "NEW_STORE_URL", "store-id": moved.storeId })}\``,
    { movedTo: text },
  );
}
