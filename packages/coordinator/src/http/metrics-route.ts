/** `GET /metrics`: the figures of this process, for Prometheus. Answers also when the store does not. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import type { Metrics } from "../metrics/metrics.js";
import type { TypedApp } from "./app.js";

export function metricsRoute(app: TypedApp, metrics: Metrics): void {
  app.get(OPERATOR_ROUTES.metrics, { config: { access: "read" }, schema: { hide: true } }, async (_request, reply) => {
    reply.type(metrics.contentType);
    return await metrics.text();
  });
}
