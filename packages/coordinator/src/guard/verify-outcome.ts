/**
 * The last look at a step before anybody acts on it: who answered, whether enough nodes have it, whether the store is still
 * the one that did it. What fails is burnt.
 * Guarantees: G2, G4 (docs/guarantees.md).
 */

import { randomFillSync } from "node:crypto";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { Outcome, StepCommand, Store } from "../store.js";
import { parseStoreId } from "../store-id.js";
import type { Bounds } from "./bounds.js";
import { ceilingAt } from "./ceiling.js";

/** @throws CoordinatorError `quorum_missing`, `lease_burnt`, `store_replaced`: nothing of the step may be used. */
export function verifyOutcome(outcome: Outcome, command: StepCommand): void {
  const { after, runCount, acknowledgedCount, check } = outcome;
  const numbers = [after.version, after.highWaterMark, after.changedAtMs, after.generation, after.nodeCount];
  // A comparison with what is no number is never true: it would pass all that follow.
  if (![...numbers, runCount, acknowledgedCount].every(Number.isSafeInteger)) {
    throw burnt("the answer holds something else where a number belongs");
  }
  if (after.nonce !== command.nonce || check.nonce !== command.nonce) throw burnt("the answer bears another nonce");
  if (after.storeId !== command.storeId) {
    throw new CoordinatorError(
      "store_replaced",
      `store ${after.storeId} answered for store ${command.storeId}; what it granted was burnt. Bring the right store back`,
    );
  }
  const quorum = quorumOf(after.nodeCount);
  if (acknowledgedCount < quorum) {
    throw new CoordinatorError(
      "quorum_missing",
      `${acknowledgedCount} of ${quorum} other nodes acknowledged the write in time: this server may be alone on its side of a ` +
        "cut. What it granted was burnt. Leasing goes on where the majority is; see that the replicas follow",
    );
  }
  if (check.role !== "master") throw burnt(`the server became a ${check.role} meanwhile`);
  if (check.epoch !== after.epoch) throw burnt("the server was restarted, promoted or followed meanwhile");
  if (check.generation !== after.generation) throw burnt("another coordinator claimed meanwhile");
}

/**
 * That the runs of a lease are above everything seen and below the line, by this coordinator's own clock.
 * @throws CoordinatorError `lease_burnt`.
 */
export function verifyAboveHighWaterMark(
  { after, runCount }: Outcome,
  seenLedgerId: number,
  nowMs: number,
  epsMs: number,
): void {
  const { storeId, version, highWaterMark } = after;
  const firstRun = highWaterMark - runCount + 1;
  if (ledgerIdOf(version, firstRun) <= seenLedgerId) {
    throw burnt(`run ${firstRun} is not above the last one seen (${seenLedgerId})`);
  }
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  if (highWaterMark > ceilingAt(id, version, nowMs + epsMs))
    throw burnt(`run ${highWaterMark} lies above the clock line`);
}

/** That a lease granted runs, and no more than were asked for. @throws CoordinatorError `lease_burnt`. */
export function verifyRequestedCount({ runCount }: Outcome, command: StepCommand): void {
  if (command.step !== "lease" || (runCount >= 1 && runCount <= command.runCount)) return;
  throw burnt(`${runCount} runs were granted where ${command.runCount} were asked for`);
}

function burnt(reason: string): CoordinatorError {
  return new CoordinatorError(
    "lease_burnt",
    `what the store granted was burnt: ${reason}. The same request may be made again`,
  );
}

const NONCE_BYTES = 12;
const supply = Buffer.allocUnsafeSlow(NONCE_BYTES * 341);
let used = supply.length;

/** 16 characters A-Z, a-z, 0-9, dash, underscore. No byte is used twice. */
export function freshNonce(): string {
  if (used === supply.length) {
    randomFillSync(supply);
    used = 0;
  }
  const begin = used;
  used += NONCE_BYTES;
  return supply.toString("base64url", begin, used);
}

interface Place {
  readonly store: Store;
  readonly namespace: string;
  readonly log: Log;
}

interface BurntLease {
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  /** Of the holder's request: an entry with another one is another's lease, and the store refuses the note. */
  readonly nonce: string;
}

/** Notes a lease of which nothing can have left this process. Never throws, and waits for nothing. */
export function recordDiscarded(
  place: Place,
  { version, firstRun, runCount, nonce }: BurntLease,
  reason: string,
): void {
  const { namespace, log } = place;
  log.warn({ namespace, version, firstRun, runCount, reason, nonce }, "burnt");
  void report(place, ledgerIdOf(version, firstRun), nonce);
}

interface JudgedStep {
  readonly command: StepCommand;
  readonly outcome: Outcome;
  /** Ledger id of the greatest run that was known to be leased before. */
  readonly seenLedgerId: number;
}

interface JudgingPlace extends Place {
  readonly now: () => number;
  readonly bounds: Bounds;
}

/**
 * Judges a step, and notes what it granted when the judgement goes against it.
 * @throws CoordinatorError all of `mustCount`, `mustBeFresh` and `mustBeAskedFor`: nothing of the step may be used.
 */
export function verifyOrDiscard(place: JudgingPlace, judged: JudgedStep): void {
  const { command, outcome, seenLedgerId } = judged;
  try {
    verifyOutcome(outcome, command);
    if (outcome.runCount > 0) verifyAboveHighWaterMark(outcome, seenLedgerId, place.now(), place.bounds.epsMs);
    verifyRequestedCount(outcome, command);
  } catch (error) {
    noteRefusedGrant(place, judged, error);
    throw error;
  }
}

/**
 * Left alone is what another may have got: runs that were known to be leased before (a store that forgot them grants them
 * again), and those of an answer to another step.
 */
function noteRefusedGrant(place: Place, { command, outcome, seenLedgerId }: JudgedStep, error: unknown): void {
  const { after, runCount } = outcome;
  if (command.step !== "lease" || runCount === 0 || after.nonce !== command.nonce) return;
  const { version, highWaterMark } = after;
  const firstRun = highWaterMark - runCount + 1;
  // Also where one of them is no number.
  if (!(ledgerIdOf(version, firstRun) > seenLedgerId)) return;
  const reason = error instanceof CoordinatorError ? error.code : "internal_error";
  recordDiscarded(place, { version, firstRun, runCount, nonce: command.leaseNonce }, reason);
}

async function report({ store, namespace, log }: Place, ledgerId: number, nonce: string): Promise<void> {
  try {
    await store.report(namespace, ledgerId, { nonce, lastSequence: null, state: "burnt" });
  } catch (error) {
    log.debug({ namespace, ledgerId, reason: (error as Error).message }, "burnt_not_noted");
  }
}

/**
 * Acknowledgements to wait for, besides the master's own, with so many data nodes: then every majority that could promote a
 * node holds one that has the step. A single node has nobody to ask.
 */
export function quorumOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2);
}
