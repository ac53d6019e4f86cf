/**
 * Recover: what an operator does when the store can't be believed any more, or is gone. First looks and plans, changes nothing;
 * then puts the record onto the clock line, above everything that was ever leased, and leaves the rest to a coordinator, which
 * claims, waits for the quorum and confirms, as after any doubt.
 */
import { randomBytes } from "node:crypto";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { type CommandOptions, commandLine } from "@callnumber/protocol/operator";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { DEFAULT_BOUNDS, SILENCE_MAX_MS } from "../guard/bounds.js";
import { ceilingAt, whenCeilingReaches } from "../guard/ceiling.js";
import { type Checkpoint, CORRUPT } from "../guard/checkpoint.js";
import { PHASES } from "../guard/record.js";
import { freshNonce, verifyOutcome } from "../guard/verify-outcome.js";
import type { NamespaceRecord, Outcome, Store } from "../store.js";
import { parseStoreId } from "../store-id.js";
import type { OperatorOptions } from "./move.js";

export interface RecoverOptions extends OperatorOptions {
  /** The store that is recovered, as the operator gave it for this recovery. Needed where neither the record nor a witness can tell. */
  readonly storeId: string | undefined;
  /** Ledger ids below or at which everything may be leased, with where each comes from, for people. */
  readonly floors: readonly Floor[];
  readonly nodeCount: number | undefined;
  /** The operator has looked at the clock: a long silence was only that. */
  readonly isClockChecked: boolean;
  /** How long to look whether somebody still leases, ms: more than twice `touchEveryMs`. */
  readonly watchMs: number;
  readonly pause: (pauseMs: number) => Promise<void>;
  /** The operator's command with further options, for messages. Default: one with the namespace alone. */
  readonly again?: (more: CommandOptions) => string;
}

/**
 * Looks at what is there, for `watchMs`, and says what `recoverNamespace` would do. Changes nothing.
 * @throws CoordinatorError `coordinator_still_leases`; `store_replaced` when record, witness and the given store id disagree;
 *   `namespace_not_initialised` when nothing tells which store it was.
 */
export async function planRecovery(options: RecoverOptions): Promise<RecoverPlan> {
  const { store, namespace, checkpointFile, now = Date.now, bounds = DEFAULT_BOUNDS, watchMs, pause } = options;
  const { again = (more) => commandLine("recover", namespace, more) } = options;
  const first = await found(store, namespace);
  await pause(watchMs);
  const second = await found(store, namespace);
  mustBeAtRest(first.record, second.record, again);
  const { record, fault } = second;
  const remembered = checkpointFile.read();
  const checkpoint = remembered === CORRUPT ? undefined : remembered;
  const storeId = theOneStoreId(namespace, record?.storeId, checkpoint?.storeId, options.storeId);
  const id = parseStoreId(storeId);
  if (id === undefined) throw new TypeError(`not a store id: ${JSON.stringify(storeId)}`);
  const firstLedgerId = ledgerIdOf(id.firstVersion, id.firstRun);
  const floors = [
    ...(firstLedgerId === 1 ? [] : [{ from: "the store id", ledgerId: firstLedgerId - 1 }]),
    ...(record === undefined
      ? []
      : [{ from: "the record", ledgerId: ledgerIdOf(record.version, record.highWaterMark) }]),
    ...(checkpoint === undefined ? [] : [{ from: "the witness", ledgerId: checkpoint.ledgerId }]),
    ...options.floors,
  ];
  const { version, run } = runOfLedgerId(idOf(greatestOf(floors)));
  const nowMs = now();
  // Whether a file is a copy, only the store that opened it knows.
  const findings = store.isExclusive ? await store.preflight() : [];
  const isSound =
    record?.phase === PHASES.open &&
    nowMs - record.changedAtMs <= SILENCE_MAX_MS &&
    idOf(greatestOf(floors)) === ledgerIdOf(record.version, record.highWaterMark) &&
    findings.every((finding) => finding.code === undefined);
  const target = ceilingAt(id, version, nowMs + 2 * bounds.epsMs);
  return {
    namespace,
    storeId,
    found: record,
    fault,
    checkpoint,
    floors,
    target,
    skippedRunCount: Math.max(target - run, 0),
    nextRunInMs: Math.max(whenCeilingReaches(id, version, target + 1) - nowMs, 0),
    isHealthy: isSound && remembered !== CORRUPT && (checkpoint?.generation ?? 0) <= (record?.generation ?? 0),
    possibleAtMs: run <= target ? null : whenCeilingReaches(id, version, run) - 2 * bounds.epsMs,
    nodeCount: options.nodeCount ?? record?.nodeCount ?? checkpoint?.nodeCount ?? 1,
    again,
  };
}

