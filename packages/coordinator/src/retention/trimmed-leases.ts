/** What is known of runs whose leases were trimmed from the store: when the last of them were leased. Knows the store only as a port. */
import { nameOfLedgerId, runOfLedgerId } from "@callnumber/protocol/api";
import type { TrimmedLeases } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import type { NamespaceRecord } from "../guard/record.js";
import { notLeased } from "../guard/refusals.js";
import type { RecordedLedger, Retention } from "../stores/store.js";

export function trimmedIn({ through, leasedAtMs }: Retention): TrimmedLeases {
  const { version: upToVersion, run: upToRun } = runOfLedgerId(through);
  return { upToVersion, upToRun, lastLeasedAtMs: leasedAtMs };
}

/** Whether the lease of a run that has none in the store may have been trimmed. A run below the first one was never leased here. */
export function isTrimmed(
  { through }: Retention,
  { firstVersion, firstRun }: Pick<NamespaceRecord, "firstVersion" | "firstRun">,
  ledgerId: number,
): boolean {
  // A store that a namespace was moved to begins in a later version, and took over what the earlier one had trimmed.
  return ledgerId <= through && (firstVersion > 0 || ledgerId >= firstRun);
}

/** The error for a run that has no lease in the store. */
export async function withoutLease(
  ledger: RecordedLedger,
  namespace: string,
  ledgerId: number,
): Promise<CoordinatorError> {
  const [retention, record] = await Promise.all([ledger.readRetention(namespace), ledger.readNamespace(namespace)]);
  if (!isTrimmed(retention, record, ledgerId)) return notLeased(namespace, ledgerId, record.version);
  return new CoordinatorError(
    "lease_trimmed",
    `run ${nameOfLedgerId(ledgerId, record.version)} of namespace "${namespace}" was trimmed: leased at or before ` +
      `${new Date(retention.leasedAtMs).toISOString()}, or skipped. Search the files of --ledger-dir`,
  );
}
