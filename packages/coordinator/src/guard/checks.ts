/**
 * When a store may not be believed: the tests that every step of the guard begins with, in the order in which they refuse.
 * Pure; lua/guard.lua says the same for Redis.
 * Guarantees: G3, G6 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { type Bounds, RELEASED_AT_MS, SILENCE_MAX_MS } from "./bounds.js";
import { type NamespaceState, type ObservedFields, PHASES, readRecord } from "./record.js";
import { isRefusal, type Refusal, refusal } from "./refusals.js";
import { isMovedSeal, textOfMove } from "./seals.js";

/** All that a decision looks at. */
export interface StepContext {
  readonly namespace: string;
  readonly keys: ObservedKeys;
  readonly server: ObservedServer;
  /** The coordinator's clock. */
  readonly nowMs: number;
  readonly bounds: Pick<Bounds, "epsMs" | "gapMs">;
}

/**
 * The record, when it is checkOwned, the server is the one to ask, and no clock lies. A record that has `ownSeal` passes, however
 * long it was silent: nothing was leased from it meanwhile.
 */
export function checkOwned(
  situation: StepContext,
  step: { readonly storeId: string; readonly isSilenceAccepted: boolean },
  ownSeal?: string,
): NamespaceState | Refusal {
  const { keys, namespace } = situation;
  if (keys.record === "none") return refusal("EMPTY", "no record");
  if (keys.record === "other") return refusal("CORRUPT", "the record is no hash");
  const record = readRecord(keys.fields, namespace);
  if (isRefusal(record)) return record;
  if (keys.expires) return refusal("CORRUPT", "the record has a time to live");
  const ledgerFault = faultOfLedger(keys);
  if (ledgerFault !== undefined) return ledgerFault;
  if (record.storeId !== step.storeId) return refusal("FOREIGN", record.storeId);
  const unfit = checkServer(situation, record.nodeCount) ?? checkClocks(situation);
  if (unfit !== undefined) return unfit;
  if (record.phase === PHASES.sealed) {
    return record.seal === ownSeal ? record : refusalOfSeal(record);
  }
  return checkHeartbeat(situation, record, step.isSilenceAccepted) ?? record;
}

/** The record, when the store still remembers everything, as far as anybody can tell. */
export function checkHealthy(
  situation: StepContext,
  step: {
    readonly storeId: string;
    readonly isSilenceAccepted: boolean;
    readonly floor: number;
    readonly generationMin: number;
  },
): NamespaceState | Refusal {
  const record = checkOwned(situation, step);
  return isRefusal(record) ? record : (checkCheckpoint(situation, record, step) ?? record);
}

/** What speaks against a record of checkOwned, for a caller who remembers that much. */
export function checkCheckpoint(
  situation: StepContext,
  record: NamespaceState,
  step: { readonly floor: number; readonly generationMin: number },
): Refusal | undefined {
  const { server, bounds, keys } = situation;
  const { latestMs } = clocksOf(situation);
  const { generation } = record;
  if (generation < step.generationMin) return refusal("STALEGEN", generation);
  if (record.epoch !== server.epoch) {
    const epoch = server.epoch ?? "";
    // One process, one node, and yet another epoch: a node that the record does not count was attached meanwhile.
    if (record.nodeCount !== 1 || runIdOf(record.epoch) !== runIdOf(epoch)) return refusal("EPOCH", generation);
    return refusal("OPERATOR", syncsOf(record.epoch) === syncsOf(epoch) ? "epoch" : "replica");
  }
  if (record.phase === PHASES.claimed) return refusal("PENDING", generation);
  if (latestMs - record.changedAtMs > bounds.gapMs) return refusal("GAP", generation);
  if (markIdOf(record) < Math.max(step.floor, keys.ledgerMark)) return refusal("ROLLBACK", generation);
  return undefined;
}

function faultOfLedger({ ledger, holders }: ObservedKeys): Refusal | undefined {
  if (ledger === "other") return refusal("CORRUPT", "the ledger is no stream");
  if (holders === "other") return refusal("CORRUPT", "the holders are no hash");
  return undefined;
}

export function checkServer({ server }: StepContext, nodeCount: number): Refusal | undefined {
  if (server.epoch === undefined) return refusal("NOEPOCH", "");
  if (server.role !== "master") return refusal("REPLICA", server.role);
  if (server.connectedReplicas > nodeCount - 1) return refusal("NODES", server.connectedReplicas);
  return undefined;
}

export function checkClocks(situation: StepContext): Refusal | undefined {
  const { server, nowMs, bounds } = situation;
  if (Math.abs(server.timeMs - nowMs) > bounds.epsMs) return refusal("CLOCK", server.timeMs - nowMs);
  if (clocksOf(situation).latestMs < RELEASED_AT_MS) return refusal("CLOCK", 0);
  return undefined;
}

export function checkHeartbeat(
  situation: StepContext,
  record: NamespaceState,
  isAccepted: boolean,
): Refusal | undefined {
  const { latestMs } = clocksOf(situation);
  const backMs = record.changedAtMs - situation.bounds.epsMs - latestMs;
  if (backMs > 0) return refusal("CLOCKBACK", backMs);
  const silenceMs = latestMs - record.changedAtMs;
  return silenceMs > SILENCE_MAX_MS && !isAccepted ? refusal("OPERATOR", "silence") : undefined;
}

function refusalOfSeal({ seal }: NamespaceState): Refusal {
  if (isMovedSeal(seal)) return refusal("MOVED", textOfMove(seal));
  return refusal("FORKED", 0);
}

export function clocksOf({ server, nowMs }: StepContext): { readonly earliestMs: number; readonly latestMs: number } {
  return { earliestMs: Math.min(server.timeMs, nowMs), latestMs: Math.max(server.timeMs, nowMs) };
}

/** The process in an epoch: it changes with every start of the server. */
function runIdOf(epoch: string): string | undefined {
  return epoch.split(":", 1)[0];
}

/** How often replicas were synchronized from the server. Its replication id changes with the first of them, too, and says less. */
function syncsOf(epoch: string): string {
  return epoch.split(":").slice(2).join(":");
}

export function markIdOf({ version, mark }: NamespaceState): number {
  return ledgerIdOf(version, mark);
}

export interface ObservedKeys {
  /** `other`: a key of a type that is not ours. */
  readonly record: "none" | "hash" | "other";
  readonly fields: ObservedFields;
  /** The record has a time to live. */
  readonly expires: boolean;
  readonly ledger: "none" | "stream" | "other";
  /** Ledger id of the newest ledger entry; 0 for none. */
  readonly ledgerMark: number;
  readonly holders: "none" | "hash" | "other";
}

export interface ObservedServer {
  /** The store's clock. */
  readonly timeMs: number;
  /** `master`, or anything else. */
  readonly role: string;
  /** One unbroken life of the store, as it is now; undefined when it can't be told. */
  readonly epoch: string | undefined;
  readonly connectedReplicas: number;
}
