/**
 * `POST …/leases`: the one request that raises the high-water mark. Its body is parsed here and nowhere else, and the limits are checked before the
 * store is asked. `POST …/runs/{run}/report`: a holder reports how far it got.
 */
import type { Socket } from "node:net";
import { leaseRequestSchema, leaseSchema, namespaceSchema, reportRequestSchema } from "@callnumber/protocol/schemas";
import { type Lease, type LeaseRequest, ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { LeaseLimits } from "../../limits/lease-limits.js";
import type { TypedApp } from "../app.js";
import { errorResponses } from "../error-response.js";
import { runParameter } from "./runs.js";

export function leaseRoutes(app: TypedApp, coordinator: Coordinator, limits: LeaseLimits): void {
  app.post(
    ROUTES.leases,
    {
      config: { permission: "lease" },
      schema: {
        summary: "Lease 1 to 64 contiguous runs",
        params: z.object({ namespace: namespaceSchema }),
        body: leaseRequestSchema,
        response: { 201: leaseSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { tokenId } = request.principal;
      const lease = await leaseWithin(limits, coordinator, tokenId, request.params.namespace, request.body);
      if (isGone(request.raw.socket)) {
        reply.hijack();
        reply.raw.destroy();
        coordinator.discard(lease, "requester_gone");
        return lease;
      }
      reply.code(201);
      return lease;
    },
  );
  app.post(
    ROUTES.report,
    {
      config: { permission: "lease" },
      schema: {
        summary: "Report the last sequence used in a run",
        params: z.object({ namespace: namespaceSchema, run: runParameter }),
        body: reportRequestSchema,
        response: { 200: z.object({ noted: z.literal(true) }), ...errorResponses },
      },
    },
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
  const admission = limits.admit(tokenId, namespace, body);
  try {
    const lease = await coordinator.lease(namespace, { ...body, runCount: admission.runCount }, { tokenId });
    admission.leased(lease);
    return lease;
  } catch (error) {
    admission.refused();
    throw error;
  }
}

/** Before the first byte of the response: then no client has the lease, and it is sent to none. */
function isGone({ destroyed, writableEnded }: Socket): boolean {
  return destroyed || writableEnded;
}
