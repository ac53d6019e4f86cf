/** What routes have in common: their parameters, and how they are described. */

import { type ErrorCode, LEDGER_ID_MAX, type NamedRun, RUN_NAME_FORM } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import {
  describedObject,
  jsonKeywords,
  ledgerIdSchema,
  namespaceSchema,
  runNameSchema,
} from "@callnumber/protocol/schemas";
import type { FastifySchema } from "fastify";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import { CoordinatorError } from "../../errors.js";
import type { TypedApp } from "../app.js";
import type { Permission } from "../auth.js";
import type { Operation, OperationParts } from "../openapi.js";

/** What a route fails with that leases runs, or waits for one. */
export const OF_MAKING_LEASES: readonly ErrorCode[] = [
  "rate_limited",
  "run_space_exhausted",
  "run_ceiling_reached",
  "lease_discarded",
];

/** How a number in a path is described, which arrives as text. */
const whole = (unit: string, maximum: number) => {
  return { type: "integer", minimum: 0, maximum, pattern: undefined, "x-unit": unit };
};

export const namespaceField = [
  namespaceSchema,
  "1 to 63 characters `a-z 0-9 . _ -`; the first a letter or digit",
] as const;
export const inNamespace = describedObject("NamespacePath", "A namespace in a path", { namespace: namespaceField });
const ledgerIdText = z
  .string()
  .regex(/^(0|[1-9]\d{0,9})$/, "a run is a whole number")
  .transform(Number)
  .pipe(ledgerIdSchema)
  .register(jsonKeywords, whole("ledger id", LEDGER_ID_MAX));
/** A run in the path of a report: its ledger id in decimal digits, and in no other form. */
export const ofRun = describedObject("ReportPath", "A run in the path of a report", {
  namespace: namespaceField,
  run: [ledgerIdText, "The ledger id of the run in use"],
});

/** A run in a path as people name it. */
export const ofNamedRun = describedObject("RunPath", "A run in a path", {
  namespace: namespaceField,
  run: [runNameSchema, "The run, such as `99`"],
});
const versionText = z
  .string()
  .regex(/^\d$/, RUN_NAME_FORM)
  .transform(Number)
  .pipe(z.int().max(VERSION_MAX, RUN_NAME_FORM));
const runText = runNameSchema.refine(({ version }) => version === undefined, RUN_NAME_FORM);
/** The same in two segments: many proxies reject a slash that is escaped in one. */
export const ofRunOfVersion = describedObject("RunOfVersionPath", "A run in a path, with its version", {
  namespace: namespaceField,
  version: [versionText.register(jsonKeywords, whole("version", VERSION_MAX)), "The version of the run"],
  run: [runText.register(jsonKeywords, whole("run", RUN_MAX)), "The run"],
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

/** Describes a route: the permission that it needs, and for OpenAPI what it is, takes and returns. */
export function described<Response extends z.ZodType, const Parts extends FastifySchema>(
  permission: Permission,
  summary: string,
  parts: Parts,
  response: Response,
  more: Omit<Operation, "summary"> = {},
) {
  return { config: { permission, operation: { summary, ...more } }, schema: { ...parts, response: { 200: response } } };
}

/** Rejects requests of a route that the configuration turns off, with the option that turns it on. */
export function routeThatIsOff(app: TypedApp, path: string, whenOn: OperationParts, message: string): void {
  app.get(path, { config: { permission: "public", whenOn } }, async () => {
    throw new CoordinatorError("not_found", message);
  });
}
