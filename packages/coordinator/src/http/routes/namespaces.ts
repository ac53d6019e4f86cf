/** The namespaces: the list of all, the labels, status, capacity and history of one. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import {
  capacityResponseSchema,
  historyQuerySchema,
  historyResponseSchema,
  labelsRequestSchema,
  namespaceDescriptionSchema,
  namespacesResponseSchema,
} from "@callnumber/protocol/operator-schemas";
import { namespaceSchema, statusResponseSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { TypedApp } from "../app.js";
import { canRead } from "../auth.js";
import { errorResponses } from "../error-response.js";

const inNamespace = z.object({ namespace: namespaceSchema });

export function namespacesRoutes(app: TypedApp, coordinator: Coordinator, release: string): void {
  app.get(
    OPERATOR_ROUTES.namespaces,
    {
      config: { permission: "read", isFiltered: true },
      schema: {
        summary: "List all namespaces, by name, also those whose record can't be read",
        response: { 200: namespacesResponseSchema, ...errorResponses },
      },
    },
    async ({ principal }) => {
      const { name, storeKind: store } = coordinator;
      const namespaces = await coordinator.namespaces();
      const readable = namespaces.filter(({ namespace }) => canRead(principal, namespace));
      return { store, coordinator: name, release, namespaces: readable };
    },
  );
  app.post(
    OPERATOR_ROUTES.labels,
    {
      config: { permission: "change" },
      schema: {
        summary: "Give a namespace its labels, instead of those it had",
        params: inNamespace,
        body: labelsRequestSchema,
        response: { 200: namespaceDescriptionSchema, ...errorResponses },
      },
    },
    async ({ params, body }) => coordinator.labelNamespace(params.namespace, body.labels),
  );
  app.get(
    ROUTES.status,
    {
      config: { permission: "read" },
      schema: {
        summary: "High-water mark, runs left, rate of use and forecast",
        params: inNamespace,
        response: { 200: statusResponseSchema, ...errorResponses },
      },
    },
    async ({ params }) => coordinator.status(params.namespace),
  );
  app.get(
    OPERATOR_ROUTES.capacity,
    {
      config: { permission: "read" },
      schema: {
        summary: "Runs used and left, rates, forecasts, holders, alarms",
        params: inNamespace,
        response: { 200: capacityResponseSchema, ...errorResponses },
      },
    },
    async ({ params }) => coordinator.capacity.capacity(params.namespace),
  );
  app.get(
    OPERATOR_ROUTES.history,
    {
      config: { permission: "read" },
      schema: {
        summary: "Runs leased over time",
        params: inNamespace,
        querystring: historyQuerySchema,
        response: { 200: historyResponseSchema, ...errorResponses },
      },
    },
    async ({ params, query }) => coordinator.capacity.history(params.namespace, query.windowMs),
  );
}
