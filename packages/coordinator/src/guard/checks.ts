/**
 * When a store may not be believed: the tests that every step of the guard begins with, in the order in which they refuse.
 * Pure; lua/guard.lua says the same for Redis.
 * Guarantees: G3, G6 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { type Bounds, RELEASED_AT_MS, SILENCE_MAX_MS } from "./bounds.js";
import type { FoundKeys, FoundServer } from "./found.js";
import { isMovedSeal, textOfMove } from "./moved-seal.js";
import { type GuardRecord, PHASES, readRecord } from "./record.js";
import { isRefusal, type Refusal, refusal } from "./refusal.js";

/** All that a decision looks at. */
export interface Situation {
  readonly namespace: string;
  readonly keys: FoundKeys;
  readonly server: FoundServer;
  /** The coordinator's clock. */
  readonly nowMs: number;
  readonly bounds: Pick<Bounds, "epsMs" | "gapMs">;
}

/**
 * The record, when it is ours, the server is the one to ask, and no clock lies. A record that has `ownSeal` passes, however
 * long it was silent: nothing was leased from it meanwhile.
 */
export function ours(
  situation: Situation,
  step: { readonly storeId: string; readonly isSilenceAccepted: boolean },
  ownSeal?: string,
): GuardRecord | Refusal {
  const { keys, namespace } = situation;
  if (keys.record === "none") return refusal("EMPTY", "no record");
  if (keys.record === "other") return refusal("CORRUPT", "the record is no hash");
  const record = readRecord(keys.fields, namespace);
  if (isRefusal(record)) return record;
  if (keys.expires) return refusal("CORRUPT", "the record has a time to live");
  const ledgerFault = faultOfLedger(keys);
  if (ledgerFault !== undefined) return ledgerFault;
  if (record.storeId !== step.storeId) return refusal("FOREIGN", record.storeId);
  const unfit = faultOfServer(situation, record.nodeCount) ?? faultOfClocks(situation);
  if (unfit !== undefined) return unfit;
  if (record.phase === PHASES.sealed) {
    return record.seal === ownSeal ? record : refusalOfSeal(record);
  }
  return faultOfSilence(situation, record, step.isSilenceAccepted) ?? record;
}

/** The record, when the store still remembers everything, as far as anybody can tell. */
export function undoubted(
  situation: Situation,
  step: {
    readonly storeId: string;
    readonly isSilenceAccepted: boolean;
    readonly floor: number;
    readonly generationMin: number;
  },
): GuardRecord | Refusal {
  const record = ours(situation, step);
  return isRefusal(record) ? record : (faultOfMemory(situation, record, step) ?? record);
}

/** What speaks against a record of ours, for a caller who remembers that much. */
export function faultOfMemory(
  situation: Situation,
  record: GuardRecord,
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

function faultOfLedger({ ledger, holders }: FoundKeys): Refusal | undefined {
  if (ledger === "other") return refusal("CORRUPT", "the ledger is no stream");
  if (holders === "other") return refusal("CORRUPT", "the holders are no hash");
  return undefined;
}

export function faultOfServer({ server }: Situation, nodeCount: number): Refusal | undefined {
  if (server.epoch === undefined) return refusal("NOEPOCH", "");
  if (server.role !== "master") return refusal("REPLICA", server.role);
  if (server.connectedReplicas > nodeCount - 1) return refusal("NODES", server.connectedReplicas);
  return undefined;
}

export function faultOfClocks(situation: Situation): Refusal | undefined {
  const { server, nowMs, bounds } = situation;
  if (Math.abs(server.timeMs - nowMs) > bounds.epsMs) return refusal("CLOCK", server.timeMs - nowMs);
  if (clocksOf(situation).latestMs < RELEASED_AT_MS) return refusal("CLOCK", 0);
  return undefined;
}

export function faultOfSilence(situation: Situation, record: GuardRecord, isAccepted: boolean): Refusal | undefined {
  const { latestMs } = clocksOf(situation);
  const backMs = record.changedAtMs - situation.bounds.epsMs - latestMs;
  if (backMs > 0) return refusal("CLOCKBACK", backMs);
  const silenceMs = latestMs - record.changedAtMs;
  return silenceMs > SILENCE_MAX_MS && !isAccepted ? refusal("OPERATOR", "silence") : undefined;
}

function refusalOfSeal({ seal }: GuardRecord): Refusal {
  if (isMovedSeal(seal)) return refusal("MOVED", textOfMove(seal));
  return refusal("FORKED", 0);
}

export function clocksOf({ server, nowMs }: Situation): { readonly earliestMs: number; readonly latestMs: number } {
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

export function markIdOf({ version, mark }: GuardRecord): number {
  return ledgerIdOf(version, mark);
}
