/** Words, tables and JSON on standard output. */
import { stdout } from "node:process";
import type { Holder } from "@callnumber/protocol/wire";

export function print(text: string): void {
  stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Columns as wide as their widest cell; numbers to the right. */
export function printTable(headings: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => String(row[column] ?? "").length)),
  );
  const line = (cells: readonly (string | number)[]) =>
    cells
      .map((cell, column) =>
        typeof cell === "number" ? String(cell).padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  print(line(headings));
  for (const row of rows) print(line(row));
}

/** `name=value name=value`; empty for a holder without labels. */
export function labelsInWords({ labels }: Holder): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

export function instant(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
