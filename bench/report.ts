/**
 * What a bench has found, as data: sections with a heading, sentences and a table. A bench publishes its report once, at its end;
 * `npm run bench` prints it, and writes it into docs/performance.md when asked. Knows nothing of vitest or of the document.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { reportAsText } from "./report-as-text.js";

/** The folder in which `npm run bench` waits for the reports; without it a report is printed where it is made. */
export const FOLDER_VARIABLE = "CALLNUMBER_BENCH_FOLDER";

export interface Table {
  readonly columns: readonly string[];
  /** As many cells as columns; what is right-aligned is found by itself. */
  readonly rows: readonly (readonly string[])[];
}

export interface Section {
  readonly heading: string;
  /** How it was measured and what is to be noted; each a paragraph of its own. */
  readonly sentences: readonly string[];
  readonly table?: Table;
}

export interface Report {
  /** The name of the bench, and of its place in docs/performance.md: that of its file without `.bench.ts`. */
  readonly bench: string;
  /** The one figure to remember, a whole sentence; printed first. */
  readonly headline?: string;
  readonly sections: readonly Section[];
}

export function publish(report: Report): void {
  const folder = process.env[FOLDER_VARIABLE];
  if (folder === undefined) console.log(reportAsText(report));
  else writeFileSync(join(folder, `${report.bench}.json`), JSON.stringify(report));
}
