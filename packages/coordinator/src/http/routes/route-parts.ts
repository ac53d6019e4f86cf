/** What routes have in common: their parameters, and how they are described. */

import { type NamedRun, RUN_NAME_FORM } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { ledgerIdSchema, namespaceSchema, runNameSchema } from "@callnumber/protocol/schemas";
import type { FastifySchema } from "fastify";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import type { Permission } from "../auth.js";
import { errorResponses } from "../error-response.js";

export const inNamespace = z.object({ namespace: namespaceSchema });
/** A run in the path of a report: its ledger id in decimal digits, and in no other form. */
export const ofRun = inNamespace.extend({
  run: z
    .string()
    .regex(/^(0|[1-9]\d{0,9})$/, "a run is a whole number")
    .transform(Number)
    .pipe(ledgerIdSchema),
});

/** A run in a path as people name it. */
export const ofNamedRun = inNamespace.extend({ run: runNameSchema });
/** The same in two segments: many proxies reject a slash that is escaped in one. */
export const ofRunOfVersion = inNamespace.extend({
  version: z.string().regex(/^\d$/, RUN_NAME_FORM).transform(Number).pipe(z.int().max(VERSION_MAX, RUN_NAME_FORM)),
  run: runNameSchema.refine(({ version }) => version === undefined, RUN_NAME_FORM),
});

interface NamedFilter {
  readonly fromRun?: NamedRun | undefined;
  readonly toRun?: NamedRun | undefined;
}

/** Returns a filter with the ledger ids of its runs. @throws CoordinatorError as `Coordinator.ledgerIdOf`. */
export async function withLedgerIds<Query extends NamedFilter>(
  coordinator: Coordinator,
  namespace: string,
  { fromRun, toRun, ...rest }: Query,
) {
  const idOf = async (run: NamedRun | undefined) => run && (await coordinator.ledgerIdOf(namespace, run));
  return { ...rest, fromRun: await idOf(fromRun), toRun: await idOf(toRun) };
}

/** Describes a route: the permission that it needs, and for OpenAPI what it takes and returns. */
export function described<Response extends z.ZodType, const Parts extends FastifySchema>(
  permission: Permission,
  summary: string,
  parts: Parts,
  response: Response,
) {
  return { config: { permission }, schema: { summary, ...parts, response: { 200: response, ...errorResponses } } };
}
