/**
 * Reads the ledger with filters: in pages, newest first, or as an export, oldest first. Uses the plain listing only, so that every store filters
 * the same way, and bounds the work of one page: a rare holder is found by following the cursor.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type KnownRunState, labelIn, ledgerIdOf, nameOfLedgerId, parseRunName } from "@callnumber/protocol/api";
import { CALL_NUMBER_BITS, SEQUENCE_BITS } from "@callnumber/protocol/codec";
import type { LedgerEntry, TrimmedLeases } from "@callnumber/protocol/schemas";
import { trimmedIn } from "../retention/trimmed-leases.js";
import type { LeaseQuery, LedgerReader, Retention } from "../stores/store.js";
import { isSkipped, lastLedgerIdOf, leaseHoldsRun } from "./lease-identity.js";

/** The most entries that are read for one page. */
const SCAN_MAX = 10_000;
/** Entries in one read: lease requests wait meanwhile. */
const SCAN_STEP = 100;
const ABOVE_ALL_LEDGER_IDS = 2 ** (CALL_NUMBER_BITS - SEQUENCE_BITS);

type LeaseReader = Pick<LedgerReader, "leases">;

/** Returns the lease that holds a run; undefined when none in the store does. */
export async function findLease(
  ledger: LeaseReader,
  namespace: string,
  ledgerId: number,
): Promise<LedgerEntry | undefined> {
  const [lease] = await ledger.leases(namespace, { from: ledgerId, direction: "oldest_first", limit: 1 });
  return lease !== undefined && leaseHoldsRun(lease, ledgerId) ? lease : undefined;
}

/** Returns the newest lease; undefined when there is none. */
export async function newestLease(ledger: LeaseReader, namespace: string): Promise<LedgerEntry | undefined> {
  for await (const leases of leasesInSteps(ledger, namespace, { direction: "newest_first", limit: 2 })) {
    const newest = leases.find((entry) => !isSkipped(entry));
    if (newest !== undefined) return newest;
  }
  return undefined;
}

/** Returns the oldest lease granted at a time or later; undefined when there is none. */
export async function firstLeaseSince(
  ledger: LeaseReader,
  namespace: string,
  sinceMs: number,
): Promise<LedgerEntry | undefined> {
  const [lease] = await ledger.leases(namespace, { sinceMs, direction: "oldest_first", limit: 1 });
  return lease;
}

/** Reads leases up to the end of the ledger, `limit` (default 100) in each step. */
export async function* leasesInSteps(
  ledger: LeaseReader,
  namespace: string,
  { from: start, limit = SCAN_STEP, ...query }: Omit<LeaseQuery, "limit"> & { readonly limit?: number },
): AsyncGenerator<readonly LedgerEntry[], void> {
  const forward = query.direction === "oldest_first" ? 1 : -1;
  for (let from = start; ; ) {
    const leases = await ledger.leases(namespace, { ...query, from, limit });
    yield leases;
    const last = leases.at(-1);
    if (last === undefined || leases.length < limit) return;
    from = lastLedgerIdOf(last) + forward;
    // An embedded store returns without a pause: requests that wait meanwhile come first.
    await turn();
  }
}

