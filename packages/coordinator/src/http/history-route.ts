/** `GET …/history?windowMs=`: runs leased over the last hour, day or week, in equal steps. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { historyAnswerSchema, historyQuerySchema } from "@callnumber/protocol/operator-schemas";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function historyRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    OPERATOR_ROUTES.history,
    {
      config: { access: "read" },
      schema: {
        summary: "Runs leased over time",
        params: z.object({ namespace: namespaceSchema }),
        querystring: historyQuerySchema,
        response: { 200: historyAnswerSchema, ...errorResponses },
      },
    },
    async ({ params, query }) => coordinator.capacity.history(params.namespace, query.windowMs),
  );
}
