/**
 * How the ledger is written down in Redis: keys, stream entries, packed reports. Pure; the scripts in lua/ write what is
 * read here.
 */
import { type LedgerEntry, type Progress, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { lastLedgerIdOf } from "../lease-copy.js";
import type { LeaseCopy } from "../store.js";
import { holderJsonOf, type LedgerRange, ledgerEntryOf } from "./ledger-entry.js";

export interface NamespaceKeys {
  readonly record: string;
  readonly ledger: string;
  readonly holders: string;
  readonly reports: string;
}

/** The braces put all keys of a namespace in one hash slot, so that one script may touch them in a Cluster. */
export function keysOf(prefix: string, namespace: string): NamespaceKeys {
  const key = (name: string) => `${prefix}{${namespace}}:${name}`;
  return { record: key("record"), ledger: key("ledger"), holders: key("holders"), reports: key("reports") };
}

/** A stream entry as Redis answers it. */
export type StreamEntry = readonly [id: string, fields: readonly string[]];

export interface KeptLease extends LedgerRange {
  readonly leasedAtMs: number;
  /** Number of the holder in the holders hash. */
  readonly holder: string;
  readonly nonce: string;
}

export function leaseOf([id, fields]: StreamEntry): KeptLease {
  const field = (name: string) => {
    const value = fields[fields.indexOf(name) + 1];
    if (value === undefined || !fields.includes(name)) throw corrupt(`entry ${id} has no field "${name}"`);
    return value;
  };
  return {
    lastLedgerId: Number(id.slice(0, id.indexOf("-"))),
    runCount: Number(field("n")),
    leasedAtMs: Number(field("t")),
    holder: field("h"),
    nonce: field("x"),
  };
}

export function entryOf(lease: KeptLease, holderJson: string | null, progress: Progress | null): LedgerEntry {
  if (holderJson === null) throw corrupt(`holder ${lease.holder} is missing`);
  return ledgerEntryOf({ ...lease, holderJson, progress });
}

const LEASES_PER_FIELD = 64;
const REPORT_BYTES = 11;
const STATES: readonly Progress["state"][] = ["open", "exhausted", "closed"];

/** The field of the reports hash that holds the report on a lease. */
export function reportFieldOf(lastLedgerId: number): string {
  return String(Math.floor(lastLedgerId / LEASES_PER_FIELD));
}

/** The report on a lease out of its field, as lua/report.lua packed it. */
export function reportIn(packed: Buffer | null, lastLedgerId: number): Progress | null {
  if (packed === null) return null;
  for (let at = 0; at + REPORT_BYTES <= packed.length; at += REPORT_BYTES) {
    if (packed.readUInt8(at) !== lastLedgerId % LEASES_PER_FIELD) continue;
    const used = packed.readUInt16BE(at + 2);
    return {
      run: runOfLedgerId(lastLedgerId - packed.readUInt8(at + 1)).run,
      lastSequence: used === 0 ? null : used - 1,
      state: stateAt(packed.readUInt8(at + 4)),
      reportedAtMs: packed.readUInt32BE(at + 5) * 1000 + packed.readUInt16BE(at + 9),
    };
  }
  return null;
}

/** A lease as lua/import.lua takes it. */
export function importParametersOf({ entry, leaseNonce }: LeaseCopy): readonly (string | number)[] {
  const { firstRun, runCount, leasedAtMs, progress } = entry;
  const lease = [lastLedgerIdOf(entry), runCount, leasedAtMs, holderJsonOf(entry), leaseNonce];
  if (progress === null) return [...lease, "-", "-", "-", "-"];
  const { run, lastSequence, state, reportedAtMs } = progress;
  const used = lastSequence === null ? 0 : lastSequence + 1;
  return [...lease, firstRun + runCount - 1 - run, used, stateNumber(state), reportedAtMs];
}

export function stateNumber(state: Progress["state"]): number {
  return STATES.indexOf(state);
}

function stateAt(index: number): Progress["state"] {
  const state = STATES[index];
  if (state === undefined) throw corrupt(`a report has state ${index}`);
  return state;
}

function corrupt(reason: string): CoordinatorError {
  return new CoordinatorError("store_corrupt", `the ledger in Redis can't be read: ${reason}`);
}
