/**
 * The record of a namespace as it is stored: text fields with a checksum, the same in every store. Rejects what no step of ours wrote.
 * Guarantees: G5 (docs/guarantees.md).
 */
import { hash } from "node:crypto";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { type Refusal, refusal } from "./refusals.js";
import { isMovedSeal, parseStoreId, type StoreIdFields } from "./store-id.js";

export const SCHEMA = "2";

/** In the order of the checksum. */
export const RECORD_FIELDS = ["v", "ns", "sid", "ver", "c", "t", "ep", "g", "p", "n", "rk", "ph"] as const;

/** A record as it is stored. `k` is the checksum. */
export type StoredFields = Readonly<Record<(typeof RECORD_FIELDS)[number] | "k", string>>;

/** What a store may hold instead of a record: each field may be missing or wrong. */
export type ObservedFields = Readonly<Partial<Record<string, string>>>;

export const PHASES = { open: 0, claimed: 1, sealed: 2 } as const;
/** In `ph`: no seal · sealed because two copies of the store were met. `movedSeal` makes the third. */
export const NO_SEAL = "-";
export const FORKED_SEAL = "forked";

export interface NamespaceState {
  readonly namespace: string;
  readonly storeId: string;
  readonly id: StoreIdFields;
  readonly version: number;
  /** The last run leased. */
  readonly highWaterMark: number;
  readonly changedAtMs: number;
  /** The epoch under which leasing was last claimed. */
  readonly epoch: string;
  readonly generation: number;
  readonly phase: number;
  readonly nodeCount: number;
  readonly proofKey: string;
  /** One of those above. */
  readonly seal: string;
}

/**
 * The record of a namespace; it can be read, and nothing else of it is checked. `highWaterMark` is `firstRun - 1` when nothing was leased.
 * `changedAtMs` is the time of the last write, and never goes back, even when the clock does. `proofKey` never leaves the coordinator.
 */
export interface NamespaceRecord
  extends Omit<NamespaceState, "id" | "epoch">,
    Pick<StoreIdFields, "firstVersion" | "firstRun"> {}

const WHOLE = /^\d{1,15}$/;
const TIME_MAX_MS = 1e15 - 1;
export const NODE_COUNT_MAX = 99;
const EPOCH_PATTERN = /^[0-9a-zA-Z:-]{1,128}$/;
export const PROOF_KEY_PATTERN = /^[0-9a-f]{64}$/;
export const GENERATION_MAX = 1e15 - 1;
/** The generations that `recover` may write: one in so many, and one for so much time. */
const RECOVERED_GENERATION_STEP = 1_000;
const RECOVERED_EVERY_MS = 10;

/**
 * Returns the least generation that `recover` writes over a record of a generation, at a time if that is given: a multiple of a thousand. All other
 * steps add one, so they don't reach it, also from a state that was put back. By the clock, recoveries of one such state are in order, too.
 */
export function recoveredGenerationAfter(generation: number, timeMs = 0): number {
  const passed = Math.floor(generation / RECOVERED_GENERATION_STEP) + 1;
  return Math.max(passed, Math.ceil(timeMs / RECOVERED_EVERY_MS)) * RECOVERED_GENERATION_STEP;
}

/**
 * Returns how many other nodes must acknowledge a step before it counts: then every majority that could promote a node includes one that has
 * the step. A single node has no others.
 */
export function quorumOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2);
}

/** Parses a whole number of at most 15 digits, up to `max`; undefined for every other text. */
function wholeIn(text: string | undefined, max: number): number | undefined {
  if (text === undefined || !WHOLE.test(text)) return undefined;
  const number = Number(text);
  return number <= max ? number : undefined;
}

export function checksumOf(fields: ObservedFields): string {
  return hash("sha1", RECORD_FIELDS.map((name) => fields[name] ?? "").join("\n"));
}

/** Parses a record, or returns the refusal. */
export function readRecord(found: ObservedFields, namespace: string): NamespaceState | Refusal {
  if (found["v"] === undefined) return refusal("CORRUPT", "the record has no schema version");
  if (found["v"] !== SCHEMA) return refusal("VERSION", found["v"]);
  const id = parseStoreId(found["sid"] ?? "");
  const version = wholeIn(found["ver"], VERSION_MAX);
  const highWaterMark = wholeIn(found["c"], RUN_MAX);
  const changedAtMs = wholeIn(found["t"], TIME_MAX_MS);
  const generation = wholeIn(found["g"], GENERATION_MAX);
  const phase = wholeIn(found["p"], PHASES.sealed);
  const nodeCount = wholeIn(found["n"], NODE_COUNT_MAX);
  const { ns = "", sid = "", ep = "", rk = "", ph = "" } = found;
  if (
    id === undefined ||
    version === undefined ||
    highWaterMark === undefined ||
    changedAtMs === undefined ||
    generation === undefined ||
    phase === undefined ||
    nodeCount === undefined ||
    nodeCount < 1 ||
    !EPOCH_PATTERN.test(ep) ||
    !PROOF_KEY_PATTERN.test(rk) ||
    !(ph === NO_SEAL || ph === FORKED_SEAL || isMovedSeal(ph))
  ) {
    return refusal("CORRUPT", "a field of the record is missing or can't be");
  }
  if (found["k"] !== checksumOf(found)) return refusal("CORRUPT", "the checksum of the record is wrong");
  if (ledgerIdOf(version, highWaterMark) < ledgerIdOf(id.firstVersion, id.firstRun) - 1)
    return refusal("CORRUPT", "the mark is below the first run");
  if (ns !== namespace) return refusal("FOREIGN", sid);
  return {
    namespace,
    storeId: sid,
    id,
    version,
    highWaterMark,
    changedAtMs,
    epoch: ep,
    generation,
    phase,
    nodeCount,
    proofKey: rk,
    seal: ph,
  };
}

/** Returns the fields of a record, without the checksum. */
export function fieldsOf(record: NamespaceState): Omit<StoredFields, "k"> {
  return {
    v: SCHEMA,
    ns: record.namespace,
    sid: record.storeId,
    ver: String(record.version),
    c: String(record.highWaterMark),
    t: String(record.changedAtMs),
    ep: record.epoch,
    g: String(record.generation),
    p: String(record.phase),
    n: String(record.nodeCount),
    rk: record.proofKey,
    ph: record.seal,
  };
}

/** Returns the fields to store for a record. */
export function storedFields(record: NamespaceState): StoredFields {
  const fields = fieldsOf(record);
  return { ...fields, k: checksumOf(fields) };
}
