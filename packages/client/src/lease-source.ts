/**
 * The port between the lease buffer and a coordinator, over HTTP or in the same process. A coordinator implements it without importing it.
 */
import type { Lease, LeaseRequest, ReportRequest } from "@callnumber/protocol/api";

/** What goes with each call of a source. */
export interface CallOptions {
  /** Aborted when the client closes or the request takes too long. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Errors have a `code` of the protocol's closed list and, if known, `retryAfterMs`.
 * After a rejected `lease` runs may already be discarded; the source never hands them out again.
 */
export interface LeaseSource {
  /**
   * Leases 1 to `request.runCount` contiguous runs; echoes the nonce. Never uses a cache, never sends a request twice.
   * Passes `request.report` on, as `report` would: the client sends it nowhere else.
   */
  lease(namespace: string, request: LeaseRequest, options?: CallOptions): Promise<Lease>;

  /** Reports how far the holder got in a run, named by its ledger id. Safe to repeat; progress never goes back. */
  report(namespace: string, ledgerId: number, request: ReportRequest, options?: CallOptions): Promise<unknown>;
}
