/** Copies the ledger of a namespace from one store to another, and compares them. Knows stores only as a port. */
import { runsName } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { refused } from "../guard/refusals.js";
import { isSameLease, lastLedgerIdOf } from "../ledger/lease-identity.js";
import { importLeases } from "../ledger/ledger-changes.js";
import { type Store } from "../stores/store.js";

export interface LedgerPair {
  readonly namespace: string;
  readonly source: Store;
  readonly target: Store;
  /** Leases in one read and write. */
  readonly pageLeaseCount: number;
}

export interface LedgerComparison {
  readonly leaseCount: number;
  /** How many of them the target holds; they are the oldest. */
  readonly copiedCount: number;
  /** Ledger id of the newest of those; 0 for none. */
  readonly copiedUpTo: number;
}

/**
 * Returns how much of the source's ledger the target holds, compared lease by lease; what it has trimmed counts. In a move that has
 * `begun`, the target may have more: it leased, or the source came back without its last leases.
 * @throws CoordinatorError `store_id_mismatch` when the target holds anything but the source's oldest leases.
 */
export async function compareLedgers(pair: LedgerPair, begun: boolean): Promise<LedgerComparison> {
  const { namespace, source, target, pageLeaseCount } = pair;
  const { through } = await target.readRetention(namespace);
  // In a move that has begun, the source may have come back without its last trims.
  if (!begun) await assertNotTrimmedBefore(pair, through);
  const copies = leasesOf(target, namespace, pageLeaseCount);
  let copy = (await copies.next()).value;
  let [leaseCount, copiedCount, copiedUpTo] = [0, 0, 0];
  for await (const lease of leasesOf(source, namespace, pageLeaseCount)) {
    leaseCount++;
    const isTrimmed = lastLedgerIdOf(lease) <= through;
    if (copy === undefined && !isTrimmed) continue;
    if (copy !== undefined && !isTrimmed && !isSameLease(lease, copy)) throw otherLease(namespace, copy, begun);
    copiedCount++;
    copiedUpTo = lastLedgerIdOf(lease);
    if (!isTrimmed) copy = (await copies.next()).value;
  }
  if (copy !== undefined && !begun) throw otherLease(namespace, copy, begun);
  return { leaseCount, copiedCount, copiedUpTo };
}

/** A target without its record has trimmed nothing itself: what it says it has is of another ledger that was there. */
async function assertNotTrimmedBefore({ namespace, source, target }: LedgerPair, through: number): Promise<void> {
  if (through <= (await source.readRetention(namespace)).through) return;
  if ((await target.read(namespace)).keys.record !== "none") return;
  throw new CoordinatorError(
    "store_id_mismatch",
    `the new store notes that leases of another ledger of namespace "${namespace}" were trimmed, and has no record of it. ` +
      "Move to an empty place (another ?prefix= or ?schema=)",
  );
}

/** Copies the leases after `afterLedgerId`. @throws CoordinatorError as `importLeases`. */
export async function copyLedger(
  { namespace, source, target, pageLeaseCount }: LedgerPair,
  afterLedgerId: number,
): Promise<void> {
  for await (const page of pagesOf(source, namespace, afterLedgerId, pageLeaseCount)) {
    await importLeases(target, namespace, page);
  }
}

/**
 * Copies the retention, and how far leases were trimmed, to a store that has no record yet. The files stay in place: they are named by the UUID
 * of the store id, which a move keeps.
 * @throws CoordinatorError `namespace_exists` when another process changes the new store meanwhile, or as `Store.trimLedger`.
 */
export async function copyRetention({ namespace, source, target }: LedgerPair): Promise<void> {
  const { days, through, leasedAtMs } = await source.readRetention(namespace);
  const there = await target.readRetention(namespace);
  if (there.days !== days) await target.setRetentionDays(namespace, days);
  const trimmedThrough = there.through;
  if (trimmedThrough >= through) return;
  const trim = { record: undefined, trimmedThrough, through, leasedAtMs, leases: [] };
  if (!(await target.trimLedger(namespace, trim))) throw refused("ALREADY", "the ledger was changed", namespace);
}

async function* leasesOf(store: Store, namespace: string, limit: number): AsyncGenerator<LedgerEntry, undefined> {
  for await (const page of pagesOf(store, namespace, 0, limit)) yield* page;
}

/** The pages of a ledger, oldest first; none is empty. */
async function* pagesOf(
  store: Store,
  namespace: string,
  afterLedgerId: number,
  limit: number,
): AsyncGenerator<readonly LedgerEntry[], undefined> {
  for (let newest = afterLedgerId; ; ) {
    const query = { from: newest + 1, direction: "oldest_first", limit } as const;
    const page = await store.leases(namespace, query);
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    if (page.length < limit) return;
    newest = lastLedgerIdOf(last);
  }
}

function otherLease(namespace: string, lease: LedgerEntry, begun: boolean): CoordinatorError {
  const way = begun
    ? LEDGER_LEFT
    : "If it was moved here before, use it here, and move nothing. Else choose an empty place (another ?prefix= or ?schema=)";
  return new CoordinatorError(
    "store_id_mismatch",
    `only the new store has a lease of namespace "${namespace}" (run ${runsName(lease)}, leased at ` +
      `${new Date(lease.leasedAtMs).toISOString()}): it is in use, or the old one was restored. ${way}`,
  );
}

/** What it means, and what an operator does, when the ledgers of a move that has begun disagree. */
export const LEDGER_LEFT =
  "If it was recovered without its ledger, that is right, and nothing is left to do. If you moved a copy to rehearse, see " +
  '"Rehearse a move" in the documentation';
