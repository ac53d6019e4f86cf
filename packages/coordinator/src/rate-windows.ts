/** The windows over which a namespace's rate of use is measured, with the oldest lease within each. Knows the ledger only as a port. */
import { isArchiveAway, type LedgerReader } from "./ledger-reader.js";
import { type RateWindow, rateWindowsMsOf } from "./status.js";
import type { NamespaceRecord } from "./store.js";

/**
 * Without those that begin in an archive that can't be read: whoever asks how a namespace does must have an answer then, too.
 * Of those that `isKnown` names the oldest lease is not asked for.
 */
export async function rateWindowsOf(
  ledger: Pick<LedgerReader, "firstLeaseSince">,
  record: NamespaceRecord,
  nowMs: number,
  isKnown: (windowMs: number) => boolean = () => false,
): Promise<readonly RateWindow[]> {
  const windows = await Promise.all(
    rateWindowsMsOf(record, nowMs).map(async (windowMs): Promise<RateWindow | undefined> => {
      if (isKnown(windowMs)) return { windowMs, oldest: undefined };
      try {
        return { windowMs, oldest: await ledger.firstLeaseSince(record.namespace, nowMs - windowMs) };
      } catch (error) {
        if (isArchiveAway(error)) return undefined;
        throw error;
      }
    }),
  );
  return windows.filter((window) => window !== undefined);
}
