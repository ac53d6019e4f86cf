/**
 * `POST …/leases`: the one request that raises the high-water mark. Its body is parsed here and nowhere else, and the limits are checked before the
 * store is used. `POST …/runs/{run}/report`: a holder reports how far it got.
 */
import { leaseRequestSchema, leaseSchema, reportRequestSchema } from "@callnumber/protocol/schemas";
import { type Lease, type LeaseRequest, ROUTES } from "@callnumber/protocol/wire";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { LeaseLimits } from "../../limits/lease-limits.js";
import type { TypedApp } from "../app.js";
import { errorResponses } from "../error-response.js";
import { described, inNamespace, ofRun } from "./route-parts.js";

export function leaseRoutes(app: TypedApp, coordinator: Coordinator, limits: LeaseLimits): void {
  app.post(
    ROUTES.leases,
    {
      config: { permission: "lease" },
      schema: {
        summary: "Lease 1 to 64 contiguous runs",
        params: inNamespace,
        body: leaseRequestSchema,
        response: { 201: leaseSchema, ...errorResponses },
      },
    },
    async ({ principal, params, body, raw }, reply) => {
      const lease = await leaseWithin(limits, coordinator, principal.tokenId, params.namespace, body);
      // Before the first byte of the response: no client has the lease, and it is sent to none.
      if (raw.socket.destroyed || raw.socket.writableEnded) {
        reply.hijack();
        reply.raw.destroy();
        coordinator.discard(lease, "requester_gone");
      } else reply.code(201);
      return lease;
    },
  );
  app.post(
    ROUTES.report,
    described(
      "lease",
      "Report the last sequence used in a run",
      { params: ofRun, body: reportRequestSchema },
      z.object({ noted: z.literal(true) }),
    ),
    async ({ principal, params, body }) => {
      await coordinator.report(params.namespace, params.run, body);
      limits.reported(principal.tokenId, params.namespace, body);
      return { noted: true as const };
    },
  );
}

async function leaseWithin(
  limits: LeaseLimits,
  coordinator: Coordinator,
  tokenId: string | null,
  namespace: string,
  body: LeaseRequest,
): Promise<Lease> {
  const { runCount, end } = limits.admit(tokenId, namespace, body);
  let lease: Lease | undefined;
  try {
    lease = await coordinator.lease(namespace, { ...body, runCount }, { tokenId });
    return lease;
  } finally {
    end(lease);
  }
}