export interface LedgerQuery extends LedgerFilter {
  /** 1 to 500. */
  readonly limit: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface LedgerPage {
  readonly leases: readonly LedgerEntry[];
  readonly nextCursor: string | null;
  /** What was trimmed, where the page reaches the end of the store's ledger and older leases were requested, too; else null. */
  readonly trimmed: TrimmedLeases | null;
}

export async function ledgerPage(ledger: LedgerReader, namespace: string, query: LedgerQuery): Promise<LedgerPage> {
  const leases: LedgerEntry[] = [];
  const isWanted = passes(query);
  if (await isOfNoHolder(ledger, namespace, query)) {
    return { leases, nextCursor: null, trimmed: trimmedWithin(query, await ledger.readRetention(namespace)) };
  }
  const start = await pageStart(ledger, namespace, query);
  const limit = isSelective(query) ? SCAN_STEP : Math.min(SCAN_STEP, query.limit);
  let scannedCount = 0;
  for await (const step of leasesInSteps(ledger, namespace, { from: start - 1, direction: "newest_first", limit })) {
    for (const entry of step) {
      if (isBefore(query, entry)) return { leases, nextCursor: null, trimmed: null };
      if (isWanted(entry)) leases.push(entry);
      scannedCount++;
      if (leases.length === query.limit || scannedCount === SCAN_MAX)
        return { leases, nextCursor: nameOfLedgerId(lastLedgerIdOf(entry)), trimmed: null };
    }
  }
  const trimmed = trimmedWithin(query, await ledger.readRetention(namespace));
  return { leases, nextCursor: null, trimmed };
}

/** No lease passes, and the ledger need not be read: that would take seconds for a large one. */
async function isOfNoHolder(ledger: LedgerReader, namespace: string, { holder }: LedgerFilter): Promise<boolean> {
  return holder !== undefined && !(await ledger.hasHolder(namespace, holder));
}

/** Null when nothing was trimmed that may pass the filter. */
function trimmedWithin({ fromRun = 0, leasedFromMs = 0 }: LedgerQuery, retention: Retention): TrimmedLeases | null {
  const { through, leasedAtMs } = retention;
  return through === 0 || through < fromRun || leasedAtMs < leasedFromMs ? null : trimmedIn(retention);
}

/** Returns the ledger id below which the page begins. */
async function pageStart(ledger: LedgerReader, namespace: string, query: LedgerQuery): Promise<number> {
  const { cursor, leasedToMs, toRun } = query;
  if (cursor !== undefined) return ledgerIdAt(cursor);
  const holding = toRun === undefined ? undefined : await findLease(ledger, namespace, toRun);
  const aboveRun = holding === undefined ? (toRun ?? ABOVE_ALL_LEDGER_IDS) + 1 : lastLedgerIdOf(holding) + 1;
  const tooLate = leasedToMs === undefined ? undefined : await ledgerIdSince(ledger, namespace, leasedToMs);
  return Math.min(aboveRun, tooLate ?? ABOVE_ALL_LEDGER_IDS);
}

function ledgerIdAt(cursor: string): number {
  const { version = 0, run } = parseRunName(cursor) ?? { run: 0 };
  return ledgerIdOf(version, run);
}

/** A lease must pass all that are given. */
export interface LedgerFilter {
  /** Name of the holder. */
  readonly holder?: string | undefined;
  readonly host?: string | undefined;
  /** Labels as `name=value`. */
  readonly label?: readonly string[] | undefined;
  /** The state of the lease as a whole. */
  readonly state?: KnownRunState | undefined;
  /** Leased at this time or later. */
  readonly leasedFromMs?: number | undefined;
  /** Leased before this time. */
  readonly leasedToMs?: number | undefined;
  /** Ledger ids: leases that hold one of these runs. */
  readonly fromRun?: number | undefined;
  readonly toRun?: number | undefined;
}

/** Whether leases between the bounds are filtered out: then it is not known how many must be read for one. */
function isSelective({ holder, host, label, state }: LedgerFilter): boolean {
  return [holder, host, label, state].some((given) => given !== undefined);
}

function passes(filter: LedgerFilter): (entry: LedgerEntry) => boolean {
  const { holder, host, state } = filter;
  const labels = filter.label?.map(labelIn) ?? [];
  return (entry) =>
    (holder === undefined || entry.holder.name === holder) &&
    (host === undefined || entry.holder.host === host) &&
    labels.every(([name, value]) => Object.hasOwn(entry.holder.labels, name) && entry.holder.labels[name] === value) &&
    (state === undefined || stateOf(entry) === state) &&
    !isBefore(filter, entry) &&
    !isBeyond(filter, entry);
}

/** Whether an entry, and with it every older one, is below the bounds. */
function isBefore({ leasedFromMs = 0, fromRun = 0 }: LedgerFilter, entry: LedgerEntry): boolean {
  return entry.leasedAtMs < leasedFromMs || lastLedgerIdOf(entry) < fromRun;
}

/** Whether an entry, and with it every newer one, is above the bounds. */
function isBeyond({ leasedToMs, toRun }: LedgerFilter, entry: LedgerEntry): boolean {
  const { leasedAtMs, version, firstRun } = entry;
  const isTooLate = leasedToMs !== undefined && leasedAtMs >= leasedToMs;
  return isTooLate || (toRun !== undefined && ledgerIdOf(version, firstRun) > toRun);
}

/** Returns the ledger id of the first lease at a time or later; undefined when there is none. */
async function ledgerIdSince(ledger: LedgerReader, namespace: string, timeMs: number): Promise<number | undefined> {
  const first = await firstLeaseSince(ledger, namespace, timeMs);
  return first && lastLedgerIdOf(first);
}

/** Returns the state of a lease as a whole, as its holder last reported it. */
function stateOf({ progress }: LedgerEntry): KnownRunState {
  return progress?.state ?? "unreported";
}

export interface ExportStep {
  /** The leases of the step that pass the filter; perhaps none. */
  readonly leases: readonly LedgerEntry[];
  /** Ledger id up to which the ledger was read. */
  readonly upToRun: number;
}

/**
 * Exports leases in steps, so that memory is bounded and lease requests come first. Ends at the newest lease of that moment; a lease that is
 * granted meanwhile is included, or is above the last `upToRun`.
 */
export async function* exportedSteps(
  ledger: LedgerReader,
  namespace: string,
  filter: LedgerFilter,
): AsyncGenerator<ExportStep, void> {
  if (await isOfNoHolder(ledger, namespace, filter)) {
    const [newest] = await ledger.leases(namespace, { direction: "newest_first", limit: 1 });
    if (newest !== undefined) yield { leases: [], upToRun: lastLedgerIdOf(newest) };
    return;
  }
  const isWanted = passes(filter);
  const above = await exportStart(ledger, namespace, filter);
  if (above === undefined) return;
  const query = { from: above + 1, direction: "oldest_first" } as const;
  for await (const leases of leasesInSteps(ledger, namespace, query)) {
    const end = leases.findIndex((lease) => isBeyond(filter, lease));
    const within = end < 0 ? leases : leases.slice(0, end);
    const last = within.at(-1);
    if (last === undefined) return;
    yield { leases: within.filter(isWanted), upToRun: lastLedgerIdOf(last) };
    if (end >= 0) return;
  }
}

/** Returns the ledger id above which the export begins; undefined when nothing is young enough. */
async function exportStart(
  ledger: LedgerReader,
  namespace: string,
  { fromRun = 0, leasedFromMs }: LedgerFilter,
): Promise<number | undefined> {
  const belowRun = Math.max(fromRun - 1, 0);
  if (leasedFromMs === undefined) return belowRun;
  const first = await ledgerIdSince(ledger, namespace, leasedFromMs);
  return first && Math.max(first - 1, belowRun);
}
