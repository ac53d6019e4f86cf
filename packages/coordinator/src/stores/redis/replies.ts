/**
 * Reads replies of our scripts, and makes the parameters of those that write the ledger; only lua/ledger.lua knows how a ledger is
 * stored. Text and whole numbers are checked here: JavaScript would convert anything to a number, and a comparison with NaN is never
 * true, so it would let everything pass. Pure.
 */

import { type Progress, runOfLedgerId } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../../errors.js";
import { lastLedgerIdOf } from "../../ledger/lease-identity.js";
import type { LedgerTrim, Retention } from "../store.js";
import { holderJsonOf, ledgerEntriesOf } from "../stored-shapes.js";

/** The strings of a reply; undefined when it is not a list of strings. */
function stringsIn(reply: unknown): readonly string[] | undefined {
  return Array.isArray(reply) && reply.every((part) => typeof part === "string") ? reply : undefined;
}

const WHOLE = /^(?:0|[1-9]\d{0,15})$/;

/** A whole number as our scripts write it, up to `max`; undefined for every other text. */
export function wholeIn(text: string | undefined, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const number = text !== undefined && WHOLE.test(text) ? Number(text) : Number.NaN;
  return number <= max ? number : undefined;
}

const MAXIMA: Readonly<Record<string, number>> = { version: VERSION_MAX, highWaterMark: RUN_MAX };

/** Whole numbers by name, each from its text; undefined when one of the texts is not such a number. */
export function wholesIn<Name extends string>(
  texts: Readonly<Record<Name, string | undefined>>,
): Readonly<Record<Name, number>> | undefined {
  const numbers: Partial<Record<Name, number>> = {};
  for (const name in texts) {
    const number = wholeIn(texts[name], MAXIMA[name]);
    if (number === undefined) return undefined;
    numbers[name] = number;
  }
  return numbers as Record<Name, number>;
}

const STATES: readonly Progress["state"][] = ["open", "exhausted", "closed", "discarded", "skipped"];

/** In place of a holder whose entry another program removed: the lease stays, and can be moved. */
const LOST_HOLDER = holderJsonOf({
  holder: { name: "unknown", host: "unknown", pid: 0, labels: { note: "the holder was lost by the store" } },
  coordinator: "unknown",
  tokenId: undefined,
});

/** The leases in a reply of lua/leases.lua. @throws CoordinatorError `store_corrupt` for any other reply. */
export function leasesIn(reply: unknown): readonly LedgerEntry[] {
  const [lines, holders] = (Array.isArray(reply) ? reply : []).map(stringsIn);
  if (lines === undefined || holders === undefined)
    throw corrupt("the reply to a query of leases is no list of leases");
  const jsonOf = new Map(
    holders.flatMap((holder, at) => (at % 2 === 0 ? [[holder, holders[at + 1] ?? ""] as const] : [])),
  );
  return ledgerEntriesOf(
    lines.map((line) => {
      const [lastLedgerId, runCount, leasedAtMs, holder = "", nonce = "", ...report] = line.split(" ");
      return {
        lastLedgerId: Number(lastLedgerId),
        runCount: Number(runCount),
        leasedAtMs: Number(leasedAtMs),
        holderJson: jsonOf.get(holder) || LOST_HOLDER,
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

/** A trim as lua/trim.lua takes it, after the namespace and the maximum of leases. */
export function trimParametersOf(trim: LedgerTrim): readonly (string | number)[] {
  const { storeId, trimmedThrough, through, leasedAtMs, leases } = trim;
  const named = leases.flatMap(({ lastLedgerId, reportedAtMs }) => [lastLedgerId, reportedAtMs ?? "-"]);
  return [storeId, trimmedThrough, through, leasedAtMs, ...named];
}

/** The fields of the retention, in the order in which `retentionIn` reads them. */
export const RETENTION_FIELDS = ["days", "through", "leasedAtMs"] as const;

/** @throws CoordinatorError `store_corrupt` when a field is no whole number. */
export function retentionIn(fields: readonly (string | null)[]): Retention {
  const [days, through, leasedAtMs] = fields.map((field) => field ?? "0");
  const retention = wholesIn({ days, through, leasedAtMs });
  if (retention === undefined) throw corrupt("the retention of its leases is no whole number");
  return retention;
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
