/** `GET …/call-numbers/{callNumber}`: what a typed text stands for. A malformed one is an answer, not an error. */
import { inspectAnswerSchema, inspectQuerySchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { TypedApp } from "../app.js";
import { errorResponses } from "../error-responses.js";

export function callNumberRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.callNumber,
    {
      config: { access: "read" },
      schema: {
        summary: "Inspect a call number: malformed, other version, never leased, reported or unreported",
        params: z.object({ namespace: namespaceSchema, callNumber: z.string() }),
        querystring: inspectQuerySchema,
        response: { 200: inspectAnswerSchema, ...errorResponses },
      },
    },
    async ({ params, query }) => {
      const withNeighbours = query.neighbours === "yes";
      return await coordinator.inspect(params.namespace, params.callNumber, { withNeighbours });
    },
  );
}
