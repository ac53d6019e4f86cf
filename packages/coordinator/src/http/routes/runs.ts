/** `GET …/runs` and `GET …/runs/{run}`: who got which run. */
import { namespaceSchema, runAnswerSchema, runsAnswerSchema, runsQuerySchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { TypedApp } from "../app.js";
import { errorResponses } from "../error-responses.js";
import { runParameter } from "../run-parameter.js";

export function runsRoutes(app: TypedApp, coordinator: Coordinator): void {
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
    async ({ params, query }, reply) => {
      const page = await coordinator.runs(params.namespace, query);
      // Its shape is our own: to check 500 leases against the schema again would keep everybody else waiting.
      return await reply.type("application/json; charset=utf-8").send(JSON.stringify(page) as never);
    },
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
    async ({ params }) => coordinator.run(params.namespace, params.run),
  );
}
