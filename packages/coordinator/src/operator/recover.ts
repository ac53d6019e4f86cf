/**
 * Recover: what an operator does when a store may have rolled back and no coordinator can recover it, or when it is lost. The plan changes
 * nothing. The recovery writes the record at the run ceiling, above everything that was ever leased; the next coordinator claims, waits for the
 * quorum and confirms, as in every recovery.
 */
import {
  type CommandOptions,
  commandLine,
  ledgerIdOf,
  type NamedRun,
  nameOfLedgerId,
  runName,
  runOfLedgerId,
} from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import { ceilingAt, whenCeilingReaches } from "../guard/ceiling.js";
import { assertLatest, type Checkpoint, CORRUPT, checkpointOf, noteDone } from "../guard/checkpoint.js";
import { DEFAULT_BOUNDS, SILENCE_MAX_MS } from "../guard/clocks.js";
import type { Outcome } from "../guard/commands.js";
import { moveUnfinished } from "../guard/guard-state.js";
import { newProofKey } from "../guard/lease-proof.js";
import type { NamespaceGuardOptions } from "../guard/namespace-guard.js";
import { doStep, refusalOfStep } from "../guard/namespace-steps.js";
import { assertFitFor } from "../guard/preflight.js";
import { type NamespaceRecord, PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import { isMovedSeal, movedSeal, movedToIn, parseStoreId, textOfMove } from "../guard/store-id.js";
import { type Store } from "../stores/store.js";
import { type Floor, greatestOf, knownFloors, ledgerIdOfMinRun } from "./floors.js";
import { movedElsewhere } from "./move-refusals.js";

/** What a recovery found, would write and would cost. */
export interface RecoverPlan {
  readonly namespace: string;
  readonly storeId: string;
  /** The record as found; undefined when it is gone or can't be read. */
  readonly found: NamespaceRecord | undefined;
  /** Why the record can't be read. */
  readonly fault: CoordinatorError | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly floors: readonly Floor[];
  /** The version and the least high-water mark after it: the run ceiling a moment from now. */
  readonly version: number;
  readonly target: number;
  /** Runs that will never be leased because of it, as far as is known. */
  readonly skippedRunCount: number;
  /** About how long after the recovery the next run is free, ms. */
  readonly nextRunInMs: number;
  /** Whether nothing was found that a recovery would fix, or that the next coordinator does not recover automatically. */
  readonly isHealthy: boolean;
  /** When the run ceiling will have passed everything that is known, and recovering is possible; null when it has. */
  readonly possibleAtMs: number | null;
  /** There was no heartbeat for 30 days, and the operator has not confirmed the clock. */
  readonly isClockUnchecked: boolean;
  /** Where the store was moved to, as its seal has it: it leases nothing afterwards, either. */
  readonly movedTo: string | undefined;
  /** No coordinator recovers the record, and `advance-version` does not continue from it. */
  readonly needsOperator: boolean;
  readonly nodeCount: number;
  /** As the record has it, else the checkpoint; 1 where neither is. */
  readonly nodeCountBefore: number;
  /** The command that made this plan, with further options. */
  readonly again: (more: CommandOptions) => string;
}

export interface RecoverOptions extends NamespaceGuardOptions {
  /** The store that is recovered, as given by the operator. Needed where neither the record nor a checkpoint has it. */
  readonly storeId: string | undefined;
  /** Further runs that are known to be leased. */
  readonly floors: readonly Floor[];
  /** The same, as the operator named it. */
  readonly minRun?: NamedRun | undefined;
  readonly nodeCount: number | undefined;
  /** Names of findings that the operator accepts. Default: none. */
  readonly overrides?: readonly string[];
  /** The operator has checked the clocks: a long heartbeat gap was only that. */
  readonly isClockChecked: boolean;
  /** How long to watch whether a coordinator still leases, ms: more than twice `heartbeatEveryMs`. */
  readonly watchMs: number;
  readonly pause: (pauseMs: number) => Promise<void>;
  /** The operator's command with further options, for messages. Default: one with the namespace alone. */
  readonly again?: (more: CommandOptions) => string;
}

/**
 * Watches the record for `watchMs`, and plans what `recoverNamespace` would do. Changes nothing. More nodes than before are counted only where the
 * servers are configured for them (`quorum_missing`, `unexpected_replicas`).
 * @throws CoordinatorError `coordinator_still_running`; `namespace_moved` by a checkpoint, and where only a version of the new store is left; `store_id_mismatch` when record, checkpoint
 *   and the given store id differ; `namespace_not_found` when none of them has the store id; `store_corrupt` for a foreign ledger entry. RangeError for a `minRun` that lacks its version.
 */
export async function planRecovery(options: RecoverOptions): Promise<RecoverPlan> {
  const { store, namespace, checkpointFile, now = Date.now, bounds = DEFAULT_BOUNDS, watchMs, pause } = options;
  const { again = (more) => commandLine("recover", namespace, more), overrides = [] } = options;
  const first = await readIfReadable(store, namespace);
  await pause(watchMs);
  const second = await readIfReadable(store, namespace);
  assertAtRest(first.record, second.record, again);
  const { record, fault } = second;
  const read = checkpointFile.read();
  const checkpoint = checkpointFile.readable();
  // An operator who names the new store says that it runs nowhere: `move` may not know that.
  const isNamed = checkpointFile.movesHere().some(({ storeId: moved }) => moved === options.storeId);
  const unfinished =
    record === undefined && read === undefined && !isNamed ? moveUnfinished(namespace, checkpointFile) : undefined;
  if (unfinished !== undefined) throw unfinished;
  // One that is gone or can't be sealed may be made again, for a move that was cut short: no coordinator leases from it.
  const storeId = agreedStoreId(namespace, record?.storeId, checkpoint?.storeId, options.storeId);
  const sealed = record !== undefined && isMovedSeal(record.seal) ? [textOfMove(record.seal)] : [];
  const moves = [...checkpointFile.movesOf(storeId), ...sealed];
  const [movedTo] = moves;
  if (record !== undefined && movedTo !== undefined && (await canBeSealed(options, record)))
    throw refused("MOVED", movedTo, namespace);
  const id = parseStoreId(storeId);
  if (id === undefined) throw new TypeError(`not a store id: ${JSON.stringify(storeId)}`);
  const { ledgerMark } = (await store.read(namespace)).keys;
  const floors = [...knownFloors(namespace, id, { record, ledgerMark, checkpoint }), ...options.floors];
  const minRun = options.minRun && ledgerIdOfMinRun(options.minRun, record ?? checkpoint, floors);
  if (minRun !== undefined) floors.push({ from: "--min-run", ledgerId: minRun });
  const greatest = greatestOf(floors).ledgerId;
  const { version, run } = runOfLedgerId(greatest);
  const nowMs = now();
  // Only the store that opened a file knows whether it is a copy.
  const findings = store.isExclusive ? await store.preflight() : [];
  const isSilent = record !== undefined && nowMs - record.changedAtMs > SILENCE_MAX_MS;
  const needsOperator = record !== undefined && (await isStopped(options, record));
  const nodeCountBefore = record?.nodeCount ?? checkpoint?.nodeCount ?? 1;
  const nodeCount = options.nodeCount ?? nodeCountBefore;
  if (nodeCount > nodeCountBefore) await assertFitFor({ store, overrides }, { namespace, nodeCount });
  const isSound =
    record?.phase === PHASES.open &&
    !needsOperator &&
    nodeCount === record.nodeCount &&
    greatest === ledgerIdOf(record.version, record.highWaterMark) &&
    findings.every((finding) => finding.code === undefined);
  const target = ceilingAt(id, version, nowMs + 2 * bounds.epsMs);
  // From the first version of the new store on, a coordinator that knows of no move would lease its runs.
  const takenBy = moves.find((moved) => target >= RUN_MAX || version >= firstVersionOf(moved));
  if (takenBy !== undefined) throw movedElsewhere(namespace, takenBy);
  assertLatest(namespace, { storeId, version }, checkpointFile);
  return {
    namespace,
    storeId,
    found: record,
    fault,
    checkpoint,
    floors,
    version,
    target,
    skippedRunCount: Math.max(target - run, 0),
    nextRunInMs: Math.max(whenCeilingReaches(id, version, target + 1) - nowMs, 0),
    isHealthy: isSound && read !== CORRUPT && (checkpoint?.generation ?? 0) <= (record?.generation ?? 0),
    possibleAtMs: run <= target ? null : whenCeilingReaches(id, version, run) - 2 * bounds.epsMs,
    isClockUnchecked: isSilent && !options.isClockChecked,
    movedTo,
    needsOperator,
    nodeCount,
    nodeCountBefore,
    again,
  };
}

/** Whether no coordinator recovers the record, and `advance-version` can't go on from it. */
async function isStopped(
  { store, namespace, checkpointFile, ...clock }: RecoverOptions,
  { storeId, version }: NamespaceRecord,
): Promise<boolean> {
  const recoveredMin = checkpointFile.recoveredMin(storeId);
  const bounds = { isSilenceAccepted: false, floor: 0, generationMin: 0, recoveredMin };
  const refusal = await refusalOfStep(store, namespace, { step: "advance", storeId, version, ...bounds }, clock);
  return refusal !== undefined && STOPPED.has(refusal.code);
}

const STOPPED: ReadonlySet<string> = new Set(["manual_recovery_required", "store_forked"]);

/** Returns the version in which the new store of a move began. */
function firstVersionOf(movedTo: string): number {
  return parseStoreId(movedToIn(movedTo)?.storeId ?? "")?.firstVersion ?? 0;
}

/**
 * Does what was planned.
 * @throws CoordinatorError as a confirm step; `namespace_moved`, `store_id_mismatch`, `quorum_missing`.
 */
export async function recoverNamespace(options: RecoverOptions, plan: RecoverPlan): Promise<Outcome> {
  const { store, namespace, checkpointFile, isClockChecked } = options;
  const command = {
    step: "recover",
    storeId: plan.storeId,
    isSilenceAccepted: isClockChecked,
    floor: greatestOf(plan.floors).ledgerId,
    // Then it is at least what is noted of a node that the record does not count.
    generationMin: Math.max(plan.checkpoint?.generation ?? 0, checkpointFile.recoveredMin(plan.storeId) - 1),
    nodeCount: plan.nodeCount,
    proofKey: newProofKey(),
  } as const;
  const outcome = await doStep(store, namespace, command, options).catch((error: unknown) => {
    // The store knows neither where a run is known from, nor the way on.
    const refusal = refusalOf(plan);
    throw refusal !== undefined && error instanceof CoordinatorError && error.code === refusal.code ? refusal : error;
  });
  noteDone(checkpointFile, checkpointOf(outcome.after), `namespace "${namespace}" is recovered`);
  return outcome;
}

interface FoundRecord {
  readonly record: NamespaceRecord | undefined;
  readonly fault: CoordinatorError | undefined;
}

async function readIfReadable(store: Store, namespace: string): Promise<FoundRecord> {
  try {
    return { record: await store.readNamespace(namespace), fault: undefined };
  } catch (error) {
    if (!(error instanceof CoordinatorError) || !RECOVERABLE.has(error.code)) throw error;
    return { record: undefined, fault: error };
  }
}

/** Whether `move` would find the record and the other keys sound. */
async function canBeSealed(
  { store, namespace, ...clock }: RecoverOptions,
  { storeId }: NamespaceRecord,
): Promise<boolean> {
  const bounds = { isSilenceAccepted: false, floor: 0, generationMin: 0 };
  const seal = movedSeal({ storeId, place: "nowhere" });
  const refusal = await refusalOfStep(store, namespace, { step: "seal", storeId, ...bounds, seal }, clock);
  return refusal === undefined || !UNSEALABLE.has(refusal.code);
}

/** What a recovery ends for `move`. */
const UNSEALABLE: ReadonlySet<string> = new Set(["store_corrupt", "quorum_missing", "unexpected_replicas"]);

const RECOVERABLE: ReadonlySet<string> = new Set(["namespace_not_found", "store_corrupt"]);

function assertAtRest(
  before: NamespaceRecord | undefined,
  after: NamespaceRecord | undefined,
  again: RecoverPlan["again"],
): void {
  // A coordinator in a recovery changes the record, too, and leases nothing: its claim is void after this recovery.
  if (before === undefined || after?.phase !== PHASES.open) return;
  const hasMoved =
    before.changedAtMs !== after.changedAtMs ||
    before.highWaterMark !== after.highWaterMark ||
    before.generation !== after.generation;
  if (!hasMoved) return;
  throw new CoordinatorError(
    "coordinator_still_running",
    `namespace "${after.namespace}" was not recovered: a coordinator changed its record meanwhile. If importers are rejected, ` +
      `stop every coordinator of the store, then run \`${again({})}\``,
  );
}

function agreedStoreId(
  namespace: string,
  recorded: string | undefined,
  checkpoint: string | undefined,
  given: string | undefined,
): string {
  const named = [recorded, checkpoint, given].filter((storeId) => storeId !== undefined);
  const [storeId, ...others] = new Set(named);
  if (storeId === undefined) {
    throw new CoordinatorError(
      "namespace_not_found",
      `neither the store nor the checkpoint directory knows which store namespace "${namespace}" was. Pass the --checkpoint-dir of ` +
        "its coordinator, or the id that was kept with the archive: --store-id",
    );
  }
  if (others.length === 0) return storeId;
  throw new CoordinatorError(
    "store_id_mismatch",
    `these are different stores: ${sourceOf("the record", recorded)}${sourceOf("the checkpoint", checkpoint)}${sourceOf("--store-id", given)}` +
      `nothing was changed. Bring the right store back; or, when namespace "${namespace}" here is a stray one, remove it first`,
  );
}

function sourceOf(name: string, storeId: string | undefined): string {
  return storeId === undefined ? "" : `${name} has ${storeId}; `;
}

/** Returns what an operator does with a store that was moved, once it is recovered; undefined for one that was not. */
export function wayOfMoved({ namespace, movedTo }: RecoverPlan): string | undefined {
  return movedTo === undefined ? undefined : refused("MOVED", movedTo, namespace).message;
}

/** Returns why a plan can't be carried out at the run ceiling of now, and what the operator does then; undefined when it can. */
export function refusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  const { namespace, storeId, floors, version, target, possibleAtMs } = plan;
  const { from, ledgerId } = greatestOf(floors);
  if (plan.isClockUnchecked) return refused("OPERATOR", "silence", namespace);
  if (target >= RUN_MAX) {
    return new CoordinatorError(
      "run_space_exhausted",
      `the run ceiling of version ${version} is at its end, so no mark is above all that may have been leased. Nothing was ` +
        `changed in namespace "${namespace}". ${wayOnFrom(version, plan)}`,
    );
  }
  if (possibleAtMs === null) return undefined;
  const ceiling = target < 1 ? `no run of version ${version} yet` : `run ${runName(version, target)}`;
  return new CoordinatorError(
    "manual_recovery_required",
    `${from} has run ${nameOfLedgerId(ledgerId)}, above the run ceiling (${ceiling}, store id ${storeId}): a clock was ahead, or it is another ` +
      `store's. Set the clocks right, recover that store, or recover this one after ${new Date(possibleAtMs).toISOString()}`,
  );
}

/** `advance-version` needs a record that it can read and continue from; else a floor shows where to continue. */
function wayOnFrom(version: number, { namespace, found, needsOperator, again }: RecoverPlan): string {
  if (version >= VERSION_MAX) return "It is the last version: use another namespace";
  const next = version + 1;
  const command =
    found !== undefined && !needsOperator
      ? commandLine("advance-version", namespace)
      : again({ "min-run": runName(next, 0) });
  return `Continue in version ${next}, above all that it may have leased: \`${command}\``;
}
