/** The id of the new store of a move: none of the numbers that it leases can be one of the old store, or of a new one that was given up. */
import { nameOfLedgerId, runOfLedgerId } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import { BURST_RUNS, ceilingAt, firstRunOf, whenCeilingReaches } from "../guard/ceiling.js";
import { type Checkpoint, type LaterStore, leasedIdOf } from "../guard/checkpoint.js";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/clocks.js";
import type { NamespaceRecord } from "../guard/record.js";
import { movedToIn, nextStoreId, storeIdFields } from "../guard/store-id.js";
import type { BegunMove } from "./move-refusals.js";

/** What of a move its new id depends on. */
interface MoveClock {
  readonly target: { readonly place: string };
  readonly now?: () => number;
  readonly bounds?: Bounds;
}

/** What a move has found. */
interface Found {
  readonly source: NamespaceRecord;
  readonly known: Checkpoint | undefined;
  readonly begun: BegunMove | undefined;
  readonly later: readonly LaterStore[];
}

/** Returns the id that the new store gets, or has got. `seenMs`: the latest time that the source shows. */
export function storeIdOf(options: MoveClock, seenMs: number, { source, known, begun, later }: Found): string {
  if (begun === undefined) return newStoreOf(source, known, options);
  if (!begun.isElsewhere) return begun.storeId;
  const { now = Date.now, bounds = DEFAULT_BOUNDS } = options;
  const untilMs = Math.max(now(), seenMs) + 2 * bounds.epsMs;
  return storeElsewhere(begun.storeId, leasedIdOf(later, begun.storeId), now(), untilMs);
}

/**
 * Returns the id of a new store at another place: it begins above all that the lost one can have leased until then, by its run ceiling.
 * `leasedId`: the greatest ledger id that a checkpoint has of it. @throws CoordinatorError `run_space_exhausted`; `manual_recovery_required`
 *   where that is above the ceiling.
 */
function storeElsewhere(lost: string, leasedId: number, initializedAtMs: number, untilMs: number): string {
  const id = storeIdFields(lost);
  const { version: leasedVersion, run } = runOfLedgerId(leasedId);
  const possibleAtMs = leasedId === 0 ? 0 : whenCeilingReaches(id, leasedVersion, run);
  if (possibleAtMs > untilMs) {
    throw new CoordinatorError(
      "manual_recovery_required",
      `a checkpoint has run ${nameOfLedgerId(leasedId)} of store ${lost}, above its run ceiling: a clock was ahead, or this one is behind. ` +
        `Nothing was changed. Set the clocks right, or run the same after ${new Date(possibleAtMs).toISOString()}`,
    );
  }
  for (let version = id.firstVersion; version <= VERSION_MAX; version++) {
    const firstRun = Math.max(ceilingAt(id, version, untilMs), firstRunOf(id, version)) + 1;
    // Its own ceiling, at which its record is made, must be in the version, too.
    if (firstRun + 2 * BURST_RUNS < RUN_MAX) return nextStoreId(lost, version, initializedAtMs, firstRun);
  }
  throw new CoordinatorError(
    "run_space_exhausted",
    `no run is left above those of store ${lost}. Use another namespace`,
  );
}

/**
 * Returns the id of a new store, none of whose numbers can be one of the source's. That of an earlier try, where it may be used: its seal was
 * not acknowledged, and may still come to light on another server. @throws CoordinatorError `run_space_exhausted`.
 */
function newStoreOf(
  source: NamespaceRecord,
  known: Checkpoint | undefined,
  { now = Date.now, bounds = DEFAULT_BOUNDS, target }: MoveClock,
): string {
  const version = versionReached(source, known, Math.max(now(), source.changedAtMs) + 2 * bounds.epsMs);
  const tried = movedToIn(known?.movesTo ?? "");
  if (tried?.place === target.place) {
    const { firstVersion, initializedAtMs } = storeIdFields(tried.storeId);
    // One from a clock that was ahead would lease nothing until then.
    if (firstVersion > version && initializedAtMs <= now() + bounds.epsMs) return tried.storeId;
  }
  if (version < VERSION_MAX) return nextStoreId(source.storeId, version + 1, now());
  throw new CoordinatorError(
    "run_space_exhausted",
    `namespace "${source.namespace}" can't move: it may have reached version ${version}, the last, and a move takes the next one. Between ` +
      "Redis servers, replicate and promote instead: version and store id stay",
  );
}

/**
 * Returns the greatest version that the source can have leased from until then, whatever it has lost: it may have forgotten an `advance-version`,
 * which needs a run ceiling that has reached the end of a version. `atMs` is not before its last write: its clocks may have been ahead.
 */
function versionReached({ storeId, version }: NamespaceRecord, known: Checkpoint | undefined, atMs: number): number {
  let reached = Math.max(version, runOfLedgerId(known?.ledgerId ?? 0).version);
  while (reached < VERSION_MAX && whenCeilingReaches(storeIdFields(storeId), reached, RUN_MAX) <= atMs) reached++;
  return reached;
}
