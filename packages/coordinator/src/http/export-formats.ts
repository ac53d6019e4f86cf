/** How exported leases are written down: each format's head, lines and end. Pure. */
import type { ExportEnd, ExportFormat } from "@callnumber/protocol/operator";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { stringify } from "csv-stringify/sync";
import { stateOf } from "../ledger/read-ledger.js";

interface Format {
  readonly contentType: string;
  readonly fileEnding: ExportFormat;
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

export const FORMATS: Readonly<Record<ExportFormat, Format>> = {
  ndjson: {
    contentType: "application/x-ndjson; charset=utf-8",
    fileEnding: "ndjson",
    head: "",
    linesOf: (leases) => leases.map((lease) => `${JSON.stringify(lease)}\n`).join(""),
    endOf: (end) => `${JSON.stringify(end)}\n`,
  },
  csv: {
    contentType: "text/csv; charset=utf-8; header=present",
    fileEnding: "csv",
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
