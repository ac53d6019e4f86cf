/**
 * The checks that every step of the guard begins with, in the order in which they refuse: whether the record is ours, whether the clocks
 * agree (clocks.ts), and whether the store may have rolled back. Pure.
 * Guarantees: G3, G6 (docs/guarantees.md).
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { ceilingAt } from "./ceiling.js";
import { type Bounds, checkClockOfMove, checkClocks, checkHeartbeat, clocksOf, SILENCE_MAX_MS } from "./clocks.js";
import type { SealStep, StepCommand } from "./commands.js";
import {
  type NamespaceRecord,
  type NamespaceState,
  type ObservedFields,
  PHASES,
  quorumOf,
  readRecord,
} from "./record.js";
import { isRefusal, type Refusal, refusal, refused } from "./refusals.js";
import { isMovedSeal, textOfMove } from "./store-id.js";

/** The keys that a step concerns. */
export const KEY_NAMES = ["record", "ledger", "holders"] as const;
export type KeyName = (typeof KEY_NAMES)[number];

/** The keys of a namespace, as a step finds them. */
export interface ObservedKeys {
  /** `other`: a key of a type that is not ours. */
  readonly record: "none" | "hash" | "other";
  readonly fields: ObservedFields;
  /** Where the fields need not be text: what the store recognizes them by. */
  readonly fingerprint?: string | undefined;
  /** The record has a time to live. */
  readonly expires: boolean;
  readonly ledger: "none" | "stream" | "other";
  /** Ledger id of the newest ledger entry; 0 for none. */
  readonly ledgerMark: number;
  readonly holders: "none" | "hash" | "other";
}

/** The server that a step runs on. */
export interface ObservedServer {
  /** The store's clock. */
  readonly timeMs: number;
  /** `master`, or anything else. */
  readonly role: string;
  /** One uninterrupted life of the store; undefined when the server does not report it. */
  readonly epoch: string | undefined;
  readonly connectedReplicas: number;
}

/** All that a decision depends on. */
export interface StepContext {
  readonly namespace: string;
  readonly keys: ObservedKeys;
  readonly server: ObservedServer;
  /** The coordinator's clock. */
  readonly nowMs: number;
  readonly bounds: Pick<Bounds, "epsMs" | "gapMs">;
  /** The record, where it is known to be what the fields hold. */
  readonly record?: NamespaceState | undefined;
}

/** Bounds for a mark and a time that may have risen. */
export interface RisingMark {
  /** The later of this and the store's clock is the time of the write. */
  readonly nowMs: number;
  /** From the last write to this one; negative where the last write is in the future. */
  readonly ageMinMs: number;
  readonly ageMaxMs: number;
  /** Ledger id that the mark has reached. */
  readonly markIdMin: number;
  /** Whether it has reached the newest ledger entry, too. */
  readonly isLedgerReached: boolean;
  /** The greatest mark that the change may leave. */
  readonly highWaterMarkMax: number;
}

/** What may differ from the context when a decision is carried out, and the decision would be the same. */
export interface Rest {
  /** Default: as many as the record counts. */
  readonly replicasMax?: number;
  /** How far the store's clock may be ahead of the coordinator's. */
  readonly storeAheadMaxMs: number;
  /** Undefined: nothing else. */
  readonly rising: Omit<RisingMark, "nowMs"> | undefined;
}

/** Returns the record if it is of the expected store, on a master, not sealed, and the clocks agree. */
export function checkOwned(
  context: StepContext,
  step: Pick<StepCommand, "storeId" | "isSilenceAccepted" | "recoveredMin">,
): NamespaceState | Refusal {
  const record = checkPlace(context, step.storeId);
  if (isRefusal(record)) return record;
  const unfit = checkClocks(context);
  if (unfit !== undefined) return unfit;
  if (record.phase === PHASES.sealed) return refuseSealed(record);
  return checkHeartbeat(context, record, step.isSilenceAccepted) ?? checkAttached(context, record, step) ?? record;
}

/**
 * Returns the record if it may get the seal of a move, or has it. Whether the store may have rolled back is not asked: the new store begins above
 * every version that this one has reached, and what this one has forgotten lies in those.
 */
export function checkMovable(
  context: StepContext,
  step: Pick<SealStep, "storeId" | "seal" | "replaces">,
): NamespaceState | Refusal {
  const record = checkPlace(context, step.storeId);
  if (isRefusal(record)) return record;
  const unfit = checkClockOfMove(context) ?? checkQuorum(context, record.nodeCount);
  if (unfit !== undefined) return unfit;
  const mayBeSet = textOfMove(record.seal) === textOfMove(step.seal) || record.seal === step.replaces;
  return record.phase === PHASES.sealed && !mayBeSet ? refuseSealed(record) : record;
}

