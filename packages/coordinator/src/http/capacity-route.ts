/** `GET …/capacity`: what is used and left, how fast it goes, who takes it, and what an operator should do. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { capacityAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function capacityRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    OPERATOR_ROUTES.capacity,
    {
      config: { access: "read" },
      schema: {
        summary: "Runs used and left, rates, forecasts, holders, alarms",
        params: z.object({ namespace: namespaceSchema }),
        response: { 200: capacityAnswerSchema, ...errorResponses },
      },
    },
    async ({ params }) => coordinator.capacity.capacity(params.namespace),
  );
}
