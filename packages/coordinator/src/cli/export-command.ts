/** `export`: the ledger, or a part of it that is asked for, on standard output. */
import { EXPORT_FORMATS, type ExportFormat } from "@callnumber/protocol/operator";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { Command } from "commander";
import { z } from "zod";
import { tokenFileOption } from "./bearer-token.js";
import { running } from "./command-io.js";
import { brokenOff, exportedBytes } from "./export-stream.js";
import { type FilterOptions, filterOptions, filterQuery } from "./ledger-filter-options.js";
import { checkedOption, coordinatorOption, namespaceOption } from "./options.js";

interface Options extends FilterOptions {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
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
    );
  const formats = z.enum(EXPORT_FORMATS, { error: `must be one of ${EXPORT_FORMATS.join(", ")}` });
  command.addOption(checkedOption("--format <format>", "csv, or ndjson (which --json means, too)", formats));
  for (const option of filterOptions()) command.addOption(option);
  return command
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber export > leases.csv\n  $ callnumber export --format ndjson --from 2026-11-16 --to 2026-11-23 | gzip > week.ndjson.gz",
    )
    .action(async ({ coordinator, tokenFile, namespace, format, json, ...filter }: Options) => {
      const chosen = format ?? (json ? "ndjson" : "csv");
      const command = running();
      let tail = Buffer.alloc(0);
      for await (const piece of exportedBytes(
        { coordinator, tokenFile, namespace, filter: filterQuery(filter) },
        chosen,
      )) {
        tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
        await command.write(piece);
      }
      if (chosen === "ndjson" && !isEnd(tail)) throw brokenOff("its last line is missing");
    });
}

function isEnd(tail: Buffer): boolean {
  const [, lastLine = ""] = /([^\n]*)\n$/.exec(tail.toString()) ?? [];
  try {
    return exportEndSchema.safeParse(JSON.parse(lastLine)).success;
  } catch {
    return false;
  }
}
