/**
 * Inspects a call number: its verdict (verdicts.ts), what it may have been meant for (`correctionsOf`), and on request the leases that the
 * same process got before and after: what an operator asks for next. Knows the ledger only as a port.
 */
import {
  type Correction,
  correctionsOf,
  formatCount,
  type Holder,
  ledgerIdOf,
  runsName,
} from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import type { CallNumberHint, InspectResponse, LeaseNeighbors, LedgerEntry } from "@callnumber/protocol/schemas";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceRecord } from "../guard/record.js";
import { isSkipped, lastLedgerIdOf } from "../ledger/lease-identity.js";
import { findLease, leasesInSteps } from "../ledger/read-ledger.js";
import { isTrimmed } from "../retention/trimmed-leases.js";
import type { LeaseQuery, LedgerReader, RecordedLedger } from "../stores/store.js";
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
  const [first, last] = [record.firstRun, markOf(record)];
  const corrections = correctionsOf(text, ({ ledgerId }) => ledgerId >= first && ledgerId <= last, HINT_COUNT_MAX);
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

/** The most leases that are read on each side. */
const NEIGHBOR_SCAN_MAX = 1_000;

/** The nearest lease of the same process; or null, and whether all leases were read. */
interface Side {
  readonly neighbor: LedgerEntry | null;
  readonly isComplete: boolean;
}

async function neighborsOf(
  ledger: LedgerReader,
  namespace: string,
  lease: LedgerEntry,
  currentVersion: number,
): Promise<LeaseNeighbors> {
  const side = (direction: LeaseQuery["direction"]) => nearest(ledger, namespace, lease, direction);
  const [before, after] = await Promise.all([side("newest_first"), side("oldest_first")]);
  return {
    previous: before.neighbor,
    next: after.neighbor,
    explanation: `the same process got ${formatSide(before, "before", currentVersion)}, and ${formatSide(after, "after", currentVersion)}`,
  };
}

async function nearest(
  ledger: LedgerReader,
  namespace: string,
  lease: LedgerEntry,
  direction: LeaseQuery["direction"],
): Promise<Side> {
  const from = lastLedgerIdOf(lease) + (direction === "oldest_first" ? 1 : -1);
  let readCount = 0;
  for await (const leases of leasesInSteps(ledger, namespace, { from, direction })) {
    const neighbor = leases.find(({ holder }) => isSameProcess(holder, lease.holder));
    if (neighbor !== undefined) return { neighbor, isComplete: true };
    readCount += leases.length;
    if (readCount >= NEIGHBOR_SCAN_MAX) return { neighbor: null, isComplete: false };
  }
  return { neighbor: null, isComplete: true };
}

function isSameProcess(one: Holder, other: Holder): boolean {
  return one.name === other.name && one.host === other.host && one.pid === other.pid;
}

function formatSide({ neighbor, isComplete }: Side, side: "before" | "after", currentVersion: number): string {
  if (neighbor !== null)
    return `${neighbor.runCount === 1 ? "run" : "runs"} ${runsName(neighbor, currentVersion)} ${side} it`;
  if (isComplete) return `nothing ${side} it`;
  return `none of the ${formatCount(NEIGHBOR_SCAN_MAX)} leases ${side} it (farther ones were not read)`;
}
