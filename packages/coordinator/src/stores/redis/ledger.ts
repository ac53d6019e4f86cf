/**
 * How the ledger stands in Redis: lua/entry.lua and lua/reports.lua say how it is written down; here it is read, and the parameters of the
 * scripts that change it are made. Reading takes plain commands: a script would hold up lease requests.
 */
import { LEDGER_ID_MAX, type Progress, runOfLedgerId } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../../errors.js";
import { lastLedgerIdOf } from "../../ledger/lease-identity.js";
import type { LeaseQuery, LedgerTrim, Retention } from "../store.js";
import { granteeIn, holderJsonOf, LOST_NAME, ledgerEntriesOf, wholeIn } from "../stored-shapes.js";
import { wholesIn } from "./changes.js";
import type { RedisClient } from "./connection.js";
import type { NamespaceKeys } from "./scripts.js";

export type ScriptParameter = string | number | Buffer;

/** The ledger id of the first lease at a time or later; null for none. */
type FirstSince = (timeMs: number) => Promise<number | null>;

type Entry = readonly [id: string, fields: readonly string[]];

/** As the entries name it; its holder by a number. */
interface NumberedLease {
  readonly lastLedgerId: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
  readonly holder: string;
  readonly nonce: string;
}

/** @throws CoordinatorError `store_corrupt` for what no coordinator wrote. */
export async function readLeases(
  redis: RedisClient,
  keys: NamespaceKeys,
  query: LeaseQuery,
  firstSince: FirstSince,
): Promise<readonly LedgerEntry[]> {
  const leases = (await entriesOf(redis, keys.ledger, query, firstSince)).map(leaseIn);
  if (leases.length === 0) return [];
  const numbers = [...new Set(leases.map(({ holder }) => holder))];
  const fields = [...new Set(leases.map(({ lastLedgerId }) => reportPlaceOf(lastLedgerId).field))];
  const [holders, reports] = await Promise.all([
    redis.hmget(keys.holders, ...numbers),
    redis.hmgetBuffer(keys.reports, ...fields.map(String)),
  ]);
  const jsonOf = new Map(numbers.map((number, at) => [number, holders[at]]));
  // The scripts change the first report on a lease: where another program left two, that one is read.
  const progressOf = new Map(reports.flatMap((packed, at) => progressIn(fields[at] ?? 0, packed)).reverse());
  return ledgerEntriesOf(
    leases.map(({ lastLedgerId, runCount, leasedAtMs, holder, nonce }) => {
      const holderJson = jsonOf.get(holder);
      return { lastLedgerId, runCount, leasedAtMs, holderJson, nonce, progress: progressOf.get(lastLedgerId) ?? null };
    }),
  );
}

/** In one reply: lease requests wait while the server makes it. */
const HOLDERS_PER_STEP = 500;

/** Reads the holders by their numbers, which begin at 1. With gaps, for which another program is to blame, any name may be among them. */
export async function mayHaveHolder(redis: RedisClient, key: string, name: string): Promise<boolean> {
  if (name === LOST_NAME) return true;
  const count = Math.ceil((await redis.hlen(key)) / 2);
  for (let first = 1; first <= count; first += HOLDERS_PER_STEP) {
    const length = Math.min(HOLDERS_PER_STEP, count - first + 1);
    const numbers = Array.from({ length }, (_, index) => String(first + index));
    const found = await redis.hmget(key, ...numbers);
    if (found.some((json) => !json || granteeIn(json).holder.name === name)) return true;
  }
  return false;
}

async function entriesOf(
  redis: RedisClient,
  key: string,
  { from, sinceMs, direction, limit }: LeaseQuery,
  firstSince: FirstSince,
): Promise<readonly Entry[]> {
  if (direction === "oldest_first") {
    const first = sinceMs === undefined ? Math.max(from ?? 0, 0) : await firstSince(sinceMs);
    return first === null ? [] : await redis.xrange(key, `${first}-0`, "+", "COUNT", limit);
  }
  const newest = Math.min(from ?? LEDGER_ID_MAX, LEDGER_ID_MAX);
  if (from !== undefined) {
    // Where all entries lie above, XREVRANGE would walk through every one of them: what is older was trimmed.
    const [oldest] = await redis.xrange(key, "-", "+", "COUNT", 1);
    if (oldest === undefined || ledgerIdIn(oldest) > newest) return [];
  }
  return await redis.xrevrange(key, `${newest}-0`, "-", "COUNT", limit);
}

function leaseIn(entry: Entry): NumberedLease {
  const [n, runCount, t, leasedAtMs, h, holder = "", x, nonce = ""] = entry[1];
  const numbers = wholesIn({ runCount, leasedAtMs });
  if (numbers === undefined || n !== "n" || t !== "t" || h !== "h" || x !== "x")
    throw corrupt(`entry ${entry[0]} of the ledger is none of ours`);
  return { lastLedgerId: ledgerIdIn(entry), ...numbers, holder, nonce };
}

function ledgerIdIn([id]: Entry): number {
  const ledgerId = wholeIn(id.replace(/-0$/, ""), LEDGER_ID_MAX);
  if (ledgerId === undefined) throw corrupt(`entry ${id} of the ledger is none of ours`);
  return ledgerId;
}

/**
 * A report: ledger id of the lease's last run modulo 128 (1 byte), runs from the reported run to the last one (1), last sequence + 1 (2), state
 * (1), time: seconds (4), milliseconds (2); big endian. Those on leases of 128 ledger ids share a field, so that two leases of the greatest
 * size do: a field takes more memory than the reports in it. Not more: each report writes its whole field again.
 */
