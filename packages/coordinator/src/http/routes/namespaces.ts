/** `GET /v1/namespaces`: which there are, and which one needs somebody. `POST …/labels`: what people call one by. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { namespaceDescriptionSchema, namespacesAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { TypedApp } from "../app.js";
import { maySee } from "../caller.js";
import { errorResponses } from "../error-responses.js";
import { labelsBodySchema } from "../names-without-tokens.js";

export function namespacesRoutes(app: TypedApp, coordinator: Coordinator, release: string): void {
  app.get(
    OPERATOR_ROUTES.namespaces,
    {
      config: { access: "read", isFiltered: true },
      schema: {
        summary: "List all namespaces, by name, also those whose record can't be read",
        response: { 200: namespacesAnswerSchema, ...errorResponses },
      },
    },
    async ({ caller }) => {
      const { name, storeKind: store } = coordinator;
      const namespaces = await coordinator.namespaces();
      const shown = namespaces.filter(({ namespace }) => maySee(caller, namespace));
      return { store, coordinator: name, release, namespaces: shown };
    },
  );
  app.post(
    OPERATOR_ROUTES.labels,
    {
      config: { access: "change" },
      schema: {
        summary: "Give a namespace its labels, instead of those it had",
        params: z.object({ namespace: namespaceSchema }),
        body: labelsBodySchema,
        response: { 200: namespaceDescriptionSchema, ...errorResponses },
      },
    },
    async ({ params, body }) => coordinator.labelNamespace(params.namespace, body.labels),
  );
}
