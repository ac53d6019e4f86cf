/**
 * Checks the response to a lease request before any number is made from it. By hand: a schema library would be larger than the client.
 * A response that fails is never used; its runs are discarded.
 * Guarantees: G9 (docs/guarantees.md).
 */

import { describe, INSTANT_MAX_MS, type Lease, ledgerIdOf, PROOF_PATTERN } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { ClientError } from "./client-error.js";

/** It gets into messages, archives and terminals; that of a coordinator has 66 characters at most. */
const STORE_ID_PATTERN = /^[!-~]{1,99}$/;

export interface Expected {
  readonly namespace: string;
  readonly nonce: string;
  readonly runCountMax: number;
  /** The only store whose runs may be used; undefined before the first lease of a client that pins none. */
  readonly storeId: string | undefined;
  /** Ledger id of the last run of this client; null for none. */
  readonly lastRun: number | null;
}

/**
 * Returns the lease, if the response is the one that was requested.
 * @throws ClientError `invalid_response` (no response to this request), `store_mismatch` or `run_not_increasing` (the
 *   store is not the one, or not in the state, that this client knows: generating on would risk a number twice).
 */
export function checkedLease(response: unknown, expected: Expected): Lease {
  // A copy that no other code holds: what was checked is what will be used.
  const { namespace, storeId, version, firstRun, runCount, leasedAtMs, nonce, proof } = (response ?? {}) as Lease;
  const lease: Lease = Object.freeze({ namespace, storeId, version, firstRun, runCount, leasedAtMs, nonce, proof });
  if (lease.nonce !== expected.nonce) throw invalidResponse("it does not echo the nonce of the request");
  if (lease.namespace !== expected.namespace) throw invalidResponse("it is for another namespace");
  if (typeof lease.storeId !== "string" || !STORE_ID_PATTERN.test(lease.storeId))
    throw invalidResponse("it names no store");
  if (typeof lease.proof !== "string" || !PROOF_PATTERN.test(lease.proof))
    throw invalidResponse("it has no lease proof");
  assertWithin("version", lease.version, 0, VERSION_MAX);
  assertWithin("runCount", lease.runCount, 1, expected.runCountMax);
  assertWithin("firstRun", lease.firstRun, 0, RUN_MAX - lease.runCount + 1);
  assertWithin("leasedAtMs", lease.leasedAtMs, 0, INSTANT_MAX_MS);
  if (expected.storeId !== undefined && lease.storeId !== expected.storeId)
    throw otherStore(lease, expected.storeId, expected.lastRun);
  if (expected.lastRun !== null && ledgerIdOf(lease.version, lease.firstRun) <= expected.lastRun) {
    throw new ClientError(
      "run_not_increasing",
      `the coordinator leased run ${lease.version}/${lease.firstRun}, which is not above the last run that this client got: ` +
        "its store has rolled back. This client generates no more numbers. Inform the operator",
    );
  }
  return lease;
}

/** `lastRun`: null before the first lease, where only `expectedStoreId` names a store. */
function otherStore(lease: Lease, expected: string, lastRun: number | null): ClientError {
  const source = lastRun === null ? "this client expects store" : "the numbers so far came from store";
  return new ClientError(
    "store_mismatch",
    `the coordinator leases from store ${lease.storeId}, but ${source} ${expected}: ` +
      "use the coordinator of that store. Change the expected store id only if it was replaced on purpose, above all its numbers",
  );
}

function assertWithin(field: string, value: unknown, min: number, max: number): void {
  if (!(Number.isInteger(value) && (value as number) >= min && (value as number) <= max)) {
    throw invalidResponse(`its ${field} is ${describe(value)}, not a whole number from ${min} to ${max}`);
  }
}

function invalidResponse(reason: string): ClientError {
  return new ClientError("invalid_response", `the response to a lease request can't be used: ${reason}`);
}
