/**
 * The verdicts on a call number, each with a sentence for people, and whether a message can have it. Pure. Terminal, HTTP and console show
 * the same sentences.
 */

import { ledgerIdOf, runName, runStateIn } from "@callnumber/protocol/api";
import { CallNumberError, type CallNumberParts, decodeCallNumber } from "@callnumber/protocol/codec";
import type { CallNumberHint, InspectResponse, LeaseNeighbors, LedgerEntry } from "@callnumber/protocol/schemas";
import type { NamespaceRecord } from "../guard/record.js";
import { trimmedIn } from "../retention/trimmed-leases.js";
import { type Retention } from "../stores/store.js";

interface Subject {
  readonly namespace: string;
  readonly callNumber: string;
}

export type LeasedAnswer = Extract<InspectResponse, { readonly lease: LedgerEntry }>;

/** Decodes a text, or returns why it is not a call number. */
export function callNumberFieldsIn(text: string): CallNumberParts | CallNumberError {
  try {
    return decodeCallNumber(text);
  } catch (error) {
    if (error instanceof CallNumberError) return error;
    throw error;
  }
}

export function inspectMalformed(
  subject: Subject,
  { code, message, position }: CallNumberError,
  hints: readonly CallNumberHint[],
): InspectResponse {
  return { ...subject, verdict: "malformed", explanation: message, problem: code, position: position ?? null, hints };
}

export function inspectOtherVersion(
  subject: Subject & CallNumberParts,
  { namespace, version }: NamespaceRecord,
  hints: readonly CallNumberHint[],
): InspectResponse {
  const explanation = `version ${subject.version}: namespace "${namespace}" has generated numbers up to version ${version} only`;
  return { ...subject, verdict: "other_version", explanation, hints };
}

export function inspectWithoutLease(
  subject: Subject & CallNumberParts,
  record: NamespaceRecord,
  hints: readonly CallNumberHint[],
): InspectResponse {
  const { run, version } = subject;
  const answer = { ...subject, hints } as const;
  const { firstVersion, firstRun } = record;
  const name = runName(version, run, record.version);
  if (ledgerIdOf(version, run) < ledgerIdOf(firstVersion, firstRun)) {
    const explanation =
      firstVersion === 0
        ? `run ${name} lies below the first run (${runName(firstVersion, firstRun, record.version)}) of this namespace: not made here, perhaps by an older system`
        : `run ${name} is in no lease that was copied here, and this store begins with version ${firstVersion}: perhaps the store that was moved leased it`;
    return { ...answer, verdict: "never_leased", reason: "below_first_run", explanation };
  }
  if (version === record.version && run > record.highWaterMark) {
    const explanation = `run ${name} was never leased: the last one is ${runName(version, record.highWaterMark)}. This number can't exist yet`;
    return { ...answer, verdict: "never_leased", reason: "above_mark", explanation };
  }
  const explanation = `no lease has run ${name}: a recovery skipped it, or the store lost the lease. This number may exist`;
  return { ...answer, verdict: "unknown", explanation };
}

export function inspectSkipped(
  subject: Subject & CallNumberParts,
  currentVersion: number,
  { leasedAtMs }: LedgerEntry,
  hints: readonly CallNumberHint[],
): InspectResponse {
  const name = runName(subject.version, subject.run, currentVersion);
  const at = new Date(leasedAtMs).toISOString();
  const explanation = `run ${name} was skipped by a recovery at ${at}, and never leased: this number does not exist`;
  return { ...subject, verdict: "never_leased", reason: "skipped", explanation, hints };
}

/** Whether the run was leased or skipped is in the files alone. */
export function inspectTrimmed(
  subject: Subject & CallNumberParts,
  currentVersion: number,
  retention: Retention,
): InspectResponse {
  const explanation =
    `run ${runName(subject.version, subject.run, currentVersion)} was leased at or before ${new Date(retention.leasedAtMs).toISOString()}, unless it was skipped. Its lease was trimmed ` +
    "from the store: search the files of --ledger-dir. This number may exist";
  return { ...subject, verdict: "trimmed", explanation, trimmed: trimmedIn(retention) };
}

export function inspectLeased(
  subject: Subject & CallNumberParts,
  currentVersion: number,
  lease: LedgerEntry,
  neighbors: LeaseNeighbors | null,
): LeasedAnswer {
  const { state, lastSequence } = runStateIn(lease, subject.run);
  const isReported = lastSequence !== null && subject.sequence <= lastSequence;
  const isOver = state === "closed" || state === "discarded";
  return {
    ...subject,
    verdict: isReported ? "reported" : isOver ? "not_made" : "unreported",
    explanation: `${leasedTo(lease, runName(subject.version, subject.run, currentVersion))}, ${isReported ? "within what it reported" : whyNot(state, lastSequence)}`,
    currentVersion,
    state,
    lastSequence,
    lease,
    neighbors,
  };
}

const CANNOT_EXIST: ReadonlySet<InspectResponse["verdict"]> = new Set(["malformed", "other_version", "not_made"]);

/** Whether a message can have this number, as far as the ledger knows; false only when none can. One below the first run is an older system's. */
export function canExist(answer: InspectResponse): boolean {
  if (answer.verdict === "never_leased") return answer.reason === "below_first_run";
  return !CANNOT_EXIST.has(answer.verdict);
}

function leasedTo({ holder, leasedAtMs }: LedgerEntry, run: string): string {
  return `run ${run} was leased to ${holder.name} (${holder.host}, pid ${holder.pid}) at ${new Date(leasedAtMs).toISOString()}`;
}

function whyNot(state: string, lastSequence: number | null): string {
  if (state === "discarded") return "and never handed out: this number was not made";
  if (state === "unreported") return "which has not reported how far it got: this number may exist";
  if (state === "open") return `which reported ${reached(lastSequence)} so far: this number may exist by now`;
  return `which closed the run after ${reached(lastSequence)}: this number was not made`;
}

function reached(lastSequence: number | null): string {
  return lastSequence === null ? "no sequence" : `sequence ${lastSequence}`;
}
