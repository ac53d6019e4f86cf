/** The table of the bad inputs, and its last line. */
import { figuresTable } from "../figures-table.js";
import type { RowResult } from "./play-row.js";

const HEADINGS = ["times", "answered", "runs burnt", "memory KiB", "others' latency"];

export function tableOf(results: readonly RowResult[]): string {
  return figuresTable(
    HEADINGS,
    results.map(({ row, times, statuses, burntRuns, memoryKib, latencyRatio, problems }) => {
      const figures = [times, statuses.join(" ") || "nothing", burntRuns, memoryKib, latencyRatio.toFixed(2)];
      return { figures, words: `${row.family}: ${row.input}`, notes: problems };
    }),
  );
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