/**
 * Does what was planned.
 * @throws CoordinatorError all refusals of GUARD's confirm, `store_moved`, `store_replaced`, `quorum_missing`.
 */
export async function recoverNamespace(options: RecoverOptions, plan: RecoverPlan): Promise<Outcome> {
  const { store, namespace, checkpointFile, isClockChecked } = options;
  const command = {
    step: "recover",
    storeId: plan.storeId,
    nonce: freshNonce(),
    isSilenceAccepted: isClockChecked,
    floor: idOf(greatestOf(plan.floors)),
    generationMin: plan.checkpoint?.generation ?? 0,
    nodeCount: plan.nodeCount,
    receiptKey: randomBytes(32).toString("hex"),
  } as const;
  const outcome = await store.step(namespace, command).catch((error: unknown) => {
    // The store tells what stands in the way, and not where that was found, nor the way round it.
    const told = refusalOf(plan);
    throw told !== undefined && error instanceof CoordinatorError && error.code === told.code ? told : error;
  });
  verifyOutcome(outcome, command);
  const { storeId, version, highWaterMark, generation, nodeCount } = outcome.after;
  checkpointFile.note({ storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount });
  return outcome;
}

interface Found {
  readonly record: NamespaceRecord | undefined;
  readonly fault: CoordinatorError | undefined;
}

async function found(store: Store, namespace: string): Promise<Found> {
  try {
    return { record: await store.readNamespace(namespace), fault: undefined };
  } catch (error) {
    if (!(error instanceof CoordinatorError) || !RECOVERABLE.has(error.code)) throw error;
    return { record: undefined, fault: error };
  }
}

const RECOVERABLE: ReadonlySet<string> = new Set(["namespace_not_initialised", "store_corrupt"]);

function mustBeAtRest(
  before: NamespaceRecord | undefined,
  after: NamespaceRecord | undefined,
  again: RecoverPlan["again"],
): void {
  // Who only tries to settle a doubt changes the record, too, and leases nothing: its claim is void once this one is made.
  if (before === undefined || after?.phase !== PHASES.open) return;
  const hasMoved =
    before.changedAtMs !== after.changedAtMs ||
    before.highWaterMark !== after.highWaterMark ||
    before.generation !== after.generation;
  if (!hasMoved) return;
  throw new CoordinatorError(
    "coordinator_still_leases",
    `namespace "${after.namespace}" was not recovered: its record changed meanwhile, so a coordinator leases from it. If importers are ` +
      `refused all the same, stop every coordinator of the store, then run \`${again({})}\``,
  );
}

function theOneStoreId(
  namespace: string,
  recorded: string | undefined,
  checkpoint: string | undefined,
  given: string | undefined,
): string {
  const named = [recorded, checkpoint, given].filter((storeId) => storeId !== undefined);
  const [storeId, ...others] = new Set(named);
  if (storeId === undefined) {
    throw new CoordinatorError(
      "namespace_not_initialised",
      `neither the store nor the witness folder knows which store namespace "${namespace}" was. Give the id that was kept beside the ` +
        "archive: --store-id",
    );
  }
  if (others.length === 0) return storeId;
  throw new CoordinatorError(
    "store_replaced",
    `these are different stores: ${told("the record", recorded)}${told("the witness", checkpoint)}${told("--store-id", given)}` +
      `nothing was changed. Bring the right store back; or, when namespace "${namespace}" here is a stray one, remove it first`,
  );
}

