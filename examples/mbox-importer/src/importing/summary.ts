/** What an import did, and what the archive has afterwards: as data for `--json`, and as text for people. */
import type { ErrorDetails } from "../errors.js";
import type { ScannedSource } from "../sources/plan.js";
import type { Problem } from "../sources/source.js";
import { printable, quantity } from "../terminal.js";

/** `complete`: every message of every source was read · `stopped`: by a signal · `failed`: by an error. */
type Outcome = "complete" | "stopped" | "failed";

export interface Summary {
  readonly outcome: Outcome;
  readonly error: ErrorDetails | null;
  readonly archive: string;
  readonly coordinator: string;
  readonly namespace: string;
  /** Messages of this import. `notStored` are listed among the problems. */
  readonly messages: { readonly stored: number; readonly alreadyThere: number; readonly notStored: number };
  readonly runsLeased: number;
  readonly processes: number;
  readonly seconds: number;
  /** How many messages the archive has in the end; null when it could not be opened. */
  readonly archiveHolds: number | null;
  /** The store that the archive's numbers come from; null before the first one. */
  readonly storeId: string | null;
  readonly sources: readonly ScannedSource[];
  readonly problemCount: number;
  /** The first `PROBLEM_COUNT_MAX`; those of stored messages are also in the column `problem`. */
  readonly problems: readonly Problem[];
}

/** A summary must fit in memory whatever the sources contain. */
export const PROBLEM_COUNT_MAX = 10_000;
const SHOWN_PROBLEM_COUNT_MAX = 20;

const HEADINGS: Readonly<Record<Outcome, string>> = {
  complete: "Imported into",
  stopped: "Stopped before the end of the import into",
  failed: "Failed before the end of the import into",
};

/** Formats the summary for a terminal. */
export function summaryText(summary: Summary): string {
  const { outcome, archive, messages, sources } = summary;
  const { runsLeased, processes, seconds, archiveHolds, storeId, namespace } = summary;
  const rows: [name: string, value: string][] = [
    ["stored now", quantity(messages.stored, "message")],
    ["already there", quantity(messages.alreadyThere, "message")],
    ["runs leased", String(runsLeased)],
    ["time", `${seconds.toFixed(1)} s with ${quantity(processes, "process", "processes")}`],
    ["archive holds", quantity(archiveHolds ?? 0, "message")],
  ];
  if (messages.notStored > 0) rows.push(["NOT stored", `${quantity(messages.notStored, "part")}: see the problems`]);
  if (storeId !== null) rows.push(["numbered by", printable(`store ${storeId}, namespace ${namespace}`)]);
  return [
    `${HEADINGS[outcome]} ${printable(archive)}`,
    ...rows.map(([name, value]) => `  ${name.padEnd(20)}${value}`),
    ...(sources.length === 0 ? [] : ["", "Sources", ...sources.map(sourceLine)]),
    ...problemLines(summary),
  ].join("\n");
}

function sourceLine({ path, messages, notices }: ScannedSource): string {
  return `  ${[`${printable(path)}: ${quantity(messages, "message")}`, ...notices.map((text) => printable(text))].join("; ")}`;
}

function problemLines({ problems, problemCount }: Summary): string[] {
  if (problemCount === 0) return [];
  const lines = problems.slice(0, SHOWN_PROBLEM_COUNT_MAX).map(({ source, number, byteOffset, reason, stored }) => {
    const place = `${printable(source)}, message ${number}, byte ${byteOffset}`;
    return `  ${place}: ${printable(reason)}${stored ? "" : " (NOT stored)"}`;
  });
  const hidden = problemCount - lines.length;
  if (hidden > 0) lines.push(`  and ${hidden} more: see --json, or the column problem of the archive`);
  return ["", `Problems: ${problemCount}`, ...lines];
}
