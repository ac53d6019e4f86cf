/** `/healthz`: the process answers. `/readyz`: leases can be expected to succeed. */
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import { CoordinatorError } from "../errors.js";
import type { Readiness } from "../status/readiness.js";
import type { TypedApp } from "./app.js";
import { type Caller, maySee } from "./caller.js";
import { errorResponses } from "./error-responses.js";

export function healthRoutes(app: TypedApp, coordinator: Coordinator): void {
  let looking: Promise<Readiness> | undefined;
  app.get(
    ROUTES.health,
    {
      exposeHeadRoute: true,
      config: { access: "public" },
      schema: { summary: "The process answers", response: { 200: z.object({ healthy: z.literal(true) }) } },
    },
    async () => ({ healthy: true as const }),
  );
  app.get(
    ROUTES.readiness,
    {
      // Balancers ask so; and those who ask at the same time share one look.
      exposeHeadRoute: true,
      config: { access: "public" },
      schema: {
        summary: "The store answers, and at least one namespace leases",
        response: {
          200: z.object({
            ready: z.literal(true),
            namespaces: z.array(z.string()).readonly(),
            unavailable: z.array(z.object({ namespace: z.string(), code: z.string() })).readonly(),
          }),
          ...errorResponses,
        },
      },
    },
    async ({ caller }) => {
      // Those who ask at the same time share one look: strangers may ask, and each look asks the store.
      looking ??= coordinator.assertReady().finally(() => {
        looking = undefined;
      });
      const { namespaces, unavailable } = await readinessFor(looking, caller);
      return {
        ready: true as const,
        namespaces: namespaces.filter((namespace) => maySee(caller, namespace)),
        unavailable: unavailable
          .filter(({ namespace }) => maySee(caller, namespace))
          .map(({ namespace, error }) => ({ namespace, code: error.code })),
      };
    },
  );
}

/** Anybody may hear that it is not ready; what stands against it names namespaces and the store. */
async function readinessFor(looking: Promise<Readiness>, caller: Caller): Promise<Readiness> {
  try {
    return await looking;
  } catch (error) {
    if (caller.namespaces === "all" || !(error instanceof CoordinatorError)) throw error;
    const { code, retryAfterMs } = error;
    const message = "no namespace leases. A token for all namespaces shows why";
    throw new CoordinatorError(code, message, retryAfterMs === undefined ? {} : { retryAfterMs });
  }
}
