/** Reports, and what one is answered that comes when its lease has left the store for the archive. Knows store and ledger as ports. */
import { CoordinatorError } from "./errors.js";
import type { LedgerReader } from "./ledger-reader.js";
import type { ReportCommand, Store } from "./store.js";

/** @throws CoordinatorError as `Store.report`; `report_too_late`, `ledger_archive_unavailable`: nothing is changed. */
export async function reportInTime(
  store: Store,
  ledger: LedgerReader,
  namespace: string,
  ledgerId: number,
  command: ReportCommand,
): Promise<void> {
  try {
    await store.report(namespace, ledgerId, command);
  } catch (error) {
    if (!(error instanceof CoordinatorError && error.code === "run_not_leased")) throw error;
    if ((await ledger.findLease(namespace, ledgerId)) === undefined) throw error;
    throw tooLate(namespace, ledgerId, error);
  }
}

function tooLate(namespace: string, ledgerId: number, cause: Error): CoordinatorError {
  return new CoordinatorError(
    "report_too_late",
    `the lease of run ${ledgerId} in namespace "${namespace}" stands in the archive: it had ended, or was not reported on for ninety ` +
      "days. Nothing was changed",
    { cause },
  );
}
