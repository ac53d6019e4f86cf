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
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { freshNonce } from "../fresh-nonce.js";
import { mustCount } from "../guard/verify-outcome.js";
import { movedSeal } from "../guard/moved-seal.js";
import type { NamespaceRecord, RecoverStep } from "../store.js";
import { compareLedgers, copyLedger, copyRetention } from "./ledger-copy.js";
import { ledgersOf, type MoveOptions, planMove } from "./move-plan.js";
import { openGuard } from "./open-guard.js";

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
  mustCount(outcome, command);
  const { version, highWaterMark, generation, nodeCount } = outcome.after;
  target.witness.note({ storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount });
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
