/**
 * `POST …/leases`: the one request that raises the high-water mark. Its body is parsed here and nowhere else, and the limits are checked before the
 * store is used. `POST …/runs/{run}/report`: a holder reports how far it got.
 */
import { type Lease, type LeaseRequest, ROUTES } from "@callnumber/protocol/api";
import { describedObject, leaseRequestSchema, leaseSchema, reportRequestSchema } from "@callnumber/protocol/schemas";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { LeaseLimits } from "../../limits/lease-limits.js";
import type { ConcurrencyLimit } from "../in-flight-limits.js";
import type { PostCall, PostRequests } from "../post-requests.js";
import { inNamespace, OF_MAKING_LEASES, ofRun } from "./route-parts.js";

const notedSchema = describedObject("Noted", "The report is recorded", { noted: [z.literal(true), "Always true"] });

export interface LeaseRoutesOptions {
  readonly coordinator: Coordinator;
  readonly limits: LeaseLimits;
  readonly slots: ConcurrencyLimit;
}

export function addLeaseRoutes(posts: PostRequests, { coordinator, limits, slots }: LeaseRoutesOptions): void {
  posts.add({
    path: ROUTES.leases,
    operation: {
      summary: "Lease 1 to 64 contiguous runs",
      description: "A lease belongs to its holder permanently. The same request sent again is another lease.",
      errors: [...OF_MAKING_LEASES, "run_above_high_water_mark"],
    },
    returns: leaseSchema,
    params: inNamespace,
    body: leaseRequestSchema,
    slots,
    status: 201,
    act: (call, { namespace }, body) => leaseWithin(limits, coordinator, call, namespace, body),
    undo: (lease: Lease) => coordinator.discard(lease, "requester_gone"),
  });
  posts.add({
    path: ROUTES.report,
    operation: {
      summary: "Report the last sequence used in a run",
      errors: ["run_not_leased", "holder_mismatch", "report_expired"],
    },
    returns: notedSchema,
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
