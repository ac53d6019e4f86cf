/**
 * Verifies a step before its outcome is used: the quorum has the step, and the server is still the one that did it.
 * A lease that fails is discarded: never handed out, and recorded so in the ledger, without waiting for it.
 * Guarantees: G2, G4 (docs/guarantees.md).
 */
import { randomFillSync } from "node:crypto";
import { ledgerIdOf, nameOfLedgerId, runName, runOfLedgerId } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import { recordReport } from "../ledger/ledger-changes.js";
import type { Log } from "../log.js";
import type { Store } from "../stores/store.js";
import { ceilingAt } from "./ceiling.js";
import type { Bounds } from "./clocks.js";
import type { Outcome, StepCommand } from "./commands.js";
import { quorumOf } from "./record.js";
import { storeIdFields } from "./store-id.js";

const NONCE_BYTES = 12;
/** Random bytes for many nonces: a call for each costs more. */
const supply = Buffer.allocUnsafeSlow(NONCE_BYTES * 341);
let used = supply.length;

/** Returns a new random nonce: 16 characters A-Z, a-z, 0-9, dash, underscore. No byte is used twice. */
export function freshNonce(): string {
  if (used === supply.length) {
    randomFillSync(supply);
    used = 0;
  }
  const begin = used;
  used += NONCE_BYTES;
  return supply.toString("base64url", begin, used);
}

/** Verifies any step. @throws CoordinatorError `quorum_missing`, `lease_discarded`: nothing of the step may be used. */
export function verifyOutcome({ after, runCount, acknowledgedCount, check }: Outcome): void {
  const numbers = [after.version, after.highWaterMark, after.changedAtMs, after.generation, after.nodeCount];
  // A comparison with NaN is never true: it would pass all checks below.
  if (![...numbers, runCount, acknowledgedCount].every(Number.isSafeInteger)) {
    throw discarded("a number is missing in the answer");
  }
  const quorum = quorumOf(after.nodeCount);
  if (acknowledgedCount < quorum) {
    throw new CoordinatorError(
      "quorum_missing",
      `${acknowledgedCount} of ${quorum} other nodes acknowledged the write in time: this server may be isolated. ` +
        "Its runs were discarded. Check that the replicas are running and connected",
    );
  }
  if (check === undefined) {
    if (quorum > 0) throw discarded("the server was not looked at again");
    return;
  }
  if (check.role !== "master") throw discarded(`the server became a ${check.role} meanwhile`);
  if (check.epoch !== after.epoch) throw discarded("the server was restarted, promoted or followed meanwhile");
  if (check.generation !== after.generation) throw discarded("another coordinator claimed meanwhile");
}

/**
 * Verifies that the runs of a lease are above everything seen, and below the ceiling by this coordinator's own clock.
 * @throws CoordinatorError `lease_discarded`.
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
    throw discarded(
      `run ${runName(version, firstRun)} is not above the last one seen (${nameOfLedgerId(seenLedgerId)})`,
    );
  }
  if (highWaterMark > ceilingAt(storeIdFields(storeId), version, nowMs + epsMs))
    throw discarded(`run ${runName(version, highWaterMark)} is above the run ceiling`);
}

function discarded(reason: string): CoordinatorError {
  return new CoordinatorError("lease_discarded", `the lease was discarded: ${reason}. Repeat the request`);
}

interface StepPlace {
  readonly store: Store;
  readonly namespace: string;
  readonly log: Log;
}

interface DiscardedLease {
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  /** Of the holder's request: the store refuses to discard a lease with another nonce. */
  readonly nonce: string;
}

/** Records a lease of which nothing can have left this process. Never throws, and does not wait for the store. */
export function recordDiscarded(
  place: StepPlace,
  { version, firstRun, runCount, nonce }: DiscardedLease,
  reason: string,
): void {
  const { namespace, log } = place;
  log.warn({ namespace, version, firstRun, runCount, reason, nonce }, "discarded");
  void reportDiscarded(place, ledgerIdOf(version, firstRun), nonce);
}

interface CompletedStep {
  readonly command: StepCommand;
  readonly outcome: Outcome;
  /** Ledger id of the greatest run that was known to be leased before. */
  readonly seenLedgerId: number;
}

interface VerifyingPlace extends StepPlace {
  readonly now: () => number;
  readonly bounds: Bounds;
}

/**
 * Verifies a step of the guard, and records what it granted as discarded when a check fails.
 * @throws CoordinatorError of any check above: nothing of the step may be used.
 */
export function verifyOrDiscard(place: VerifyingPlace, step: CompletedStep): void {
  const { outcome, seenLedgerId } = step;
  try {
    verifyOutcome(outcome);
    if (outcome.runCount > 0) verifyAboveHighWaterMark(outcome, seenLedgerId, place.now(), place.bounds.epsMs);
  } catch (error) {
    discardGrant(place, step, error);
    throw error;
  }
}

/** Leaves runs alone that another holder may have: those that were leased before, which a store that lost them grants again. */
function discardGrant(place: StepPlace, { command, outcome, seenLedgerId }: CompletedStep, error: unknown): void {
  const { after, runCount } = outcome;
  if (command.step !== "lease" || runCount === 0) return;
  const { version, highWaterMark } = after;
  const firstRun = highWaterMark - runCount + 1;
  // Negated: one of them may be NaN.
  if (!(ledgerIdOf(version, firstRun) > seenLedgerId)) return;
  const reason = error instanceof CoordinatorError ? error.code : "internal_error";
  recordDiscarded(place, { version, firstRun, runCount, nonce: command.leaseNonce }, reason);
}

async function reportDiscarded({ store, namespace, log }: StepPlace, ledgerId: number, nonce: string): Promise<void> {
  try {
    await recordReport(store, namespace, ledgerId, { nonce, lastSequence: null, state: "discarded" });
  } catch (error) {
    log.debug({ namespace, ...runOfLedgerId(ledgerId), reason: (error as Error).message }, "discard_not_recorded");
  }
}
