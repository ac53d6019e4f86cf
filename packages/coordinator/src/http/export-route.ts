/**
 * `GET …/export`: the ledger as a stream, at the pace of whoever takes it, and no longer than somebody does. What goes wrong once
 * it has begun cuts the connection, so that nobody takes a part for the whole.
 */
import { Readable } from "node:stream";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { exportQuerySchema } from "@callnumber/protocol/operator-schemas";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import type { Coordinator } from "../coordinator.js";
import type { ExportStep } from "../ledger-export.js";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";
import { FORMATS } from "./export-formats.js";

type Format = (typeof FORMATS)[keyof typeof FORMATS];

export function exportRoute(app: TypedApp, coordinator: Coordinator): void {
  app.get(
    OPERATOR_ROUTES.export,
    {
      // It would read the whole ledger to answer nothing.
      exposeHeadRoute: false,
      schema: {
        summary: "Export leases, oldest first, as a stream",
        params: z.object({ namespace: namespaceSchema }),
        querystring: exportQuerySchema,
        response: errorResponses,
      },
    },
    async ({ params: { namespace }, query: { format: name, ...filter } }, reply) => {
      const steps = await coordinator.export(namespace, filter);
      const format = FORMATS[name];
      reply.header("content-type", format.contentType);
      reply.header("content-disposition", `attachment; filename="${namespace}-leases.${format.fileEnding}"`);
      return reply.send(Readable.from(textOf(format, steps), { objectMode: false }) as never);
    },
  );
}

async function* textOf(format: Format, steps: AsyncIterable<ExportStep>): AsyncGenerator<string, void> {
  let leaseCount = 0;
  let upToRun: number | null = null;
  if (format.head !== "") yield format.head;
  for await (const step of steps) {
    leaseCount += step.leases.length;
    upToRun = step.upToRun;
    if (step.leases.length > 0) yield format.linesOf(step.leases);
  }
  const end = format.endOf({ end: true, leaseCount, upToRun });
  if (end !== "") yield end;
}
