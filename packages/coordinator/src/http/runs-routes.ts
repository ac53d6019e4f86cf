/** `GET …/runs` and `GET …/runs/{run}`: who got which run. */
import { namespaceSchema, runAnswerSchema, runsAnswerSchema, runsQuerySchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { UnderWay } from "../limits/under-way.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import { errorResponses } from "./error-responses.js";
import { runParameter } from "./run-parameter.js";

export function runsRoutes(app: TypedApp, coordinator: Coordinator, underWay: UnderWay): void {
  app.get(
    ROUTES.runs,
    {
      config: { access: "read" },
      schema: {
        summary: "List leases, newest first",
        params: z.object({ namespace: namespaceSchema }),
        querystring: runsQuerySchema,
        response: { 200: runsAnswerSchema, ...errorResponses },
      },
    },
    (request) => underWay.run(askerOf(request), () => coordinator.runs(request.params.namespace, request.query)),
  );
  app.get(
    ROUTES.run,
    {
      config: { access: "read" },
      schema: {
        summary: "Who got a run, and how far it got",
        params: z.object({ namespace: namespaceSchema, run: runParameter }),
        response: { 200: runAnswerSchema, ...errorResponses },
      },
    },
    (request) => underWay.run(askerOf(request), () => coordinator.run(request.params.namespace, request.params.run)),
  );
}
