/** The table of the bad inputs, and its last line. */
import type { RowResult } from "./play-row.js";

const HEADINGS = ["family", "input", "times", "answered", "runs burnt", "memory KiB", "others' latency", "problems"];

export function tableOf(results: readonly RowResult[]): string {
  const cells = [HEADINGS, ...results.map((result) => cellsOf(result))];
  const widths = HEADINGS.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function totalsOf(results: readonly RowResult[]): string {
  const ratios = results
    .map(({ latencyRatio }) => latencyRatio)
    .filter(Number.isFinite)
    .sort((a, b) => a - b);
  const sum = (figureOf: (result: RowResult) => number) =>
    results.reduce((total, result) => total + figureOf(result), 0);
  return [
    `${results.length} bad inputs of ${new Set(results.map(({ row }) => row.family)).size} families, sent ${sum(({ times }) => times)} times`,
    `runs burnt: ${sum(({ burntRuns }) => burntRuns)}`,
    `with a problem: ${results.filter(({ problems }) => problems.length > 0).length}`,
    `others' latency: median ${(ratios[Math.floor(ratios.length / 2)] ?? 0).toFixed(2)}, worst ${(ratios.at(-1) ?? 0).toFixed(2)} times`,
    `memory: ${sum(({ memoryKib }) => memoryKib)} KiB`,
  ].join("; ");
}

function cellsOf({ row, times, statuses, burntRuns, memoryKib, latencyRatio, problems }: RowResult): readonly string[] {
  const answered = statuses.join(" ") || "nothing";
  return [
    row.family,
    row.input,
    String(times),
    answered,
    String(burntRuns),
    String(memoryKib),
    latencyRatio.toFixed(2),
    problems.join("; "),
  ];
}
