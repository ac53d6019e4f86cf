/** Which leases of a ledger are asked for, and where in it they can stand. Pure, but for one look for the first lease of a time. */
import { type KnownRunState, type LedgerEntry, labelIn, ledgerIdOf } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./ledger/lease-identity.js";
import type { LedgerReader } from "./store.js";

/** A lease must pass all that are given. */
export interface LedgerFilter {
  /** Name of the holder. */
  readonly holder?: string | undefined;
  readonly host?: string | undefined;
  /** Labels as `name=value`. */
  readonly label?: readonly string[] | undefined;
  /** What the ledger says of the lease as a whole. */
  readonly state?: KnownRunState | undefined;
  /** Leased at this time or later. */
  readonly leasedFromMs?: number | undefined;
  /** Leased before this time. */
  readonly leasedToMs?: number | undefined;
  /** Ledger ids: leases that hold one of these runs. */
  readonly fromRun?: number | undefined;
  readonly toRun?: number | undefined;
}

/** Whether leases are passed over that lie between the bounds: then nobody knows how many must be looked at for one. */
export function isSelective({ holder, host, label, state }: LedgerFilter): boolean {
  return [holder, host, label, state].some((given) => given !== undefined);
}

export function passes(filter: LedgerFilter): (entry: LedgerEntry) => boolean {
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

/** That it is older than all that is asked for, and with it every lease before it. */
export function isBefore({ leasedFromMs = 0, fromRun = 0 }: LedgerFilter, entry: LedgerEntry): boolean {
  return entry.leasedAtMs < leasedFromMs || lastLedgerIdOf(entry) < fromRun;
}

/** That it is newer than all that is asked for, and with it every lease after it. */
export function isBeyond({ leasedToMs, toRun }: LedgerFilter, entry: LedgerEntry): boolean {
  const { leasedAtMs, version, firstRun } = entry;
  const isTooLate = leasedToMs !== undefined && leasedAtMs >= leasedToMs;
  return isTooLate || (toRun !== undefined && ledgerIdOf(version, firstRun) > toRun);
}

/** What stands in the ledger for the last run of the first lease at a time or later; undefined when there is none. */
export async function ledgerIdSince(
  ledger: LedgerReader,
  namespace: string,
  timeMs: number,
): Promise<number | undefined> {
  const first = await ledger.firstLeaseSince(namespace, timeMs);
  return first && lastLedgerIdOf(first);
}

/** What the ledger says of a lease as a whole: its holder's last word. */
export function stateOf({ progress }: LedgerEntry): KnownRunState {
  return progress?.state ?? "unreported";
}
