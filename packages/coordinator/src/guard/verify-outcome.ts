/**
 * The last look at a step before anybody acts on it: who answered, whether enough nodes have it, whether the store is still
 * the one that did it. What fails is burnt.
 * Guarantees: G2, G4 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import type { Outcome, StepCommand } from "../store.js";
import { parseStoreId } from "../store-id.js";
import { lineAt } from "./line.js";
import { quorumOf } from "./quorum.js";

/** @throws CoordinatorError `quorum_missing`, `lease_burnt`, `store_replaced`: nothing of the step may be used. */
export function mustCount(outcome: Outcome, command: StepCommand): void {
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
export function mustBeFresh({ after, runCount }: Outcome, seenLedgerId: number, nowMs: number, epsMs: number): void {
  const { storeId, version, highWaterMark } = after;
  const firstRun = highWaterMark - runCount + 1;
  if (ledgerIdOf(version, firstRun) <= seenLedgerId) {
    throw burnt(`run ${firstRun} is not above the last one seen (${seenLedgerId})`);
  }
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  if (highWaterMark > lineAt(id, version, nowMs + epsMs)) throw burnt(`run ${highWaterMark} lies above the clock line`);
}

/** That a lease granted runs, and no more than were asked for. @throws CoordinatorError `lease_burnt`. */
export function mustBeAskedFor({ runCount }: Outcome, command: StepCommand): void {
  if (command.step !== "lease" || (runCount >= 1 && runCount <= command.runCount)) return;
  throw burnt(`${runCount} runs were granted where ${command.runCount} were asked for`);
}

function burnt(reason: string): CoordinatorError {
  return new CoordinatorError(
    "lease_burnt",
    `what the store granted was burnt: ${reason}. The same request may be made again`,
  );
}
