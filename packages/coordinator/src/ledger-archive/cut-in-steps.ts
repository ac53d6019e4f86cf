/** Lets a store go of any number of leases, a few at a time, so that none that is asked for waits long. Knows stores only as a port. */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../lease-identity.js";
import { LEDGER_CUT_LEASES_MAX, type LedgerCut, type Store } from "../store.js";

/**
 * `leases` are named by rising ledger id. Where the end of the archive moves, it moves with each step, over what is archived.
 * `isCut` is false when somebody else has cut meanwhile: some steps may be done then.
 * @throws CoordinatorError as `Store.cutLedger`.
 */
export async function cutInSteps(
  store: Store,
  namespace: string,
  { storeId, archivedThrough, through }: Omit<LedgerCut, "leases">,
  leases: readonly LedgerEntry[],
): Promise<{ readonly isCut: boolean; readonly leaseCount: number }> {
  let [from, leaseCount] = [archivedThrough, 0];
  for (let at = 0; at === 0 || at < leases.length; at += LEDGER_CUT_LEASES_MAX) {
    const step = leases.slice(at, at + LEDGER_CUT_LEASES_MAX);
    const last = step.at(-1);
    const isLast = at + LEDGER_CUT_LEASES_MAX >= leases.length;
    const to = isLast || last === undefined ? through : Math.max(from, lastLedgerIdOf(last));
    const answer = await store.cutLedger(namespace, {
      storeId,
      archivedThrough: from,
      through: to,
      leases: step.map((lease) => ({
        lastLedgerId: lastLedgerIdOf(lease),
        reportedAtMs: lease.progress?.reportedAtMs ?? null,
      })),
    });
    if (!answer.isCut) return { isCut: false, leaseCount };
    from = to;
    leaseCount += answer.leaseCount;
  }
  return { isCut: true, leaseCount };
}
