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
import type { ExportStep } from "../ledger/read-ledger.js";
import type { TypedApp } from "./app.js";
import type { Refusals } from "./error-answer.js";
import { errorResponses } from "./error-responses.js";
import { FORMATS } from "./export-formats.js";

type Format = (typeof FORMATS)[keyof typeof FORMATS];

export function exportRoute(app: TypedApp, coordinator: Coordinator, { tell }: Refusals): void {
  app.get(
    OPERATOR_ROUTES.export,
    {
      config: { access: "read", slots: "exports" },
      schema: {
        summary: "Export leases, oldest first, as a stream",
        params: z.object({ namespace: namespaceSchema }),
        querystring: exportQuerySchema,
        response: errorResponses,
      },
    },
    async (request, reply) => {
      const { namespace } = request.params;
      const { format: name, ...filter } = request.query;
      const format = FORMATS[name];
      const steps = await begun(await coordinator.export(namespace, filter));
      reply.header("content-type", format.contentType);
      reply.header("content-disposition", `attachment; filename="${namespace}-leases.${format.fileEnding}"`);
      const text = textOf(format, steps, (error) => tell(error, request));
      return reply.send(Readable.from(text, { objectMode: false }) as never);
    },
  );
}

/** The first step is there when this resolves: what stands against reading at all is an answer of its own. */
async function begun(steps: AsyncGenerator<ExportStep, void>): Promise<AsyncGenerator<ExportStep, void>> {
  const first = await steps.next();
  return (async function* () {
    if (first.done) return;
    yield first.value;
    yield* steps;
  })();
}

async function* textOf(
  format: Format,
  steps: AsyncIterable<ExportStep>,
  tellFailure: (error: unknown) => void,
): AsyncGenerator<string, void> {
  let leaseCount = 0;
  let upToRun: number | null = null;
  if (format.head !== "") yield format.head;
  try {
    for await (const step of steps) {
      leaseCount += step.leases.length;
      upToRun = step.upToRun;
      if (step.leases.length > 0) yield format.linesOf(step.leases);
    }
  } catch (error) {
    // The answer has begun: nobody else would hear of it.
    tellFailure(error);
    throw error;
  }
  const end = format.endOf({ end: true, leaseCount, upToRun });
  if (end !== "") yield end;
}
