/** What routes have in common: their parameters, and how they are described. */
import { ledgerIdSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import type { FastifySchema } from "fastify";
import * as z from "zod";
import type { Permission } from "../auth.js";
import { errorResponses } from "../error-response.js";

export const inNamespace = z.object({ namespace: namespaceSchema });
/** A run in a path: its ledger id in decimal digits, and in no other form. */
export const ofRun = inNamespace.extend({
  run: z
    .string()
    .regex(/^(0|[1-9]\d{0,9})$/, "a run is a whole number")
    .transform(Number)
    .pipe(ledgerIdSchema),
});

/** Describes a route: the permission that it needs, and for OpenAPI what it takes and returns. */
export function described<Response extends z.ZodType, const Parts extends FastifySchema>(
  permission: Permission,
  summary: string,
  parts: Parts,
  response: Response,
) {
  return { config: { permission }, schema: { summary, ...parts, response: { 200: response, ...errorResponses } } };
}
