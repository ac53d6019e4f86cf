/** `POST …/leases`: the one request that moves the mark. The body is read and checked whole before the store is asked. */
import { leaseRequestSchema, leaseSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { Log } from "../log.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function leaseRoute(app: TypedApp, coordinator: Coordinator, log: Log): void {
  app.post(
    ROUTES.leases,
    {
      schema: {
        summary: "Lease 1 to 64 contiguous runs",
        params: z.object({ namespace: namespaceSchema }),
        body: leaseRequestSchema,
        response: { 201: leaseSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { namespace } = request.params;
      const lease = await coordinator.lease(namespace, request.body);
      // Whoever asked has hung up meanwhile, and never asks again with this nonce.
      if (request.socket.destroyed) log.info({ namespace, runCount: lease.runCount, reason: "answer_lost" }, "burn");
      reply.code(201);
      return lease;
    },
  );
}
