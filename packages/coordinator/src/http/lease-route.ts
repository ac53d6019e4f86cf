/** `POST …/leases`: the one request that moves the mark. The body is read and checked whole, and the limits are asked,
 * before the store is. */

import type { Socket } from "node:net";
import { leaseSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { type LeaseRequest, ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { LeaseLimits } from "../limits/lease-limits.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";
import { leaseBodySchema } from "./names-without-tokens.js";

interface LeaseRouteOptions {
  readonly coordinator: Coordinator;
  readonly limits: LeaseLimits;
}

export function leaseRoute(app: TypedApp, { coordinator, limits }: LeaseRouteOptions): void {
  app.post(
    ROUTES.leases,
    {
      config: { access: "lease" },
      schema: {
        summary: "Lease 1 to 64 contiguous runs",
        params: z.object({ namespace: namespaceSchema }),
        body: leaseBodySchema,
        response: { 201: leaseSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const lease = await leaseWithin(limits, coordinator, request);
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
}

interface Asked {
  readonly caller: { readonly tokenId: string | null };
  readonly params: { readonly namespace: string };
  readonly body: LeaseRequest;
}

async function leaseWithin(limits: LeaseLimits, coordinator: Coordinator, { caller, params, body }: Asked) {
  const admission = limits.admit(caller.tokenId, params.namespace, body);
  try {
    const request = { ...body, runCount: admission.runCount };
    const lease = await coordinator.lease(params.namespace, request, { tokenId: caller.tokenId });
    admission.leased(lease);
    return lease;
  } catch (error) {
    admission.refused();
    throw error;
  }
}

/** Before the first byte of the answer: then nobody has it, and nobody is sent it any more. */
function isGone({ destroyed, writableEnded }: Socket): boolean {
  return destroyed || writableEnded;
}
