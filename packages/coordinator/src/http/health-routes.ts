/** `/healthz`: the process answers. `/readyz`: leases can be expected to succeed. */
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function healthRoutes(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.health,
    {
      config: { access: "public" },
      schema: { summary: "The process answers", response: { 200: z.object({ healthy: z.literal(true) }) } },
    },
    async () => ({ healthy: true as const }),
  );
  app.get(
    ROUTES.readiness,
    {
      config: { access: "public" },
      schema: {
        summary: "The store answers and holds a namespace",
        response: {
          200: z.object({ ready: z.literal(true), namespaces: z.array(z.string()).readonly() }),
          ...errorResponses,
        },
      },
    },
    async () => ({ ready: true as const, namespaces: await coordinator.mustBeReady() }),
  );
}
