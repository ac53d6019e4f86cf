/** What is read about the namespaces: all of them; status, capacity, history, leases, call numbers and the whole ledger of one. */

import { Readable } from "node:stream";
import { ledgerIdOf, ROUTES, runOfLedgerId } from "@callnumber/protocol/api";
import {
  capacityResponseSchema,
  describedObject,
  type ExportEnd,
  exportQuerySchema,
  historyQuerySchema,
  historyResponseSchema,
  inspectQuerySchema,
  inspectResponseSchema,
  namespacesResponseSchema,
  publicCallNumberResponseSchema,
  runResponseSchema,
  runsQuerySchema,
  runsResponseSchema,
  statusResponseSchema,
} from "@callnumber/protocol/schemas";
import * as z from "zod";
import type { Coordinator } from "../../coordinator.js";
import { CoordinatorError } from "../../errors.js";
import type { ExportStep } from "../../ledger/read-ledger.js";
import type { MadeNumbers } from "../../numbers/made-numbers.js";
import type { TypedApp } from "../app.js";
import { canRead } from "../auth.js";
import type { LogError } from "../error-response.js";
import { OF_THE_STORE } from "../openapi.js";
import { described, inNamespace, namespaceField, ofNamedRun, ofRunOfVersion, withLedgerIds } from "./route-parts.js";

const ofCallNumber = describedObject("CallNumberPath", "A call number in a path", {
  namespace: namespaceField,
  callNumber: [z.string(), "A call number; any other text is answered, too"],
});

/** `made`: which requests the numbers of the coordinator's own runs were made for. */
export function namespacesRoutes(app: TypedApp, coordinator: Coordinator, release: string, made: MadeNumbers): void {
  const list = described(
    "read",
    "List all namespaces, by name, also those whose record can't be read",
    {},
    namespacesResponseSchema,
    { errors: OF_THE_STORE },
  );
  app.get(ROUTES.namespaces, { ...list, config: { ...list.config, isFiltered: true } }, async ({ principal }) => {
    const { name, storeKind: store } = coordinator;
    const namespaces = await coordinator.namespaces();
    const readable = namespaces.filter(({ namespace }) => canRead(principal, namespace));
    return { store, coordinator: name, release, namespaces: readable };
  });
  app.get(
    ROUTES.status,
    described(
      "read",
      "High-water mark, runs left, rate of use and forecast",
      { params: inNamespace },
      statusResponseSchema,
    ),
    async ({ params }) => coordinator.status(params.namespace),
  );
  app.get(
    ROUTES.capacity,
    described(
      "read",
      "Runs used and left, rates, forecasts, holders, alarms",
      { params: inNamespace },
      capacityResponseSchema,
    ),
    async ({ params }) => coordinator.capacity.capacity(params.namespace),
  );
  app.get(
    ROUTES.history,
    described(
      "read",
      "Runs leased over time",
      { params: inNamespace, querystring: historyQuerySchema },
      historyResponseSchema,
    ),
    async ({ params, query }) => coordinator.capacity.history(params.namespace, query.windowMs),
  );
  app.get(
    ROUTES.runs,
    described(
      "read",
      "List leases, newest first",
      { params: inNamespace, querystring: runsQuerySchema },
      runsResponseSchema,
    ),
    async ({ params, query }, reply) => {
      const page = await coordinator.runs(params.namespace, await withLedgerIds(coordinator, params.namespace, query));
      // Its shape is our own: to check 500 leases against the schema again would delay all other requests.
      return await reply.type("application/json; charset=utf-8").send(JSON.stringify(page) as never);
    },
  );
  const ofOneRun = "Who got a run, and how far it got";
  const errorsOfOneRun = ["run_not_leased", "lease_trimmed"] as const;
  app.get(
    ROUTES.run,
    described("read", ofOneRun, { params: ofNamedRun }, runResponseSchema, { errors: errorsOfOneRun }),
    async ({ params: { namespace, run } }) => coordinator.run(namespace, await coordinator.ledgerIdOf(namespace, run)),
  );
  app.get(
    ROUTES.runOfVersion,
    described("read", ofOneRun, { params: ofRunOfVersion }, runResponseSchema, { errors: errorsOfOneRun }),
    async ({ params: { namespace, version, run } }) => coordinator.run(namespace, ledgerIdOf(version, run.run)),
  );
  app.get(
    ROUTES.callNumber,
    described(
      "read",
      "Inspect a call number: what it is, who made it, and whether a message can have it",
      { params: ofCallNumber, querystring: inspectQuerySchema },
      inspectResponseSchema,
    ),
    // A malformed text is a response, not an error.
    async ({ params: { namespace, callNumber }, query }) =>
      made.explain(await coordinator.inspect(namespace, callNumber, { withNeighbors: query.neighbors === "yes" })),
  );
}

