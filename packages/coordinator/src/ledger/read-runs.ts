/** Answers about runs as people name them: one run, a page of leases, and the ledger id of a name. Knows the store only as a port. */
import { ledgerIdOf, type NamedRun, runOfLedgerId, runStateIn, whyAmbiguous } from "@callnumber/protocol/api";
import type { RunResponse, RunsResponse } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { withoutLease } from "../retention/trimmed-leases.js";
import type { RecordedLedger } from "../stores/store.js";
import { findLease, type LedgerQuery, ledgerPage } from "./read-ledger.js";

/** @throws CoordinatorError `run_not_leased`, `lease_trimmed`. */
export async function readRun(ledger: RecordedLedger, namespace: string, ledgerId: number): Promise<RunResponse> {
  const [lease, record] = await Promise.all([findLease(ledger, namespace, ledgerId), ledger.readNamespace(namespace)]);
  if (lease === undefined) throw await withoutLease(ledger, namespace, ledgerId);
  const { version, run } = runOfLedgerId(ledgerId);
  return { namespace, currentVersion: record.version, version, run, ...runStateIn(lease, run), lease };
}

export async function readRuns(ledger: RecordedLedger, namespace: string, query: LedgerQuery): Promise<RunsResponse> {
  const [page, record] = await Promise.all([ledgerPage(ledger, namespace, query), ledger.readNamespace(namespace)]);
  return { namespace, currentVersion: record.version, ...page };
}

/** @throws CoordinatorError `invalid_request` for a run without its version, in a namespace that has had several. */
export async function namedLedgerId(ledger: RecordedLedger, namespace: string, named: NamedRun): Promise<number> {
  if (named.version !== undefined) return ledgerIdOf(named.version, named.run);
  const { version } = await ledger.readNamespace(namespace);
  const reason = whyAmbiguous(named, version);
  if (reason !== undefined) throw new CoordinatorError("invalid_request", reason);
  return named.run;
}
