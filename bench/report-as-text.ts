/** A report for a terminal. */
import type { Report, Section, Table } from "./report.js";

export function reportAsText({ sections }: Report): string {
  return sections.map(sectionAsText).join("\n");
}

function sectionAsText({ heading, sentences, table }: Section): string {
  return ["", heading, "-".repeat(heading.length), ...sentences, ...(table ? ["", tableAsText(table)] : []), ""].join(
    "\n",
  );
}

/** First column to the left, the others to the right: figures stand there. */
function tableAsText({ columns, rows }: Table): string {
  const widths = columns.map((name, index) => Math.max(name.length, ...rows.map((row) => (row[index] ?? "").length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0)))
      .join("   ")
      .trimEnd();
  return [line(columns), ...rows.map(line)].join("\n");
}
