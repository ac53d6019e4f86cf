/** Leases as lines of a table, for people. */
import type { KnownRunState, LedgerEntry } from "@callnumber/protocol/wire";
import { stateOf } from "../ledger-filter.js";
import type { Style } from "./colours.js";
import { commandIo } from "./command-io.js";
import { instant, labelsInWords } from "./print.js";
import { type Column, nameCell, type Table } from "./table.js";
import { terminalTable } from "./terminal-table.js";

const STATE_STYLES: Readonly<Record<KnownRunState, Style | undefined>> = {
  open: "green",
  exhausted: undefined,
  closed: "dim",
  burnt: "red",
  unreported: "yellow",
};

const columnsFor = (isTerminal: boolean): readonly Column<LedgerEntry>[] => [
  { heading: "RUNS", cellOf: runsOf, expendability: 0 },
  { heading: "LEASED AT", cellOf: ({ leasedAtMs }) => timeInWords(leasedAtMs, isTerminal), expendability: 0 },
  { heading: "HOLDER", cellOf: ({ holder }) => nameCell(holder.name), shrinksTo: 8, expendability: 1 },
  { heading: "HOST", cellOf: ({ holder }) => nameCell(holder.host), shrinksTo: 8, expendability: 2 },
  { heading: "PID", cellOf: ({ holder }) => holder.pid, expendability: 3 },
  { heading: "STATE", cellOf: stateInWords, styleOf: (lease) => STATE_STYLES[stateOf(lease)], expendability: 0 },
  { heading: "LABELS", cellOf: ({ holder }) => labelsInWords(holder), shrinksTo: 10, expendability: 4 },
];

/** For standard output as it is. */
export function leaseTable(): Table<LedgerEntry> {
  return terminalTable(columnsFor(commandIo().stdout.isTTY === true));
}

function runsOf({ firstRun, runCount }: LedgerEntry): string {
  return runCount === 1 ? String(firstRun) : `${firstRun}-${firstRun + runCount - 1}`;
}

/** Whoever looks needs no milliseconds, and the width for other things. */
function timeInWords(timeMs: number, isTerminal: boolean): string {
  return isTerminal ? `${instant(timeMs).slice(0, "2026-11-21T08:00:00".length)}Z` : instant(timeMs);
}

/** A burnt lease got nowhere. */
function stateInWords(lease: LedgerEntry): string {
  const { progress } = lease;
  if (progress === null || progress.state === "burnt") return stateOf(lease);
  return `${progress.state} at ${progress.run}/${progress.lastSequence ?? "-"}`;
}
