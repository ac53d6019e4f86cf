/**
 * Inspects a call number: its verdict (verdicts.ts), what it may have been meant for (corrections.ts), and on request the other leases of
 * the same process (neighbors.ts). Knows the ledger only as a port.
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import type { CallNumberHint, InspectResponse, LedgerEntry } from "@callnumber/protocol/schemas";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceRecord } from "../guard/record.js";
import { isSkipped } from "../ledger/lease-identity.js";
import { findLease } from "../ledger/read-ledger.js";
import { isTrimmed } from "../retention/trimmed-leases.js";
import type { RecordedLedger } from "../stores/store.js";
import { type Correction, correctionsOf } from "./corrections.js";
import { neighborsOf } from "./neighbors.js";
import {
  callNumberFieldsIn,
  canExist,
  inspectLeased,
  inspectMalformed,
  inspectOtherVersion,
  inspectSkipped,
  inspectTrimmed,
  inspectWithoutLease,
} from "./verdicts.js";

export interface InspectOptions {
  /** Whether to search for what the text may have been meant for: up to 16 runs are read. Default true. */
  readonly withHints?: boolean;
  /** Whether to search for the leases of the same process: up to 1,000 on each side. Default false. */
  readonly withNeighbors?: boolean;
}

/** Runs that are read for the hints of one text. */
const HINT_COUNT_MAX = 16;
const VERDICTS_BY_LIKELIHOOD: readonly CallNumberHint["verdict"][] = ["reported", "unreported", "not_made"];

/** @throws CoordinatorError `namespace_not_found`, and what else the record is refused with. */
export async function inspectCallNumber(
  ledger: RecordedLedger,
  namespace: string,
  text: string,
  { withHints = true, withNeighbors = false }: InspectOptions = {},
): Promise<InspectResponse> {
  const subject = { namespace, callNumber: text };
  const fields = callNumberFieldsIn(text);
  const hintsFor = async (record: NamespaceRecord) => (withHints ? await hintsOf(ledger, record, text) : []);
  if (fields instanceof CallNumberError) {
    return inspectMalformed(subject, fields, await hintsFor(await ledger.readNamespace(namespace)));
  }
  const numbered = { ...subject, ...fields };
  const ledgerId = ledgerIdOf(fields.version, fields.run);
  const find = () => findLease(ledger, namespace, ledgerId);
  // Sent together: one round trip to a remote store.
  const [record, found] = await Promise.all([ledger.readNamespace(namespace), find()]);
  if (found === undefined && fields.version > record.version) {
    return inspectOtherVersion(numbered, record, await hintsFor(record));
  }
  const isAboveMark = ledgerId > markOf(record);
  // Leased between the two, it would be taken for a run that was skipped.
  const lease = found ?? (isAboveMark ? undefined : await find());
  if (lease !== undefined) {
    if (isSkipped(lease)) return inspectSkipped(numbered, record.version, lease, await hintsFor(record));
    const neighbors = withNeighbors ? await neighborsOf(ledger, namespace, lease, record.version) : null;
    return inspectLeased(numbered, record.version, lease, neighbors);
  }
  // Read only now: a lease that was trimmed while it was looked for is known to be by then.
  const retention = isAboveMark ? undefined : await ledger.readRetention(namespace);
  if (retention !== undefined && isTrimmed(retention, record, ledgerId))
    return inspectTrimmed(numbered, record.version, retention);
  return inspectWithoutLease(numbered, record, await hintsFor(record));
}

/**
 * Whether a message can have the number; false only when none can. A store that may have rolled back may have lost leases, and that its
 * version advanced: then nothing above its high-water mark is denied.
 * @throws CoordinatorError as `inspectCallNumber`.
 */
export async function callNumberCanExist(
  ledger: RecordedLedger,
  guard: NamespaceGuard,
  namespace: string,
  text: string,
): Promise<boolean> {
  const answer = await inspectCallNumber(ledger, namespace, text, { withHints: false });
  if (canExist(answer)) return true;
  const isAboveMark =
    answer.verdict === "other_version" || (answer.verdict === "never_leased" && answer.reason === "above_mark");
  if (!isAboveMark) return false;
  return guard.state.state !== "active" || ledgerIdOf(answer.version, answer.run) <= guard.checkpoint.ledgerId;
}

/** Other numbers that the text may have been meant for, and whose runs are leased. */
async function hintsOf(
  ledger: RecordedLedger,
  record: NamespaceRecord,
  text: string,
): Promise<readonly CallNumberHint[]> {
  const range = { firstLedgerId: record.firstRun, lastLedgerId: markOf(record) };
  const corrections = correctionsOf(text, range, HINT_COUNT_MAX);
  const leases = await Promise.all(corrections.map(({ ledgerId }) => findLease(ledger, record.namespace, ledgerId)));
  const hints = corrections.flatMap((correction, index) => {
    const lease = leases[index];
    return lease === undefined || isSkipped(lease) ? [] : [hintOf(correction, lease, record)];
  });
  const likelihood = ({ verdict }: CallNumberHint) => VERDICTS_BY_LIKELIHOOD.indexOf(verdict);
  return hints.sort((a, b) => a.positions.length - b.positions.length || likelihood(a) - likelihood(b));
}

function hintOf(
  { callNumber, slip, positions }: Correction,
  lease: LedgerEntry,
  { namespace, version }: NamespaceRecord,
): CallNumberHint {
  const subject = { namespace, callNumber, ...decodeCallNumber(callNumber) };
  const { verdict } = inspectLeased(subject, version, lease, null);
  return { callNumber, slip, positions, holder: lease.holder.name, verdict };
}

function markOf({ version, highWaterMark }: NamespaceRecord): number {
  return ledgerIdOf(version, highWaterMark);
}
