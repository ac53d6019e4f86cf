/**
 * `GET …/export`: the ledger as a stream, at the pace of its client. An error after the stream has begun cuts the connection, so that no
 * client takes a part for the whole.
 */
import { Readable } from "node:stream";
import { type ExportEnd, type ExportFormat, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { exportQuerySchema } from "@callnumber/protocol/operator-schemas";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { stringify } from "csv-stringify/sync";
import type { Coordinator } from "../../coordinator.js";
import { type ExportStep, stateOf } from "../../ledger/read-ledger.js";
import type { TypedApp } from "../app.js";
import { errorResponses, type LogError } from "../error-response.js";
import { inNamespace } from "./route-parts.js";

interface Format {
  readonly contentType: string;
  readonly head: string;
  /** Empty for no leases. */
  readonly linesOf: (leases: readonly LedgerEntry[]) => string;
  readonly endOf: (end: ExportEnd) => string;
}

type Cell = string | number | null;

/** The columns of the table, in their order. Times stand twice: for programs, and for people. */
const COLUMNS: Readonly<Record<string, (entry: LedgerEntry) => Cell>> = {
  version: ({ version }) => version,
  firstRun: ({ firstRun }) => firstRun,
  lastRun: ({ firstRun, runCount }) => firstRun + runCount - 1,
  runCount: ({ runCount }) => runCount,
  leasedAtMs: ({ leasedAtMs }) => leasedAtMs,
  leasedAt: ({ leasedAtMs }) => instant(leasedAtMs),
  holder: ({ holder }) => holder.name,
  host: ({ holder }) => holder.host,
  pid: ({ holder }) => holder.pid,
  labels: ({ holder }) => JSON.stringify(holder.labels),
  coordinator: ({ coordinator }) => coordinator,
  tokenId: ({ tokenId }) => tokenId ?? null,
  nonce: ({ nonce }) => nonce,
  state: stateOf,
  reportedRun: ({ progress }) => progress && progress.run,
  lastSequence: ({ progress }) => progress && progress.lastSequence,
  reportedAtMs: ({ progress }) => progress && progress.reportedAtMs,
  reportedAt: ({ progress }) => progress && instant(progress.reportedAtMs),
};

const cellsOf = Object.values(COLUMNS);

const FORMATS: Readonly<Record<ExportFormat, Format>> = {
  ndjson: {
    contentType: "application/x-ndjson; charset=utf-8",
    head: "",
    linesOf: (leases) => leases.map((lease) => `${JSON.stringify(lease)}\n`).join(""),
    endOf: (end) => `${JSON.stringify(end)}\n`,
  },
  csv: {
    contentType: "text/csv; charset=utf-8; header=present",
    head: table([Object.keys(COLUMNS)]),
    linesOf: (leases) => table(leases.map((lease) => cellsOf.map((cellOf) => cellOf(lease)))),
    // Every line of a table is a row of it.
    endOf: () => "",
  },
};

/** RFC 4180. A spreadsheet takes a text that begins with = + - @ for a formula, and a holder calls itself what it likes. */
function table(rows: readonly (readonly Cell[])[]): string {
  return stringify(rows as Cell[][], { record_delimiter: "windows", quoted_string: true, escape_formulas: true });
}

function instant(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

export function exportRoute(app: TypedApp, coordinator: Coordinator, logError: LogError): void {
  app.get(
    OPERATOR_ROUTES.export,
    {
      config: { permission: "read", slots: "exports" },
      schema: {
        summary: "Export leases, oldest first, as a stream",
        params: inNamespace,
        querystring: exportQuerySchema,
        response: errorResponses,
      },
    },
    async (request, reply) => {
      const { namespace } = request.params;
      const { format: name, ...filter } = request.query;
      const format = FORMATS[name];
      const steps = await coordinator.export(namespace, filter);
      // An error before the first step is a response of its own.
      const first = await steps.next();
      const text = textOf(format, first, steps, (error) => logError(error, request));
      reply.header("content-type", format.contentType);
      reply.header("content-disposition", `attachment; filename="${namespace}-leases.${name}"`);
      return reply.send(Readable.from(text, { objectMode: false }) as never);
    },
  );
}

async function* textOf(
  format: Format,
  first: IteratorResult<ExportStep, void>,
  steps: AsyncGenerator<ExportStep, void>,
  logFailure: (error: unknown) => void,
): AsyncGenerator<string, void> {
  let leaseCount = 0;
  let upToRun: number | null = null;
  if (format.head !== "") yield format.head;
  try {
    for (let step = first; !step.done; step = await steps.next()) {
      const { leases } = step.value;
      leaseCount += leases.length;
      ({ upToRun } = step.value);
      if (leases.length > 0) yield format.linesOf(leases);
    }
  } catch (error) {
    // The response has begun, so no error body can be sent.
    logFailure(error);
    throw error;
  }
  const end = format.endOf({ end: true, leaseCount, upToRun });
  if (end !== "") yield end;
}
