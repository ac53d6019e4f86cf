/**
 * Keys of a namespace in Redis, and what the scripts of lua/ are given of leases and answer of them. Pure; how a ledger is written
 * down, lua/ledger.lua alone knows.
 */
import { type LedgerEntry, type Progress, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import type { LedgerTrim, Retention } from "../store.js";
import { holderJsonOf, ledgerEntriesOf } from "./ledger-entry.js";
import { wholeIn, wordsIn } from "./redis-answer.js";

export interface NamespaceKeys {
  readonly record: string;
  readonly ledger: string;
  readonly holders: string;
  readonly reports: string;
  readonly labels: string;
  readonly retention: string;
}

/** The braces put all keys of a namespace in one hash slot, so that one script may touch them in a Cluster. */
export function keysOf(prefix: string, namespace: string): NamespaceKeys {
  const key = (name: string) => `${prefix}{${namespace}}:${name}`;
  return {
    record: key("record"),
    ledger: key("ledger"),
    holders: key("holders"),
    reports: key("reports"),
    labels: key("labels"),
    retention: key("retention"),
  };
}

/** Names that no key has, for what another program left in the place of record, ledger and holders. */
export function asideKeysOf({ record, ledger, holders }: NamespaceKeys, nonce: string): readonly string[] {
  return [record, ledger, holders].map((key) => `${key}:foreign:${nonce}`);
}

const STATES: readonly Progress["state"][] = ["open", "exhausted", "closed", "burnt"];

/** The leases in an answer of lua/leases.lua. @throws CoordinatorError `store_corrupt` for what is none. */
export function leasesIn(answer: unknown): readonly LedgerEntry[] {
  const [lines, holders] = (Array.isArray(answer) ? answer : []).map(wordsIn);
  if (lines === undefined || holders === undefined)
    throw corrupt("leases were asked for, and something else was answered");
  const jsonOf = new Map(
    Array.from({ length: holders.length / 2 }, (_, index) => [holders[2 * index], holders[2 * index + 1]]),
  );
  return ledgerEntriesOf(
    lines.map((line) => {
      const [lastLedgerId, runCount, leasedAtMs, holder, nonce = "", ...report] = line.split(" ");
      return {
        lastLedgerId: Number(lastLedgerId),
        runCount: Number(runCount),
        leasedAtMs: Number(leasedAtMs),
        holderJson: jsonOf.get(holder) ?? "",
        nonce,
        progress: progressIn(Number(lastLedgerId), report.map(Number)),
      };
    }),
  );
}

function progressIn(lastLedgerId: number, [behind, used, state, reportedAtMs]: readonly number[]): Progress | null {
  if (behind === undefined || used === undefined || state === undefined || reportedAtMs === undefined) return null;
  const lastSequence = used === 0 ? null : used - 1;
  return { run: runOfLedgerId(lastLedgerId - behind).run, lastSequence, state: stateAt(state), reportedAtMs };
}

/** A lease as lua/import.lua takes it. */
export function importParametersOf(lease: LedgerEntry): readonly (string | number)[] {
  const { firstRun, runCount, leasedAtMs, nonce, progress } = lease;
  const granted = [lastLedgerIdOf(lease), runCount, leasedAtMs, holderJsonOf(lease), nonce];
  if (progress === null) return [...granted, "-", "-", "-", "-"];
  const { run, lastSequence, state, reportedAtMs } = progress;
  const used = lastSequence === null ? 0 : lastSequence + 1;
  return [...granted, firstRun + runCount - 1 - run, used, stateNumber(state), reportedAtMs];
}

/** A trim as lua/trim.lua takes it, behind the namespace and the most leases. */
export function trimParametersOf(trim: LedgerTrim): readonly (string | number)[] {
  const { storeId, trimmedThrough, through, leasedAtMs, leases } = trim;
  const named = leases.flatMap(({ lastLedgerId, reportedAtMs }) => [lastLedgerId, reportedAtMs ?? "-"]);
  return [storeId, trimmedThrough, through, leasedAtMs, ...named];
}

/** The fields of the retention, in the order in which `retentionIn` reads them. */
export const RETENTION_FIELDS = ["days", "through", "leasedAtMs"] as const;

/** @throws CoordinatorError `store_corrupt` for what is none. */
export function retentionIn(fields: readonly (string | null)[]): Retention {
  const [days, through, leasedAtMs] = fields.map((field) => wholeIn(field ?? "0"));
  if (days === undefined || through === undefined || leasedAtMs === undefined) {
    throw corrupt("the retention of its leases is no whole number");
  }
  return { days, through, leasedAtMs };
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
