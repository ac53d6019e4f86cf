/** `GET …/status`: the mark, what is left, and how long it will last. */
import { namespaceSchema, statusAnswerSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function statusRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.status,
    {
      config: { access: "read" },
      schema: {
        summary: "High-water mark, runs left, rate of use and forecast",
        params: z.object({ namespace: namespaceSchema }),
        response: { 200: statusAnswerSchema, ...errorResponses },
      },
    },
    async ({ params }) => coordinator.status(params.namespace),
  );
}
