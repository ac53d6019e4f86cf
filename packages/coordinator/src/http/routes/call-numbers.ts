/**
 * `GET …/call-numbers/{callNumber}`: what a typed text stands for; a malformed one is a response, not an error. And for an archive's page
 * about missing messages, `GET /v1/public/…/call-numbers/{callNumber}`: whether a message can have the number, and nothing else.
 */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { publicCallNumberResponseSchema } from "@callnumber/protocol/operator-schemas";
import { inspectQuerySchema, inspectResponseSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { ROUTES } from "@callnumber/protocol/wire";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import { CoordinatorError } from "../../errors.js";
import type { TypedApp } from "../app.js";
import { errorResponses } from "../error-response.js";

const params = z.object({ namespace: namespaceSchema, callNumber: z.string() });

export function callNumberRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    ROUTES.callNumber,
    {
      config: { permission: "read" },
      schema: {
        summary: "Inspect a call number: malformed, other version, never leased, reported or unreported",
        params,
        querystring: inspectQuerySchema,
        response: { 200: inspectResponseSchema, ...errorResponses },
      },
    },
    async ({ params: { namespace, callNumber }, query }) =>
      coordinator.inspect(namespace, callNumber, { withNeighbors: query.neighbors === "yes" }),
  );
}

export function publicCallNumberRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    OPERATOR_ROUTES.publicCallNumber,
    {
      config: { permission: "public", slots: "publicReads" },
      schema: {
        summary: "Whether a message can have a call number; nothing else is told",
        params,
        response: { 200: publicCallNumberResponseSchema, ...errorResponses },
      },
    },
    async ({ params: { namespace, callNumber } }) => {
      try {
        return { callNumber, canExist: await coordinator.canExist(namespace, callNumber) };
      } catch (error) {
        throw error instanceof CoordinatorError ? withoutReason(error, namespace) : error;
      }
    },
  );
}

/** The coordinator's own message names hosts and commands. */
function withoutReason({ code }: CoordinatorError, namespace: string): CoordinatorError {
  return code === "namespace_not_found"
    ? new CoordinatorError("not_found", `there is no namespace "${namespace}"`)
    : new CoordinatorError("store_unavailable", "this can't be told now; ask again later");
}
