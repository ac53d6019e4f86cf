/**
 * `GET /v1/public/…/call-numbers/{callNumber}`: whether a message can have the number, for an archive's page about missing
 * messages. Strangers ask here: they get one word, and no reason why there is none.
 */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { publicCallNumberAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import { CoordinatorError } from "../errors.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";

export function publicCallNumberRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    OPERATOR_ROUTES.publicCallNumber,
    {
      config: { access: "public", slots: "publicReads" },
      schema: {
        summary: "Whether a message can have a call number; nothing else is told",
        params: z.object({ namespace: namespaceSchema, callNumber: z.string() }),
        response: { 200: publicCallNumberAnswerSchema, ...errorResponses },
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

/** The coordinator's own words name addresses and commands. */
function withoutReason({ code }: CoordinatorError, namespace: string): CoordinatorError {
  return code === "namespace_not_initialised"
    ? new CoordinatorError("not_found", `there is no namespace "${namespace}"`)
    : new CoordinatorError("store_unavailable", "this can't be told now; ask again later");
}