export const PUBLIC_CALL_NUMBER = described(
  "public",
  "Whether a message can have a call number, and nothing else",
  { params: ofCallNumber },
  publicCallNumberResponseSchema,
  { description: "With `serve --public-inspect` only.", errors: ["not_found", "store_unavailable"] },
);

/** For an archive's page about missing messages: whether a message can have the number, and nothing else. */
export function publicCallNumberRoute(app: TypedApp, coordinator: Coordinator): void {
  const { config, schema } = PUBLIC_CALL_NUMBER;
  app.get(
    ROUTES.publicCallNumber,
    { config: { ...config, slots: "publicReads" }, schema },
    async ({ params: { namespace, callNumber } }) => {
      try {
        return { callNumber, canExist: await coordinator.canExist(namespace, callNumber) };
      } catch (error) {
        if (!(error instanceof CoordinatorError)) throw error;
        // The coordinator's own message names hosts and commands.
        throw error.code === "namespace_not_found"
          ? new CoordinatorError("not_found", `there is no namespace "${namespace}"`)
          : new CoordinatorError("store_unavailable", "this can't be answered now; try again later");
      }
    },
  );
}

/**
 * The ledger as a stream, at the pace of its client. An error after the stream has begun cuts the connection, so that no client takes a part
 * for the whole.
 */
export function exportRoute(app: TypedApp, coordinator: Coordinator, logError: LogError): void {
  app.get(
    ROUTES.export,
    {
      config: {
        permission: "read",
        slots: "exports",
        operation: {
          summary: "Export leases, oldest first, as a stream of NDJSON",
          content: { "application/x-ndjson": "A `LedgerEntry` a line, and last an `ExportEnd`" },
        },
      },
      schema: { params: inNamespace, querystring: exportQuerySchema },
    },
    async (request, reply) => {
      const { namespace } = request.params;
      const steps = await coordinator.export(namespace, await withLedgerIds(coordinator, namespace, request.query));
      // An error before the first step is a response of its own.
      const first = await steps.next();
      const lines = linesOf(first, steps, (error) => logError(error, request));
      reply.header("content-type", "application/x-ndjson; charset=utf-8");
      reply.header("content-disposition", `attachment; filename="${namespace}-leases.ndjson"`);
      return reply.send(Readable.from(lines, { objectMode: false }) as never);
    },
  );
}

/** A line for each lease, and a last one without which the export is incomplete. */
async function* linesOf(
  first: IteratorResult<ExportStep, void>,
  steps: AsyncGenerator<ExportStep, void>,
  logFailure: (error: unknown) => void,
): AsyncGenerator<string, void> {
  let leaseCount = 0;
  let upToRun: number | null = null;
  try {
    for (let step = first; !step.done; step = await steps.next()) {
      const { leases } = step.value;
      leaseCount += leases.length;
      ({ upToRun } = step.value);
      if (leases.length > 0) yield leases.map((lease) => `${JSON.stringify(lease)}\n`).join("");
    }
  } catch (error) {
    // The response has begun, so no error body can be sent.
    logFailure(error);
    throw error;
  }
  const upTo = upToRun === null ? { version: null, run: null } : runOfLedgerId(upToRun);
  const end: ExportEnd = { end: true, leaseCount, upToVersion: upTo.version, upToRun: upTo.run };
  yield `${JSON.stringify(end)}\n`;
}
