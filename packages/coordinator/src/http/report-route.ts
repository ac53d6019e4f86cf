/** `POST …/runs/{run}/report`: a holder tells how far it got. */
import { namespaceSchema, reportRequestSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { LeaseLimits } from "../limits/lease-limits.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";
import { runParameter } from "./run-parameter.js";

interface ReportRouteOptions {
  readonly coordinator: Coordinator;
  readonly limits: LeaseLimits;
}

export function reportRoute(app: TypedApp, { coordinator, limits }: ReportRouteOptions): void {
  app.post(
    ROUTES.report,
    {
      config: { access: "lease" },
      schema: {
        summary: "Report the last sequence used in a run",
        params: z.object({ namespace: namespaceSchema, run: runParameter }),
        body: reportRequestSchema,
        response: { 200: z.object({ noted: z.literal(true) }), ...errorResponses },
      },
    },
    async ({ caller, params, body }) => {
      await coordinator.report(params.namespace, params.run, body);
      limits.reported(caller.tokenId, params.namespace, body);
      return { noted: true as const };
    },
  );
}