function recordIn(
  keys: Pick<ObservedKeys, "record" | "fields" | "expires">,
  namespace: string,
): NamespaceState | Refusal {
  if (keys.record === "none") return refusal("EMPTY", "no record");
  if (keys.record === "other") return refusal("CORRUPT", "the record is not a hash");
  const record = readRecord(keys.fields, namespace);
  if (isRefusal(record)) return record;
  return keys.expires ? refusal("CORRUPT", "the record has a time to live") : record;
}

/**
 * Returns the record as a store found it.
 * @throws CoordinatorError `namespace_not_found`, `store_corrupt`, `store_schema_unsupported`, `store_id_mismatch` for what is no record of ours.
 */
export function namespaceRecordIn(
  { keys }: { readonly keys: Parameters<typeof recordIn>[0] },
  namespace: string,
): NamespaceRecord {
  const record = recordIn(keys, namespace);
  if (isRefusal(record)) throw refused(record.code, record.detail, namespace);
  const { id, epoch: _, ...others } = record;
  return { ...others, firstVersion: id.firstVersion, firstRun: id.firstRun };
}

/** Returns the record if it is of the expected store, and on a master. */
function checkPlace(context: StepContext, storeId: string): NamespaceState | Refusal {
  const record = checkRecord(context, storeId);
  return isRefusal(record) ? record : (checkServer(context, record.nodeCount) ?? record);
}

/** Returns the record if it is of the expected store, whatever the server is. */
export function checkRecord(context: StepContext, storeId: string): NamespaceState | Refusal {
  const { keys, namespace } = context;
  const record = context.record ?? recordIn(keys, namespace);
  if (isRefusal(record)) return record;
  const ledgerFault = checkLedger(keys);
  if (ledgerFault !== undefined) return ledgerFault;
  return record.storeId === storeId ? record : refusal("FOREIGN", record.storeId);
}

/** Returns the record if nothing indicates that the store rolled back. */
export function checkHealthy(
  context: StepContext,
  step: Parameters<typeof checkOwned>[1] & Parameters<typeof checkCheckpoint>[2],
): NamespaceState | Refusal {
  const record = checkOwned(context, step);
  return isRefusal(record) ? record : (checkCheckpoint(context, record, step) ?? record);
}

/** Checks a record of ours against what the caller has seen. */
export function checkCheckpoint(
  context: StepContext,
  record: NamespaceState,
  step: { readonly floor: number; readonly generationMin: number },
): Refusal | undefined {
  const { bounds, keys } = context;
  const { latestMs } = clocksOf(context);
  const { generation } = record;
  if (generation < step.generationMin) return refusal("STALEGEN", generation);
  if (record.epoch !== context.server.epoch) return refusal("EPOCH", generation);
  if (record.phase === PHASES.claimed) return refusal("PENDING", generation);
  if (latestMs - record.changedAtMs > bounds.gapMs) return refusal("GAP", generation);
  if (markIdOf(record) < Math.max(step.floor, keys.ledgerMark)) return refusal("ROLLBACK", generation);
  return undefined;
}

/** Refuses where a node was attached that the record does not count: it may lease elsewhere, and no recovery ends what only an operator can judge. */
export function checkAttached(
  { server: { epoch = "" } }: StepContext,
  record: NamespaceState,
  { recoveredMin = 0 }: Pick<StepCommand, "recoveredMin">,
): Refusal | undefined {
  // Seen by the caller, and not recovered since.
  const isUnrecovered = record.nodeCount === 1 && record.generation < recoveredMin;
  if (record.epoch === SUSPECT_EPOCH || isUnrecovered) return refusal("OPERATOR", "replica");
  // One process, one node, and yet another epoch: a node was attached meanwhile.
  if (record.epoch === epoch || record.nodeCount !== 1 || runIdOf(record.epoch) !== runIdOf(epoch)) return undefined;
  return refusal("OPERATOR", syncsOf(record.epoch) === syncsOf(epoch) ? "epoch" : "replica");
}

/** An epoch that no server ever has: after a restart, too, nothing shows whether the node that was attached leases elsewhere. */
export const SUSPECT_EPOCH = "-:-:attached";

export function checkLedger({ ledger, holders }: ObservedKeys): Refusal | undefined {
  if (ledger === "other") return refusal("CORRUPT", "the ledger is not a stream");
  if (holders === "other") return refusal("CORRUPT", "the holders are not a hash");
  return undefined;
}

