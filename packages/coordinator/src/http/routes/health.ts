/** The coordinator itself: `/healthz`, `/readyz`, `/metrics`, `/openapi.json` and `/v1/settings`. */
import { ROUTES } from "@callnumber/protocol/api";
import { describedObject, type SettingsResponse, settingsResponseSchema } from "@callnumber/protocol/schemas";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import { CoordinatorError } from "../../errors.js";
import type { Metrics } from "../../metrics/metrics.js";
import type { Readiness } from "../../status/status.js";
import type { TypedApp } from "../app.js";
import { canRead, type Principal } from "../auth.js";
import { OF_THE_STORE } from "../openapi.js";
import { described } from "./route-parts.js";

const healthSchema = describedObject("Health", "The process answers", { healthy: [z.literal(true), "Always true"] });
const unavailableSchema = describedObject("UnavailableNamespace", "A namespace that does not lease", {
  namespace: [z.string(), "Its name"],
  code: [z.string(), "The code that leases fail with"],
});
const readinessSchema = describedObject("Readiness", "Which namespaces lease", {
  ready: [z.literal(true), "At least one leases"],
  namespaces: [z.array(z.string()).readonly(), "Those of the token that lease"],
  unavailable: [z.array(unavailableSchema).readonly(), "Those of the token that don't"],
});

/** `/healthz`: the process responds. `/readyz`: leases can be expected to succeed. Load balancers send HEAD. */
export function healthRoutes(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.health,
    {
      exposeHeadRoute: true,
      ...described("public", "The process answers", {}, healthSchema),
    },
    async () => ({ healthy: true as const }),
  );
  let check: Promise<Readiness> | undefined;
  app.get(
    ROUTES.readiness,
    {
      exposeHeadRoute: true,
      ...described("public", "The store answers, and at least one namespace leases", {}, readinessSchema, {
        errors: ["namespace_not_found", ...OF_THE_STORE],
      }),
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
  const operation = {
    summary: "The figures of this process, for Prometheus",
    content: { "text/plain": "The text format of Prometheus" },
  };
  app.get(ROUTES.metrics, { config: { permission: "read", operation } }, async (_, reply) => {
    reply.type(metrics.contentType);
    return await metrics.text();
  });
}

/** Describes all routes, as none is added while the server listens. Made once: unauthenticated clients may request it, and it takes milliseconds. */
export function openApiRoute(app: TypedApp, makeDocument: () => object): void {
  let text: string | undefined;
  const operation = { summary: "This document", content: { "application/json": "OpenAPI 3.1" } };
  app.get(ROUTES.openApi, { config: { permission: "public", operation } }, async (_, reply) => {
    text ??= JSON.stringify(makeDocument());
    reply.type("application/json; charset=utf-8");
    return await reply.send(text as never);
  });
}

/** What does not change while it runs. */
export type StartedWith = Pick<SettingsResponse, "store" | "startedAtMs" | "settings" | "commands">;

type ChangingSettings = Omit<SettingsResponse, keyof StartedWith>;

const STARTED = "How the coordinator was started, without secrets";
export const SETTINGS = described("settings", STARTED, {}, settingsResponseSchema, { errors: ["not_found"] });

/** How this coordinator was started, for `callnumber doctor`. For operators alone: it names paths and hosts. Secrets were removed before. */
export function settingsRoute(app: TypedApp, startedWith: StartedWith, read: () => Promise<ChangingSettings>): void {
  app.get(ROUTES.settings, SETTINGS, async () => ({ ...startedWith, ...(await read()) }));
}
