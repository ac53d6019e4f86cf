/**
 * Pages through the ledger, newest first, with filters. Knows the store's plain listing only, so that every store filters
 * the same way, and bounds the work of one page: a rare holder is found by following the cursor.
 */
import { CALL_NUMBER_BITS, SEQUENCE_BITS } from "@callnumber/protocol/codec";
import { ledgerIdOf } from "@callnumber/protocol/wire";
/** Entries looked at for one page at the most. */
const SCAN_MAX = 10_000;
const SCAN_STEP = 500;
const ABOVE_ALL_LEDGER_IDS = 2 ** (CALL_NUMBER_BITS - SEQUENCE_BITS);
export async function ledgerPage(store, namespace, query) {
    const leases = [];
    let below = await startOf(store, namespace, query);
    for (let looked = 0; looked < SCAN_MAX;) {
        const limit = query.holder !== undefined ? SCAN_STEP : query.limit - leases.length;
        const found = await store.listLeases(namespace, { belowLedgerId: below, limit });
        for (const entry of found) {
            if (entry.leasedAtMs < (query.leasedFromMs ?? 0))
                return { leases, nextCursor: null };
            below = lastLedgerIdOf(entry);
            if (query.holder === undefined || entry.holder.name === query.holder)
                leases.push(entry);
            if (leases.length === query.limit)
                return { leases, nextCursor: String(below) };
        }
        if (found.length < limit)
            return { leases, nextCursor: null };
        looked += found.length;
    }
    return { leases, nextCursor: String(below) };
}
/** Below this ledger id the page begins. */
async function startOf(store, namespace, { cursor, leasedToMs }) {
    if (cursor !== undefined)
        return Number(cursor);
    if (leasedToMs === undefined)
        return ABOVE_ALL_LEDGER_IDS;
    const firstTooLate = await store.firstLeaseSince(namespace, leasedToMs);
    return firstTooLate === undefined ? ABOVE_ALL_LEDGER_IDS : lastLedgerIdOf(firstTooLate);
}
function lastLedgerIdOf({ version, firstRun, runCount }) {
    return ledgerIdOf(version, firstRun + runCount - 1);
}
//# sourceMappingURL=ledger-page.js.map