/** `POST …/runs/{run}/report`: a holder tells how far it got. */
import { namespaceSchema, reportRequestSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";
import { runParameter } from "./run-parameter.js";

export function reportRoute(app: TypedApp, coordinator: Coordinator): void {
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
    async ({ params, body }) => {
      await coordinator.report(params.namespace, params.run, body);
      return { noted: true as const };
    },
  );
}
