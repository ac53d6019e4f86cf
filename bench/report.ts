/**
 * What a benchmark has found, as data: a table with a heading and sentences. A benchmark publishes its report once, at its end;
 * `npm run bench` prints it, and writes it into docs/internals/benchmarks.md when asked.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** The directory in which `npm run bench` waits for the reports; without it a report is printed where it is made. */
export const DIRECTORY_VARIABLE = "CALLNUMBER_BENCH_DIRECTORY";

interface Table {
  readonly columns: readonly string[];
  /** As many cells as columns. */
  readonly rows: readonly (readonly string[])[];
}

export interface Section {
  readonly heading: string;
  /** How it was measured and what to notice; each a paragraph of its own. */
  readonly sentences: readonly string[];
  readonly table: Table;
}

export interface Report {
  readonly bench: string;
  readonly sections: readonly Section[];
}

/** `bench`: the name of the benchmark, and of its place in docs/internals/benchmarks.md: that of its file without `.bench.ts`. */
export function publish(bench: string, ...sections: readonly Section[]): void {
  const report: Report = { bench, sections };
  const directory = process.env[DIRECTORY_VARIABLE];
  if (directory === undefined) console.log(reportAsText(report));
  else writeFileSync(join(directory, `${report.bench}.json`), JSON.stringify(report));
}

/** Formats a report for a terminal. */
export function reportAsText({ sections }: Report): string {
  const blocks = sections.map(({ heading, sentences, table }) => {
    const { header, rows } = aligned(table, 0);
    const lines = [header, ...rows].map((cells) => cells.join("   ").trimEnd());
    return ["", heading, "-".repeat(heading.length), ...sentences, "", ...lines, ""].join("\n");
  });
  return blocks.join("\n");
}

/**
 * Returns the document with the report between the two marks of its benchmark; what is around them stays as it is.
 * @throws Error when the document has not exactly one place for it.
 */
export function withReport(document: string, { bench, sections }: Report): string {
  const [begin, end] = [`<!-- bench:${bench} -->`, `<!-- /bench:${bench} -->`];
  const [before, rest, ...moreBegins] = document.split(begin);
  const [, after, ...moreEnds] = (rest ?? "").split(end);
  if (before === undefined || after === undefined || moreBegins.length > 0 || moreEnds.length > 0) {
    throw new Error(
      `docs/internals/benchmarks.md needs one place for the benchmark "${bench}": ${begin} and, below it, ${end}`,
    );
  }
  return `${before}${[begin, ...sections.map(asMarkdown), end].join("\n\n")}${after}`;
}

function asMarkdown({ heading, sentences, table }: Section): string {
  const { header, rows, widths } = aligned(table, 4);
  const rule = widths.map((width, index) => (index === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  const lines = [header, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return [`### ${heading}`, ...sentences.map(wrapped), lines.join("\n")].join("\n\n");
}

/** Breaks a sentence into lines of at most 100 characters, as every document here has them. */
function wrapped(sentence: string): string {
  return sentence.replace(/(.{1,100})(?: |$)/g, "$1\n").trimEnd();
}

/** Pads the cells to the width of their column: the first column to the left, the figures in the others to the right. */
function aligned({ columns, rows }: Table, widthMin: number) {
  const widths = columns.map((name, index) =>
    Math.max(widthMin, name.length, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const pad = (cells: readonly string[]) =>
    cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0)));
  return { header: pad(columns), rows: rows.map(pad), widths };
}
