/** `GET …/runs` and `GET …/runs/{run}`: which holder got which run. */
import {
  ledgerIdSchema,
  namespaceSchema,
  runResponseSchema,
  runsQuerySchema,
  runsResponseSchema,
} from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { TypedApp } from "../app.js";
import { errorResponses } from "../error-response.js";

/** A run in a path: its ledger id in decimal digits, and in no other form. */
export const runParameter = z
  .string()
  .regex(/^(0|[1-9]\d{0,9})$/, "a run is a whole number")
  .transform(Number)
  .pipe(ledgerIdSchema);

export function runsRoutes(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.runs,
    {
      config: { permission: "read" },
      schema: {
        summary: "List leases, newest first",
        params: z.object({ namespace: namespaceSchema }),
        querystring: runsQuerySchema,
        response: { 200: runsResponseSchema, ...errorResponses },
      },
    },
    async ({ params, query }, reply) => {
      const page = await coordinator.runs(params.namespace, query);
      // Its shape is our own: to check 500 leases against the schema again would delay all other requests.
      return await reply.type("application/json; charset=utf-8").send(JSON.stringify(page) as never);
    },
  );
  app.get(
    ROUTES.run,
    {
      config: { permission: "read" },
      schema: {
        summary: "Who got a run, and how far it got",
        params: z.object({ namespace: namespaceSchema, run: runParameter }),
        response: { 200: runResponseSchema, ...errorResponses },
      },
    },
    async ({ params }) => coordinator.run(params.namespace, params.run),
  );
}
