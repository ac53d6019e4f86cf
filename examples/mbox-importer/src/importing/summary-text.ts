/** The summary as text for people. The same facts as JSON are the summary itself. */

import { printable } from "../report/printable.js";
import type { Summary } from "./summary.js";

const PROBLEMS_SHOWN_MAX = 20;
const SOURCES_SHOWN_MAX = 50;
const integer = new Intl.NumberFormat("en-US");

const HEADINGS: Readonly<Record<Summary["outcome"], string>> = {
  complete: "Imported into",
  stopped: "Stopped before the end of the import into",
  failed: "Failed before the end of the import into",
};

export function summaryText(summary: Summary): string {
  return [...imported(summary), ...archiveLines(summary), ...sourceLines(summary), ...problemLines(summary)].join("\n");
}

function imported({ outcome, archive, messages, runs, processes, seconds, callNumbersPerSecond }: Summary): string[] {
  return [
    `${HEADINGS[outcome]} ${printable(archive)}`,
    row("stored now", count(messages.stored, "message")),
    row("already there", count(messages.alreadyThere, "message")),
    ...(messages.notStored === 0
      ? []
      : [row("NOT stored", `${count(messages.notStored, "part")}: see the problems below`)]),
    row("runs", `${integer.format(runs.used)} used, ${integer.format(runs.leased)} leased`),
    row("time", `${seconds.toFixed(1)} s with ${count(processes, "process", "processes")}`),
    // Under a second it would tell how fast processes start.
    ...(seconds < 1 ? [] : [row("pace", `${integer.format(Math.round(callNumbersPerSecond))} call numbers a second`)]),
  ];
}

function archiveLines({ archiveHolds: holds, namespace, storeId }: Summary): string[] {
  if (holds === null) return [];
  const { ids, messages } = holds.repeatedMessageIds;
  const contents = holds.repeatedContents;
  return [
    "",
    `The archive holds ${count(holds.messages, "message")}`,
    ...(storeId === null ? [] : [row("numbered by", printable(`store ${storeId}, namespace ${namespace}`))]),
    row("without Message-ID", integer.format(holds.withoutMessageId)),
    row("same Message-ID", `${count(ids, "ID")} in ${count(messages, "message")}`),
    row("same bytes", `${count(contents.contents, "content")} in ${count(contents.messages, "message")}`),
  ];
}

function sourceLines({ sources }: Summary): string[] {
  if (sources.length === 0) return [];
  const lines = sources.slice(0, SOURCES_SHOWN_MAX).map(({ path, messages, notices }) => {
    return `  ${[`${printable(path)}: ${count(messages, "message")}`, ...notices].map((text) => printable(text)).join("; ")}`;
  });
  const more = sources.length - lines.length;
  return ["", "Sources", ...lines, ...(more > 0 ? [`  and ${more} more (--json shows all)`] : [])];
}

function problemLines({ problems, problemCount, archive }: Summary): string[] {
  if (problemCount === 0) return [];
  const lines = problems.slice(0, PROBLEMS_SHOWN_MAX).map(({ source, number, byteOffset, reason, stored }) => {
    const where = `${printable(source)}, message ${number}, byte ${byteOffset}`;
    return `  ${where}: ${printable(reason)}${stored ? "" : " (NOT stored)"}`;
  });
  const more = problemCount - lines.length;
  const query = `sqlite3 ${printable(archive)} "select source, number, byte_offset, problem from messages where problem is not null"`;
  const hint =
    more > 0 ? [`  and ${integer.format(more)} more (--json shows up to 10,000; all that are stored: ${query})`] : [];
  return ["", `Problems: ${integer.format(problemCount)}`, ...lines, ...hint];
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(20)}${value}`;
}

function count(amount: number, one: string, several = `${one}s`): string {
  return `${integer.format(amount)} ${amount === 1 ? one : several}`;
}
