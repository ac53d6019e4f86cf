/** `POST …/leases`: the one request that moves the mark. The body is read and checked whole before the store is asked. */

import type { Socket } from "node:net";
import { leaseRequestSchema, leaseSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function leaseRoute(app: TypedApp, coordinator: Coordinator): void {
  app.post(
    ROUTES.leases,
    {
      config: { access: "lease" },
      schema: {
        summary: "Lease 1 to 64 contiguous runs",
        params: z.object({ namespace: namespaceSchema }),
        body: leaseRequestSchema,
        response: { 201: leaseSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const lease = await coordinator.lease(request.params.namespace, request.body, {
        tokenId: request.caller.tokenId,
      });
      if (isGone(request.raw.socket)) {
        reply.hijack();
        reply.raw.destroy();
        coordinator.burn(lease, "requester_gone");
        return lease;
      }
      reply.code(201);
      return lease;
    },
  );
}

/** Before the first byte of the answer: then nobody has it, and nobody is sent it any more. */
function isGone({ destroyed, writableEnded }: Socket): boolean {
  return destroyed || writableEnded;
}
