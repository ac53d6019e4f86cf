/**
 * The state of a namespace for operators: its run space, its status, and its line in the list of all namespaces. Whether namespaces can be
 * expected to lease, for health checks. And their state as the guards saw it last, for metrics every few seconds, for which only one short
 * request tests whether the store responds.
 */

import { setTimeout as delay } from "node:timers/promises";
import { DEFAULT_NAMESPACE, runOfLedgerId } from "@callnumber/protocol/api";
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { LedgerEntry, NamespaceDescription, StatusResponse } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { firstRunOf, headroomAt, whenCeilingReaches } from "../guard/ceiling.js";
import type { Checkpoint } from "../guard/checkpoint.js";
import { activeSince, type GuardState, nextState } from "../guard/guard-state.js";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceGuards, RefusedNamespace } from "../guard/namespace-guards.js";
import type { PreflightWatch } from "../guard/preflight.js";
import type { NamespaceRecord } from "../guard/record.js";
import { initUnlessLost } from "../guard/refusals.js";
import { storeIdFields } from "../guard/store-id.js";
import type { Store } from "../stores/store.js";

/** What follows from the record alone. */
export type RunSpace = ReturnType<typeof runSpaceOf>;

type Position = Pick<NamespaceRecord, "storeId" | "version" | "highWaterMark">;

/** How much of the run space of a version is used and left, and how far the run ceiling lets leases go. */
export function runSpaceOf({ storeId, version, highWaterMark }: Position, nowMs: number) {
  const id = storeIdFields(storeId);
  // Used: leased or skipped, so that none of them is ever leased again.
  const runsUsed = highWaterMark - firstRunOf(id, version) + 1;
  const runsLeft = RUN_MAX - highWaterMark;
  return {
    runsUsed,
    runsLeft,
    usedShare: runsUsed / (runsUsed + runsLeft),
    callNumbersLeft: runsLeft * SEQUENCE_COUNT,
    headroomRuns: headroomAt(id, version, highWaterMark, nowMs),
    ceilingRunsPerSecond: id.rate,
    ceilingEndsAtMs: whenCeilingReaches(id, version, RUN_MAX),
  };
}

/** The parts of a record that status and list have in common. Never the key of its lease proofs. */
function positionOf(record: NamespaceRecord) {
  const { storeId, version, highWaterMark } = record;
  return { storeId, version, firstRun: firstRunOf(record, version), highWaterMark };
}

export function statusOf(
  record: NamespaceRecord,
  newest: LedgerEntry | undefined,
  nowMs: number,
): Omit<StatusResponse, "store" | "coordinator" | "guard" | "rates"> {
  const { runsUsed, runsLeft, callNumbersLeft } = runSpaceOf(record, nowMs);
  const lastLeaseAtMs = newest?.leasedAtMs ?? null;
  return { namespace: record.namespace, ...positionOf(record), runsUsed, runsLeft, callNumbersLeft, lastLeaseAtMs };
}

/** What the state of all namespaces is read from. */
export interface StatusSources {
  readonly guards: NamespaceGuards;
  readonly preflight: PreflightWatch;
  readonly now: () => number;
}

/**
 * Describes a namespace for the list of all; one whose record can't be read by the state of its guard. Undefined for a name that has neither
 * a record nor a checkpoint.
 */
export async function describeNamespace(
  { guards, preflight, now }: StatusSources,
  namespace: string,
): Promise<NamespaceDescription | undefined> {
  const refused = guards.refused().find((one) => one.namespace === namespace)?.guard;
  let guard: NamespaceGuard | undefined;
  try {
    guard = await guards.of(namespace);
    const record = await guard.readRecord();
    const { runsUsed, runsLeft, ceilingRunsPerSecond } = runSpaceOf(record, now());
    return {
      namespace,
      record: { ...positionOf(record), runsUsed, runsLeft, ceilingRunsPerSecond },
      guard: preflight.effectiveState(namespace, guard.state),
    };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    if (error.code === "namespace_not_found") return undefined;
    const nowMs = now();
    const state = nextState(error, guard?.state ?? refused ?? activeSince(nowMs), nowMs);
    return { namespace, record: null, guard: state };
  }
}

