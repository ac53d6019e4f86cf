/** `export`: the ledger, or a part of it, on standard output. */
import { EXPORT_FORMATS, type ExportFormat, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { filledPath } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { z } from "zod";
import { running } from "../command-io.js";
import {
  addOptions,
  type CoordinatorOptions,
  checkedOption,
  coordinatorOptions,
  type FilterOptions,
  filterOptions,
  filterQuery,
  namespaceOption,
} from "../options.js";
import { RequestError, requestStream } from "../requests.js";

interface Options extends FilterOptions, CoordinatorOptions {
  readonly namespace: string;
  readonly format?: ExportFormat;
  readonly json?: boolean;
}

/** More than the end of an export takes. */
const TAIL_BYTES = 256;

export function exportCommand(): Command {
  const command = new Command("export")
    .summary("the ledger as a file: CSV or NDJSON")
    .description(
      "Writes leases to standard output, oldest first, as a stream: CSV with a row of headings, or NDJSON, a lease on each line and a last " +
        "line that says that it is whole. The exit code is 1 when the export was broken off.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber export > leases.csv\n  $ callnumber export --format ndjson --from 2026-11-16 --to 2026-11-23 | gzip > week.ndjson.gz",
    )
    .action(exportLeases);
  const formats = z.enum(EXPORT_FORMATS, { error: `must be one of ${EXPORT_FORMATS.join(", ")}` });
  return addOptions(command, [
    checkedOption("--format <format>", "csv, or ndjson (which --json means, too)", formats),
    ...filterOptions(),
    ...coordinatorOptions(),
    namespaceOption(),
  ]);
}

async function exportLeases(options: Options): Promise<void> {
  const format = options.format ?? (options.json ? "ndjson" : "csv");
  const command = running();
  let tail = Buffer.alloc(0);
  for await (const piece of exportedBytes(options, format)) {
    tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
    await command.write(piece);
  }
  if (format === "ndjson" && !isEnd(tail)) throw brokenOff("its last line is missing");
}

/** @throws RequestError with the coordinator's own code; `export_incomplete` when it is incomplete. */
async function* exportedBytes(options: Options, format: ExportFormat): AsyncGenerator<Uint8Array, void> {
  const query = filterQuery(options);
  query.set("format", format);
  const path = `${filledPath(OPERATOR_ROUTES.export, { namespace: options.namespace })}?${query}`;
  const body = await requestStream(options, path);
  try {
    yield* body;
  } catch (error) {
    throw brokenOff(error);
  }
}

function isEnd(tail: Buffer): boolean {
  const [, lastLine = ""] = /([^\n]*)\n$/.exec(tail.toString()) ?? [];
  try {
    return exportEndSchema.safeParse(JSON.parse(lastLine)).success;
  } catch {
    return false;
  }
}

function brokenOff(cause: unknown): RequestError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `the export was broken off: ${reason}. What came is a part of it only`;
  return new RequestError("export_incomplete", message, { cause });
}