function told(name: string, storeId: string | undefined): string {
  return storeId === undefined ? "" : `${name} says ${storeId}; `;
}

/** A run that is known to be leased, and where that is known from. */
export interface Floor {
  readonly from: string;
  readonly ledgerId: number;
}

/** What a recovery found, would set and would cost. */
export interface RecoverPlan {
  readonly namespace: string;
  readonly storeId: string;
  /** The record as found; undefined when it is gone or can't be read. */
  readonly found: NamespaceRecord | undefined;
  /** Why the record can't be read. */
  readonly fault: CoordinatorError | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly floors: readonly Floor[];
  /** Where the mark will be at least: the clock line a moment from now. */
  readonly target: number;
  /** Runs that will never be leased because of it, as far as can be told. */
  readonly skippedRunCount: number;
  /** How long after the recovery the next run is free, about, ms. */
  readonly nextRunInMs: number;
  /** Whether nothing was found that a recovery would fix, or that the next coordinator does not settle automatically. */
  readonly isHealthy: boolean;
  /** When the clock line will have passed everything that is known; null when it has: only then can it be done. */
  readonly possibleAtMs: number | null;
  readonly nodeCount: number;
  /** The command that made this plan, with further options. */
  readonly again: (more: CommandOptions) => string;
}

/** The floor above all others; undefined when there is none. */
export function greatestOf(floors: readonly Floor[]): Floor | undefined {
  return floors.reduce<Floor | undefined>(
    (one, other) => (one === undefined || other.ledgerId > one.ledgerId ? other : one),
    undefined,
  );
}

/** Its ledger id; 0 without one: nothing is known to be leased. */
export function idOf(floor: Floor | undefined): number {
  return floor?.ledgerId ?? 0;
}

/** The line of the version has ended, or something that is known lies above the line. Undefined when neither is so. */
export function refusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  return endRefusalOf(plan) ?? floorRefusalOf(plan);
}

function endRefusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  const { namespace, floors, target } = plan;
  if (target < RUN_MAX) return undefined;
  const { version } = runOfLedgerId(idOf(greatestOf(floors)));
  return new CoordinatorError(
    "run_space_exhausted",
    `the clock line of version ${version} has reached its end: no mark below it lies above everything that may have been leased. Nothing was ` +
      `changed in namespace "${namespace}". ${wayOnFrom(version, plan)}`,
  );
}

/** The verb steps from a record that it can read, and that is not sealed; else a floor says where to go on. */
function wayOnFrom(version: number, { namespace, found, again }: RecoverPlan): string {
  if (version >= VERSION_MAX) return "It is the last version: what comes next is another namespace, or another layout";
  const next = version + 1;
  const command =
    found !== undefined && found.phase !== PHASES.sealed
      ? commandLine("advance-version", namespace)
      : again({ floor: ledgerIdOf(next, 0) });
  return `Continue in version ${next}, above all that it may have leased: \`${command}\``;
}

function floorRefusalOf({
  namespace,
  storeId,
  floors,
  target,
  possibleAtMs,
}: RecoverPlan): CoordinatorError | undefined {
  const floor = greatestOf(floors);
  if (possibleAtMs === null || floor === undefined) return undefined;
  const { version, run } = runOfLedgerId(floor.ledgerId);
  const ofVersion = version === 0 ? "" : ` of version ${version}`;
  return new CoordinatorError(
    "operator_needed",
    `${floor.from} tells of run ${run}${ofVersion}, above the clock line of store id ${storeId}, which is at run ${target} now. No right clock ` +
      `leased it from that store. Nothing was changed in namespace "${namespace}". If a clock was ahead when it was leased, or is behind now: set ` +
      `the clocks right; with them as they are, recovering is possible from ${new Date(possibleAtMs).toISOString()} on. If it is a run of ` +
      "another store: recover that one",
  );
}
