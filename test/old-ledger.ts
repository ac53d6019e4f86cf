/** Stores whose leases are older than their retention, for coordinators that trim them at their start. */
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { importLeases } from "../packages/coordinator/src/ledger/ledger-changes.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { commandsFor, NAMESPACE, storeIdFrom } from "../packages/coordinator/test/commands-for-test.js";
import { stepOn } from "../packages/coordinator/test/steps-for-test.js";

const DAY_MS = 24 * 3_600_000;
const RETENTION_DAYS = 8;

/**
 * Makes a store with so many leases of 16 days ago, which leases again above its run ceiling, as one that was recovered. Resolves to the
 * leases. Those are trimmed once a lease is behind them.
 */
export async function makeOldLedger(storeUrl: string, leaseCount: number): Promise<readonly LedgerEntry[]> {
  const nowMs = Date.now();
  const storeId = storeIdFrom(1, { initializedAtMs: nowMs - 20 * DAY_MS, rate: 16 });
  const old = Array.from(
    { length: leaseCount },
    (_, index): LedgerEntry => ({
      version: 0,
      firstRun: 1 + index,
      runCount: 1,
      leasedAtMs: nowMs - 2 * RETENTION_DAYS * DAY_MS + index,
      holder: { name: "importer", host: "old", pid: 1, labels: {} },
      coordinator: "old",
      nonce: `nonce-of-run-${1 + index}`,
      progress: null,
    }),
  );
  const { store } = await openStore(parseStoreUrl(storeUrl), { create: true });
  try {
    await importLeases(store, NAMESPACE, old);
    await stepOn(store, NAMESPACE, commandsFor(storeId).recover({ floor: leaseCount, nodeCount: 1 }));
    await store.setRetentionDays(NAMESPACE, RETENTION_DAYS);
  } finally {
    await store.close();
  }
  return old;
}
