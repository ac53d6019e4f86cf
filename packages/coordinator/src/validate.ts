/** Checks arguments that only a wrong program passes: they throw TypeError or RangeError before anything is sent to the store. */

import {
  LEASE_RUN_COUNT_MAX,
  LEDGER_ID_MAX,
  type LeaseRequest,
  NAMESPACE_PATTERN,
  NONCE_PATTERN,
  type ReportRequest,
} from "@callnumber/protocol/api";
import { SEQUENCE_MAX } from "@callnumber/protocol/codec";

const STATES: ReadonlySet<string> = new Set<ReportRequest["state"]>(["open", "exhausted", "closed"]);

export function assertNamespace(namespace: string): void {
  if (!NAMESPACE_PATTERN.test(namespace)) {
    throw new TypeError(
      `a namespace has 1 to 63 characters a-z, 0-9, dot, dash, underscore, and starts with a letter or digit, not ${JSON.stringify(namespace)}`,
    );
  }
}

export function assertLeaseRequest({ runCount, nonce, holder, sentAtMs }: LeaseRequest): void {
  assertWithin("runCount", runCount, 1, LEASE_RUN_COUNT_MAX);
  assertNonce(nonce);
  if (typeof (holder ?? 0) !== "object") throw new TypeError("a lease needs a holder: { name, host, pid, labels }");
  assertWithin("sentAtMs", sentAtMs, 0, Number.MAX_SAFE_INTEGER);
}

function assertNonce(nonce: string): void {
  if (typeof nonce !== "string" || !NONCE_PATTERN.test(nonce)) {
    throw new TypeError(
      `a nonce has 16 to 64 characters A-Z, a-z, 0-9, dash, underscore, not ${JSON.stringify(nonce)}`,
    );
  }
}

export function assertLedgerId(ledgerId: number): void {
  assertWithin("run", ledgerId, 0, LEDGER_ID_MAX);
}

export function assertReport(ledgerId: number, { nonce, lastSequence, state }: ReportRequest): void {
  assertLedgerId(ledgerId);
  assertNonce(nonce);
  if (lastSequence !== null) assertWithin("lastSequence", lastSequence, 0, SEQUENCE_MAX);
  if (!STATES.has(state))
    throw new TypeError(`a run's state is open, exhausted or closed, not ${JSON.stringify(state)}`);
}

export function assertWithin(name: string, value: number, min: number, max: number): void {
  if (!(Number.isInteger(value) && value >= min && value <= max)) {
    throw new RangeError(`${name} must be a whole number from ${min} to ${max}, not ${String(value)}`);
  }
}
