/**
 * What was leased and never handed out is noted in the ledger, so that an operator sees it: best effort, behind everybody's back.
 * Whether a lease is burnt is the judge's decision, and nobody waits for the note.
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { Outcome, StepCommand, Store } from "../store.js";
import type { Bounds } from "./bounds.js";
import { mustBeAskedFor, mustBeFresh, mustCount } from "./verify-outcome.js";

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
export function noteBurnt(place: Place, { version, firstRun, runCount, nonce }: BurntLease, reason: string): void {
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
export function mustCountOrBurn(place: JudgingPlace, judged: JudgedStep): void {
  const { command, outcome, seenLedgerId } = judged;
  try {
    mustCount(outcome, command);
    if (outcome.runCount > 0) mustBeFresh(outcome, seenLedgerId, place.now(), place.bounds.epsMs);
    mustBeAskedFor(outcome, command);
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
  noteBurnt(place, { version, firstRun, runCount, nonce: command.leaseNonce }, reason);
}

async function report({ store, namespace, log }: Place, ledgerId: number, nonce: string): Promise<void> {
  try {
    await store.report(namespace, ledgerId, { nonce, lastSequence: null, state: "burnt" });
  } catch (error) {
    log.debug({ namespace, ledgerId, reason: (error as Error).message }, "burnt_not_noted");
  }
}