const REPORT_BYTES = 11;
const LEDGER_IDS_PER_FIELD = 128;
const REPORT_TIME_MAX_MS = 2 ** 32 * 1_000 - 1;
const STATES: readonly Progress["state"][] = ["open", "exhausted", "closed", "discarded", "skipped"];

function reportPlaceOf(lastLedgerId: number): { readonly field: number; readonly first: number } {
  return { field: Math.floor(lastLedgerId / LEDGER_IDS_PER_FIELD), first: lastLedgerId % LEDGER_IDS_PER_FIELD };
}

/** The reports in a field, by the ledger id of the lease's last run. */
function progressIn(field: number, packed: Buffer | null): (readonly [number, Progress])[] {
  if (packed === null) return [];
  const count = packed.length / REPORT_BYTES;
  if (!Number.isInteger(count)) throw corrupt("a report is cut short");
  return Array.from({ length: count }, (_, index) => {
    const at = index * REPORT_BYTES;
    const first = packed.readUInt8(at);
    const used = packed.readUInt16BE(at + 2);
    const state = STATES[packed.readUInt8(at + 4)];
    const ms = packed.readUInt16BE(at + 9);
    if (first >= LEDGER_IDS_PER_FIELD || state === undefined || ms > 999) throw corrupt("a report is none of ours");
    const lastLedgerId = field * LEDGER_IDS_PER_FIELD + first;
    const { run } = runOfLedgerId(lastLedgerId - packed.readUInt8(at + 1));
    const reportedAtMs = packed.readUInt32BE(at + 5) * 1_000 + ms;
    return [lastLedgerId, { run, lastSequence: used === 0 ? null : used - 1, state, reportedAtMs }];
  });
}

/** Empty for no report. */
function reportOf(lastLedgerId: number, progress: Progress | null): Buffer {
  if (progress === null) return Buffer.alloc(0);
  const { run, lastSequence, state, reportedAtMs } = progress;
  const report = Buffer.alloc(REPORT_BYTES);
  report.writeUInt8(reportPlaceOf(lastLedgerId).first, 0);
  report.writeUInt8(runOfLedgerId(lastLedgerId).run - run, 1);
  report.writeUInt16BE(lastSequence === null ? 0 : lastSequence + 1, 2);
  report.writeUInt8(STATES.indexOf(state), 4);
  // A clock may have been wrong, and a report must not end a move.
  const timeMs = Math.min(Math.max(Math.trunc(reportedAtMs), 0), REPORT_TIME_MAX_MS);
  report.writeUInt32BE(Math.floor(timeMs / 1_000), 5);
  report.writeUInt16BE(timeMs % 1_000, 9);
  return report;
}

/** Of lua/report.lua. */
export function reportParametersOf(lease: LedgerEntry, progress: Progress): readonly ScriptParameter[] {
  const lastLedgerId = lastLedgerIdOf(lease);
  const { field, first } = reportPlaceOf(lastLedgerId);
  return [lastLedgerId, field, first, reportOf(lastLedgerId, lease.progress), reportOf(lastLedgerId, progress)];
}

/** Of lua/append.lua, for each lease. */
export function appendParametersOf(lease: LedgerEntry): readonly ScriptParameter[] {
  const { runCount, leasedAtMs, nonce, progress } = lease;
  const lastLedgerId = lastLedgerIdOf(lease);
  const { field } = reportPlaceOf(lastLedgerId);
  const words = [lastLedgerId, runCount, leasedAtMs, nonce, field, holderJsonOf(lease)];
  return [words.join(" "), reportOf(lastLedgerId, progress)];
}

/** Of lua/trim.lua. */
export function trimParametersOf(trim: LedgerTrim): readonly ScriptParameter[] {
  const { record, trimmedThrough, through, leasedAtMs, leases } = trim;
  const sameRecord = record === undefined ? ["", "", ""] : [record.storeId, record.phase, record.seal];
  const named = leases.flatMap((lease) => {
    const lastLedgerId = lastLedgerIdOf(lease);
    const { field, first } = reportPlaceOf(lastLedgerId);
    return [`${lastLedgerId}-0 ${field} ${first}`, reportOf(lastLedgerId, lease.progress)];
  });
  return [sameRecord.join("\n"), trimmedThrough, through, leasedAtMs, ...named];
}

/** What a script that compares answers: whether it changed anything. */
export function changedIn(reply: unknown): boolean | undefined {
  return reply === 0 || reply === 1 ? reply === 1 : undefined;
}

/** What lua/since.lua answers. */
export function sinceIn(reply: unknown): number | null | undefined {
  return reply === null ? null : wholeIn(typeof reply === "string" ? reply : undefined);
}

/** The fields of the retention, in the order in which `retentionIn` reads them. */
export const RETENTION_FIELDS = ["days", "through", "leasedAtMs"] as const;

/** @throws CoordinatorError `store_corrupt` when a field is no whole number. */
export function retentionIn(fields: readonly (string | null)[]): Retention {
  const [days, through, leasedAtMs] = fields.map((field) => field ?? "0");
  const retention = wholesIn({ days, through, leasedAtMs });
  if (retention === undefined) throw corrupt("the retention of its leases is not a whole number");
  return retention;
}

function corrupt(reason: string): CoordinatorError {
  return new CoordinatorError("store_corrupt", `the ledger in Redis can't be read: ${reason}`);
}
