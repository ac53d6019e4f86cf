/**
 * `POST …/leases`: the one request that raises the high-water mark. Its body is parsed here and nowhere else, and the limits are checked before the
 * store is used. `POST …/runs/{run}/report`: a holder reports how far it got.
 */
import { type Lease, type LeaseRequest, ROUTES } from "@callnumber/protocol/api";
import { leaseRequestSchema, leaseSchema, reportRequestSchema } from "@callnumber/protocol/schemas";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { LeaseLimits } from "../../limits/lease-limits.js";
import { errorResponses } from "../error-response.js";
import type { ConcurrencyLimit } from "../in-flight-limits.js";
import type { PostCall, PostRequests } from "../post-requests.js";
import { inNamespace, ofRun } from "./route-parts.js";

export interface LeaseRoutesOptions {
  readonly coordinator: Coordinator;
  readonly limits: LeaseLimits;
  readonly slots: ConcurrencyLimit;
}

export function addLeaseRoutes(posts: PostRequests, { coordinator, limits, slots }: LeaseRoutesOptions): void {
  posts.add({
    path: ROUTES.leases,
    schema: { summary: "Lease 1 to 64 contiguous runs", response: { 201: leaseSchema, ...errorResponses } },
    params: inNamespace,
    body: leaseRequestSchema,
    slots,
    status: 201,
    act: (call, { namespace }, body) => leaseWithin(limits, coordinator, call, namespace, body),
    undo: (lease: Lease) => coordinator.discard(lease, "requester_gone"),
  });
  posts.add({
    path: ROUTES.report,
    schema: {
      summary: "Report the last sequence used in a run",
      response: { 200: z.object({ noted: z.literal(true) }), ...errorResponses },
    },
    params: ofRun,
    body: reportRequestSchema,
    slots,
    status: 200,
    async act({ principal }, { namespace, run }, body) {
      await coordinator.report(namespace, run, body);
      limits.reported(principal.tokenId, namespace, body);
      return { noted: true };
    },
  });
}

async function leaseWithin(
  limits: LeaseLimits,
  coordinator: Coordinator,
  signal: PostCall,
  namespace: string,
  body: LeaseRequest,
): Promise<Lease> {
  const { tokenId } = signal.principal;
  const { runCount, end } = limits.admit(tokenId, namespace, body);
  let lease: Lease | undefined;
  try {
    const request = runCount === body.runCount ? body : { ...body, runCount };
    lease = await coordinator.lease(namespace, request, { tokenId, signal });
    return lease;
  } finally {
    end(lease);
  }
}
