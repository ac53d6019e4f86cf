/**
 * `GET …/export`: the ledger as a stream, at the pace of its client. An error after the stream has begun cuts the connection, so that no
 * client takes a part for the whole.
 */
import { Readable } from "node:stream";
import { ROUTES, runOfLedgerId } from "@callnumber/protocol/api";
import { type ExportEnd, exportQuerySchema } from "@callnumber/protocol/schemas";
import type { Coordinator } from "../../coordinator.js";
import type { ExportStep } from "../../ledger/read-ledger.js";
import type { TypedApp } from "../app.js";
import { errorResponses, type LogError } from "../error-response.js";
import { inNamespace, withLedgerIds } from "./route-parts.js";

export function exportRoute(app: TypedApp, coordinator: Coordinator, logError: LogError): void {
  app.get(
    ROUTES.export,
    {
      config: { permission: "read", slots: "exports" },
      schema: {
        summary: "Export leases, oldest first, as a stream of NDJSON",
        params: inNamespace,
        querystring: exportQuerySchema,
        response: errorResponses,
      },
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
