/**
 * Recover: what an operator does when the store can't be believed any more, or is gone. First looks and plans, changes nothing;
 * then puts the record onto the clock line, above everything that was ever leased, and leaves the rest to a coordinator, which
 * claims, waits for the quorum and confirms, as after any doubt.
 */
import { randomBytes } from "node:crypto";
import { type CommandOptions, commandLine } from "@callnumber/protocol/operator";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { freshNonce } from "../fresh-nonce.js";
import { DEFAULT_BOUNDS, SILENCE_MAX_MS } from "../guard/bounds.js";
import { mustCount } from "../guard/verify-outcome.js";
import { lineAt, whenLineReaches } from "../guard/line.js";
import { PHASES } from "../guard/record.js";
import { DAMAGED } from "../guard/checkpoint.js";
import type { NamespaceRecord, Outcome, Store } from "../store.js";
import { parseStoreId } from "../store-id.js";
import type { VerbOptions } from "./open-guard.js";
import { type Floor, greatestOf, idOf, type RecoverPlan } from "./recover-plan.js";
import { refusalOf } from "./recover-refusals.js";

export interface RecoverOptions extends VerbOptions {
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
  const { store, namespace, witness, now = Date.now, bounds = DEFAULT_BOUNDS, watchMs, pause } = options;
  const { again = (more) => commandLine("recover", namespace, more) } = options;
  const first = await found(store, namespace);
  await pause(watchMs);
  const second = await found(store, namespace);
  mustBeAtRest(first.record, second.record, again);
  const { record, fault } = second;
  const remembered = witness.read();
  const witnessed = remembered === DAMAGED ? undefined : remembered;
  const storeId = theOneStoreId(namespace, record?.storeId, witnessed?.storeId, options.storeId);
  const id = parseStoreId(storeId);
  if (id === undefined) throw new TypeError(`not a store id: ${JSON.stringify(storeId)}`);
  const firstLedgerId = ledgerIdOf(id.firstVersion, id.firstRun);
  const floors = [
    ...(firstLedgerId === 1 ? [] : [{ from: "the store id", ledgerId: firstLedgerId - 1 }]),
    ...(record === undefined
      ? []
      : [{ from: "the record", ledgerId: ledgerIdOf(record.version, record.highWaterMark) }]),
    ...(witnessed === undefined ? [] : [{ from: "the witness", ledgerId: witnessed.ledgerId }]),
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
  const target = lineAt(id, version, nowMs + 2 * bounds.epsMs);
  return {
    namespace,
    storeId,
    found: record,
    fault,
    witnessed,
    floors,
    target,
    skippedRunCount: Math.max(target - run, 0),
    nextRunInMs: Math.max(whenLineReaches(id, version, target + 1) - nowMs, 0),
    isHealthy: isSound && remembered !== DAMAGED && (witnessed?.generation ?? 0) <= (record?.generation ?? 0),
    possibleAtMs: run <= target ? null : whenLineReaches(id, version, run) - 2 * bounds.epsMs,
    nodeCount: options.nodeCount ?? record?.nodeCount ?? witnessed?.nodeCount ?? 1,
    again,
  };
}

/**
 * Does what was planned.
 * @throws CoordinatorError all refusals of GUARD's confirm, `store_moved`, `store_replaced`, `quorum_missing`.
 */
export async function recoverNamespace(options: RecoverOptions, plan: RecoverPlan): Promise<Outcome> {
  const { store, namespace, witness, isClockChecked } = options;
  const command = {
    step: "recover",
    storeId: plan.storeId,
    nonce: freshNonce(),
    isSilenceAccepted: isClockChecked,
    floor: idOf(greatestOf(plan.floors)),
    generationMin: plan.witnessed?.generation ?? 0,
    nodeCount: plan.nodeCount,
    receiptKey: randomBytes(32).toString("hex"),
  } as const;
  const outcome = await store.step(namespace, command).catch((error: unknown) => {
    // The store tells what stands in the way, and not where that was found, nor the way round it.
    const told = refusalOf(plan);
    throw told !== undefined && error instanceof CoordinatorError && error.code === told.code ? told : error;
  });
  mustCount(outcome, command);
  const { storeId, version, highWaterMark, generation, nodeCount } = outcome.after;
  witness.note({ storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount });
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
  witnessed: string | undefined,
  given: string | undefined,
): string {
  const named = [recorded, witnessed, given].filter((storeId) => storeId !== undefined);
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
    `these are different stores: ${told("the record", recorded)}${told("the witness", witnessed)}${told("--store-id", given)}` +
      `nothing was changed. Bring the right store back; or, when namespace "${namespace}" here is a stray one, remove it first`,
  );
}

function told(name: string, storeId: string | undefined): string {
  return storeId === undefined ? "" : `${name} says ${storeId}; `;
}
