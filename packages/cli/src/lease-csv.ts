/** Leases as CSV (RFC 4180, but lines end as on Unix), for spreadsheets and databases. */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { formatLabels, formatTime } from "./output.js";

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
export const CSV_HEADING = Object.keys(COLUMNS).join(",");

/** Returns the line of a lease, without a line end. */
export function csvLine(lease: LedgerEntry): string {
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
