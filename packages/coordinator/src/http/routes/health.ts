/** The coordinator itself: `/healthz`, `/readyz`, `/metrics`, `/openapi.json` and `/v1/settings`. */
import { ROUTES } from "@callnumber/protocol/api";
import { type SettingsResponse, settingsResponseSchema } from "@callnumber/protocol/schemas";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import { CoordinatorError } from "../../errors.js";
import type { Metrics } from "../../metrics/metrics.js";
import type { Readiness } from "../../status/status.js";
import type { TypedApp } from "../app.js";
import { canRead, type Principal } from "../auth.js";
import { described } from "./route-parts.js";

const readinessSchema = z.object({
  ready: z.literal(true),
  namespaces: z.array(z.string()).readonly(),
  unavailable: z.array(z.object({ namespace: z.string(), code: z.string() })).readonly(),
});

/** `/healthz`: the process responds. `/readyz`: leases can be expected to succeed. Load balancers send HEAD. */
export function healthRoutes(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.health,
    {
      exposeHeadRoute: true,
      ...described("public", "The process answers", {}, z.object({ healthy: z.literal(true) })),
    },
    async () => ({ healthy: true as const }),
  );
  let check: Promise<Readiness> | undefined;
  app.get(
    ROUTES.readiness,
    {
      exposeHeadRoute: true,
      ...described("public", "The store answers, and at least one namespace leases", {}, readinessSchema),
    },
    async ({ principal }) => {
      // Requests of the same moment share one check: unauthenticated clients may send them, and each check reads the store.
      check ??= coordinator.assertReady().finally(() => {
        check = undefined;
      });
      const { namespaces, unavailable } = await readinessFor(check, principal);
      return {
        ready: true as const,
        namespaces: namespaces.filter((namespace) => canRead(principal, namespace)),
        unavailable: unavailable
          .filter(({ namespace }) => canRead(principal, namespace))
          .map(({ namespace, error }) => ({ namespace, code: error.code })),
      };
    },
  );
}

/** Every client may learn that it is not ready; the reason names namespaces and the store. */
async function readinessFor(check: Promise<Readiness>, principal: Principal): Promise<Readiness> {
  try {
    return await check;
  } catch (error) {
    if (principal.namespaces === "all" || !(error instanceof CoordinatorError)) throw error;
    const { code, reason, retryAfterMs } = error;
    const message = "no namespace leases. A token for all namespaces shows why";
    throw new CoordinatorError(code, message, { reason, ...(retryAfterMs !== undefined && { retryAfterMs }) });
  }
}

/** The figures of this process, for Prometheus. Responds also when the store does not. */
export function metricsRoute(app: TypedApp, metrics: Metrics): void {
  app.get(ROUTES.metrics, { config: { permission: "read" }, schema: { hide: true } }, async (_, reply) => {
    reply.type(metrics.contentType);
    return await metrics.text();
  });
}

/** Describes all routes, as none is added while the server listens. Made once: unauthenticated clients may request it, and it takes milliseconds. */
export function openApiRoute(app: TypedApp): void {
  let text: string | undefined;
  app.get(ROUTES.openApi, { config: { permission: "public" }, schema: { hide: true } }, async (_, reply) => {
    text ??= JSON.stringify(app.swagger());
    reply.type("application/json; charset=utf-8");
    return await reply.send(text as never);
  });
}

/** What does not change while it runs. */
export type StartedWith = Pick<SettingsResponse, "store" | "startedAtMs" | "settings" | "commands">;

type ChangingSettings = Omit<SettingsResponse, keyof StartedWith>;

/** How this coordinator was started, for `callnumber doctor`. For operators alone: it names paths and hosts. Secrets were removed before. */
export function settingsRoute(app: TypedApp, startedWith: StartedWith, read: () => Promise<ChangingSettings>): void {
  const summary = "How the coordinator was started, without secrets";
  app.get(ROUTES.settings, described("settings", summary, {}, settingsResponseSchema), async () => ({
    ...startedWith,
    ...(await read()),
  }));
}
