/** The windows over which a namespace's rate of use is measured, with the oldest lease within each. Knows the ledger only as a port. */
import { CoordinatorError } from "./errors.js";
import type { LedgerReader } from "./ledger.js";
import { type RateWindow, rateWindowsMsOf } from "./status.js";
import type { NamespaceRecord } from "./store.js";

/** Without those that begin in an archive that can't be read: whoever asks how a namespace does must have an answer then, too. */
export async function rateWindowsOf(
  ledger: LedgerReader,
  record: NamespaceRecord,
  nowMs: number,
): Promise<readonly RateWindow[]> {
  const windows = await Promise.all(
    rateWindowsMsOf(record, nowMs).map(async (windowMs): Promise<RateWindow | undefined> => {
      try {
        return { windowMs, oldest: await ledger.firstLeaseSince(record.namespace, nowMs - windowMs) };
      } catch (error) {
        if (error instanceof CoordinatorError && error.code === "ledger_archive_unavailable") return undefined;
        throw error;
      }
    }),
  );
  return windows.filter((window) => window !== undefined);
}
