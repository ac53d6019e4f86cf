/**
 * Where leases come from: the port between the lease buffer and a coordinator, over HTTP or in the same process.
 * A coordinator fits it by shape.
 */
import type { Lease, LeaseRequest, ReportRequest } from "@callnumber/protocol/http-api";

export interface CallOptions {
  /** Aborted when the client closes or the request takes too long. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Rejections carry a `code` of the protocol's closed list and, where it is known, `retryAfterMs`.
 * After a rejected `lease` runs may already be burnt; the source never hands them to anyone else.
 */
export interface LeaseSource {
  /** Leases 1 to `request.runCount` contiguous runs; echoes the nonce. Never answers from a cache, never asks twice. */
  lease(namespace: string, request: LeaseRequest, options?: CallOptions): Promise<Lease>;

  /** Tells how far the holder got in a run, named by its ledger id. Safe to repeat; progress never goes back. */
  report(namespace: string, ledgerId: number, request: ReportRequest, options?: CallOptions): Promise<unknown>;
}