export interface ObservedNamespace extends Pick<Checkpoint, "nodeCount"> {
  readonly namespace: string;
  readonly version: number;
  /** The greatest run that this coordinator knows to be leased or skipped. */
  readonly highWaterMark: number;
  readonly space: RunSpace;
  readonly guard: GuardState;
}

export interface Observation {
  readonly isStoreUp: boolean;
  readonly namespaces: readonly ObservedNamespace[];
  /** Namespaces of which only the refusal is known. */
  readonly refused: readonly RefusedNamespace[];
}

/** A slower store is down, as far as leases are concerned. */
const PROBE_TIMEOUT_MS = 1_000;

/** Makes a function that tests within a second whether a store responds: one request at a time. It never rejects. */
export function storeProbe(store: Pick<Store, "listNamespaces">): () => Promise<boolean> {
  let request: Promise<boolean> | undefined;
  const send = async () => {
    try {
      await store.listNamespaces();
      return true;
    } catch {
      return false;
    } finally {
      request = undefined;
    }
  };
  return async () => {
    request ??= send();
    return await Promise.race([request, delay(PROBE_TIMEOUT_MS, false, { ref: false })]);
  };
}

/** Never rejects. A namespace that has had no heartbeat yet is left out. */
export async function observe(
  { guards, preflight, now }: StatusSources,
  isStoreUp: () => Promise<boolean>,
): Promise<Observation> {
  const isUp = await isStoreUp();
  const namespaces = (await guards.opened()).map(({ namespace, checkpoint, state }): ObservedNamespace => {
    const { storeId, ledgerId, nodeCount } = checkpoint;
    const { version, run: highWaterMark } = runOfLedgerId(ledgerId);
    const space = runSpaceOf({ storeId, version, highWaterMark }, now());
    const guard = preflight.effectiveState(namespace, state);
    return { namespace, version, highWaterMark, space, nodeCount, guard };
  });
  return { isStoreUp: isUp, namespaces, refused: guards.refused() };
}

export interface Readiness {
  /** Namespaces that lease, as far as is known. */
  readonly namespaces: readonly string[];
  /** The others, with why they do not. */
  readonly unavailable: readonly { readonly namespace: string; readonly error: CoordinatorError }[];
}

/** @throws CoordinatorError why the first one does not lease, when none does; `namespace_not_found` when there is none. */
export async function readinessOf(sources: StatusSources): Promise<Readiness> {
  const namespaces: string[] = [];
  const unavailable: { namespace: string; error: CoordinatorError }[] = [];
  for (const namespace of await sources.guards.names()) {
    try {
      if (await isServed(namespace, sources)) namespaces.push(namespace);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      unavailable.push({ namespace, error });
    }
  }
  if (namespaces.length > 0) return { namespaces, unavailable };
  if (unavailable[0] !== undefined) throw unavailable[0].error;
  throw new CoordinatorError(
    "namespace_not_found",
    `the store holds no namespace: ${initUnlessLost(DEFAULT_NAMESPACE)}`,
  );
}

/** False for a name without a record. @throws CoordinatorError why it does not lease. */
async function isServed(namespace: string, { guards, preflight }: StatusSources): Promise<boolean> {
  const guard = await guards.ifInitialized(namespace);
  if (guard === undefined) return false;
  const { state, code, reason, explanation } = guard.state;
  if (state !== "active" && code !== null) {
    const name = `namespace "${namespace}"`;
    const message = explanation.includes(name) ? explanation : `${name}: ${explanation}`;
    throw new CoordinatorError(code, message, { reason: reason ?? undefined });
  }
  await preflight.assertPassed(namespace);
  await guard.readRecord();
  return true;
}
