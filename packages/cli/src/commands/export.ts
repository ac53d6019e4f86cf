/** `export`: the ledger, or a part of it, on standard output. */
import { escapeLines } from "@callnumber/coordinator/internal/text";
import { pathOf } from "@callnumber/protocol/api";
import { exportEndSchema, type LedgerEntry, ledgerEntrySchema } from "@callnumber/protocol/schemas";
import { Command } from "commander";
import { batchesOf } from "../input.js";
import { invocation } from "../invocation.js";
import {
  addOptions,
  choiceOption,
  coordinatorOptions,
  type FilterOptions,
  filterOptions,
  filterQuery,
  type NamespaceOptions,
  namespaceOption,
} from "../options.js";
import { formatLabels, formatTime } from "../output.js";
import { RequestError, requestStream } from "../requests.js";

interface Options extends FilterOptions, NamespaceOptions {
  readonly format: string;
}

/** Of a line of CSV (RFC 4180, but lines end as on Unix), for spreadsheets and databases. */
type Cell = string | number | null | undefined;

const COLUMNS: Readonly<Record<string, (lease: LedgerEntry) => Cell>> = {
  version: ({ version }) => version,
  firstRun: ({ firstRun }) => firstRun,
  runCount: ({ runCount }) => runCount,
  leasedAt: ({ leasedAtMs }) => formatTime(leasedAtMs),
  holder: ({ holder }) => holder.name,
  host: ({ holder }) => holder.host,
  pid: ({ holder }) => holder.pid,
  labels: ({ holder }) => formatLabels(holder),
  coordinator: ({ coordinator }) => coordinator,
  tokenId: ({ tokenId }) => tokenId,
  state: ({ progress }) => progress?.state ?? "unreported",
  lastRun: ({ progress }) => progress?.run,
  lastSequence: ({ progress }) => progress?.lastSequence,
  reportedAt: ({ progress }) => progress && formatTime(progress.reportedAtMs),
};

/** The names of the columns, without a line end. */
const CSV_HEADING = Object.keys(COLUMNS).join(",");

/** More than the end of an export takes. */
const TAIL_BYTES = 256;

export function makeCommand(): Command {
  const command = new Command("export")
    .description(
      "Writes leases to standard output as NDJSON, oldest first: a lease on each line, and a last line that marks a complete export. With " +
        "--format csv as a table with a line of headings, without that last line. The exit code is 1 when the export is incomplete.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber export > leases.ndjson\n  $ callnumber export --format csv > leases.csv\n" +
        "  $ callnumber export --from 2026-11-16 --to 2026-11-23 | gzip > week.ndjson.gz",
    )
    .action(exportLeases);
  const format = choiceOption("--format <format>", "form of the lines", ["ndjson", "csv"]).default("ndjson");
  return addOptions(command, [format, ...filterOptions(), ...coordinatorOptions(), namespaceOption()]);
}

/** @throws RequestError with the coordinator's own code; `export_incomplete` when it is incomplete. */
async function exportLeases(options: Options): Promise<void> {
  const isCsv = options.format === "csv";
  if (isCsv && options.json) throw new TypeError("--json is NDJSON: leave out --format csv, or --json");
  const path = `${pathOf("export", { namespace: options.namespace })}?${filterQuery(options)}`;
  const body = completely(await requestStream(options, path));
  await (isCsv ? writeCsv(body) : writeNdjson(body));
}

async function writeNdjson(body: AsyncIterable<Uint8Array>): Promise<void> {
  const command = invocation();
  let tail = Buffer.alloc(0);
  for await (const piece of body) {
    tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
    await command.write(piece);
  }
  if (!isEnd(tail)) throw incomplete("its last line is missing");
}

async function writeCsv(body: AsyncIterable<Uint8Array>): Promise<void> {
  const command = invocation();
  await command.write(`${CSV_HEADING}\n`);
  for await (const lines of batchesOf(textOf(body), "the export")) {
    if (isEnd(Buffer.from(`${lines.at(-1)}\n`))) return await writeLeases(lines.slice(0, -1));
    await writeLeases(lines);
  }
  throw incomplete("its last line is missing");
}

async function writeLeases(lines: readonly string[]): Promise<void> {
  const leases = lines.map((line) => csvLine(leaseIn(line)));
  if (leases.length > 0) await invocation().write(escapeLines(`${leases.join("\n")}\n`));
}

function leaseIn(line: string): LedgerEntry {
  try {
    return ledgerEntrySchema.parse(JSON.parse(line));
  } catch (error) {
    throw incomplete(error);
  }
}

async function* textOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  for await (const piece of body) yield decoder.decode(piece, { stream: true });
}

/** Only what fails while it is read makes the export incomplete: writing may fail, too. */
async function* completely(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body;
  } catch (error) {
    throw incomplete(error);
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

function incomplete(cause: unknown): RequestError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `the export was broken off: ${reason}. What came is a part of it only`;
  return new RequestError("export_incomplete", message, { cause });
}

/** Returns the line of a lease, without a line end. */
function csvLine(lease: LedgerEntry): string {
  return Object.values(COLUMNS)
    .map((cellOf) => quoted(cellOf(lease)))
    .join(",");
}

/** Importers choose names: one that begins like a formula gets an apostrophe, so that no spreadsheet runs it. */
function quoted(cell: Cell): string {
  if (typeof cell !== "string") return String(cell ?? "");
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
