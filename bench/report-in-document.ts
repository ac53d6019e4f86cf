/**
 * Reports in docs/performance.md: each between the two marks of its bench. What stands around them is written by people and
 * stays as it is.
 */
import type { Report, Section, Table } from "./report.js";

/**
 * The document with the report between its marks.
 * @throws Error when the document has not exactly one place for it.
 */
export function withReport(document: string, report: Report): string {
  const [begin, end] = marksOf(report.bench);
  const [before, rest, ...moreBegins] = document.split(begin);
  const [, after, ...moreEnds] = (rest ?? "").split(end);
  if (before === undefined || after === undefined || moreBegins.length > 0 || moreEnds.length > 0) {
    throw new Error(
      `docs/performance.md needs one place for the bench "${report.bench}": ${begin} and, below it, ${end}`,
    );
  }
  const parts = [...(report.headline ? [report.headline] : []), ...report.sections.map(sectionAsMarkdown)];
  return `${before}${[begin, ...parts, end].join("\n\n")}${after}`;
}

function marksOf(bench: string): readonly [begin: string, end: string] {
  return [`<!-- bench:${bench} -->`, `<!-- /bench:${bench} -->`];
}

function sectionAsMarkdown({ heading, sentences, table }: Section): string {
  return [`### ${heading}`, ...sentences, ...(table ? [tableAsMarkdown(table)] : [])].join("\n\n");
}

function tableAsMarkdown({ columns, rows }: Table): string {
  const widths = columns.map((name, index) =>
    Math.max(name.length, 4, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0))).join(" | ")} |`;
  const rule = `| ${widths.map((width, index) => (index === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(columns), rule, ...rows.map(line)].join("\n");
}
