/** `GET …/call-numbers/{callNumber}`: what a typed text stands for. A malformed one is an answer, not an error. */
import { inspectAnswerSchema, inspectQuerySchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { UnderWay } from "../limits/under-way.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import { errorResponses } from "./error-responses.js";

export function callNumberRoute(app: TypedApp, coordinator: Coordinator, underWay: UnderWay): void {
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
    (request) => {
      const { namespace, callNumber } = request.params;
      const withNeighbours = request.query.neighbours === "yes";
      return underWay.run(askerOf(request), () => coordinator.inspect(namespace, callNumber, { withNeighbours }));
    },
  );
}