export function checkServer({ server }: StepContext, nodeCount: number): Refusal | undefined {
  const excess = server.connectedReplicas > nodeCount - 1 ? refusal("NODES", server.connectedReplicas) : undefined;
  if (server.epoch === undefined) return excess ?? refusal("NOEPOCH", "");
  return server.role === "master" ? excess : refusal("REPLICA", server.role);
}

/** As `checkServer`, before a record is made: what no majority of its nodes could have is not begun. */
export function checkNewServer(context: StepContext, nodeCount: number): Refusal | undefined {
  const unfit = checkServer(context, nodeCount);
  // There is no record that could be recovered with more nodes.
  return unfit?.code === "NODES" ? refusal("UNCOUNTED", unfit.detail) : (unfit ?? checkQuorum(context, nodeCount));
}

/** For a count of nodes that an operator sets. */
export function checkQuorum({ server }: StepContext, nodeCount: number): Refusal | undefined {
  const [connected, quorum] = [server.connectedReplicas, quorumOf(nodeCount)];
  return connected < quorum ? refusal("QUORUM", `${connected} of ${quorum}`) : undefined;
}

function refuseSealed({ seal }: NamespaceState): Refusal {
  if (isMovedSeal(seal)) return refusal("MOVED", textOfMove(seal));
  return refusal("FORKED", 0);
}

/** Whether the store has been the same since the last step in which the record was claimed, made or sealed: it can have lost nothing. */
export function hasItsEpoch({ keys, server }: Pick<StepContext, "keys" | "server">): boolean {
  return keys.fields["ep"] === server.epoch;
}

/** The server process in an epoch: it changes with every start. */
function runIdOf(epoch: string): string | undefined {
  return epoch.split(":", 1)[0];
}

/** How often replicas were synchronized from the server. Its replication id, which also changes with the first of them, shows less. */
function syncsOf(epoch: string): string {
  return epoch.split(":").slice(2).join(":");
}

export function markIdOf({ version, highWaterMark }: NamespaceState): number {
  return ledgerIdOf(version, highWaterMark);
}

const ANY_MS = Number.MAX_SAFE_INTEGER;
const ANY_COUNT = Number.MAX_SAFE_INTEGER;

/** Returns what a step that was granted rests on, besides all that no lease changes: the checks above, as bounds. */
export function restsOn(context: StepContext, record: NamespaceState, step: StepCommand): Rest {
  const { epsMs, gapMs } = context.bounds;
  const { firstVersion, firstRun } = record.id;
  // A mark below its first run is no record of ours.
  const markIdMin = ledgerIdOf(firstVersion, firstRun) - 1;
  const sound = { markIdMin, isLedgerReached: false, highWaterMarkMax: RUN_MAX };
  const healthy = { ...sound, ageMinMs: -epsMs, ageMaxMs: gapMs, isLedgerReached: true };
  switch (step.step) {
    case "lease": {
      const ceiling = ceilingAt(record.id, record.version, clocksOf(context).earliestMs);
      const known = Math.max(markIdMin, step.floor, step.provenRun);
      return {
        storeAheadMaxMs: epsMs,
        rising: { ...healthy, markIdMin: known, highWaterMarkMax: Math.min(ceiling, RUN_MAX) },
      };
    }
    case "heartbeat":
      return { storeAheadMaxMs: epsMs, rising: { ...healthy, markIdMin: Math.max(markIdMin, step.floor) } };
    case "seal":
      if (isMovedSeal(step.seal)) {
        // A ledger that is above the mark may name a version that the new store leases: then nothing at all may have changed.
        const anyAge = { ...sound, ageMinMs: -ANY_MS, ageMaxMs: ANY_MS, isLedgerReached: true };
        return {
          storeAheadMaxMs: ANY_MS,
          rising: context.keys.ledgerMark > markIdOf(record) ? undefined : anyAge,
        };
      }
      return { storeAheadMaxMs: epsMs, rising: { ...healthy, markIdMin: Math.max(markIdMin, step.floor) } };
    case "claim": {
      const ageMaxMs = step.isSilenceAccepted ? ANY_MS : SILENCE_MAX_MS;
      return { storeAheadMaxMs: epsMs, rising: { ...sound, ageMinMs: -epsMs, ageMaxMs } };
    }
    case "suspect":
      return { storeAheadMaxMs: ANY_MS, replicasMax: ANY_COUNT, rising: undefined };
    default:
      return { storeAheadMaxMs: epsMs, rising: undefined };
  }
}
