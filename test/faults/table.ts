/** The table of a fault run: what was done, what was leased, what repeated here and in the control. */
import type { FaultResult } from "./run-fault.js";

const HEADINGS = [
  "fault",
  "times",
  "runs leased",
  "call numbers",
  "repeats",
  "control's numbers",
  "control's repeats",
  "leasing again after s (worst)",
  "  refused with",
];

export function tableOf(results: readonly FaultResult[]): string {
  const rows = results.map((result) => rowOf(result));
  const totals = [
    "all",
    sumOf(results, ({ injectionCount }) => injectionCount),
    sumOf(results, ({ runCount }) => runCount),
    sumOf(results, ({ callNumberCount }) => callNumberCount),
    sumOf(results, ({ problems }) => problems.length),
    sumOf(results, ({ controlCount }) => controlCount),
    sumOf(results, ({ controlRepeatCount }) => controlRepeatCount),
    worst(results.flatMap(({ healedAfterMs }) => healedAfterMs)),
    "",
  ];
  const cells = [HEADINGS, ...rows, totals].map((row) => row.map(String));
  const widths = HEADINGS.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  const lines = cells.map((row) => row.map((cell, column) => align(cell, widths[column] ?? 0, column)).join("  "));
  return [...lines, "", `refusals seen: ${refusalsOf(results)}`].join("\n");
}

/** One result for each fault, whatever number of times it was run. */
export function mergedResults(results: readonly FaultResult[]): readonly FaultResult[] {
  const byFault = new Map<FaultResult["fault"], FaultResult>();
  for (const result of results) {
    const before = byFault.get(result.fault);
    byFault.set(result.fault, before === undefined ? result : joined(before, result));
  }
  return [...byFault.values()];
}

function joined(one: FaultResult, other: FaultResult): FaultResult {
  const codes = new Map(one.codes);
  for (const [code, count] of other.codes) codes.set(code, (codes.get(code) ?? 0) + count);
  return {
    fault: one.fault,
    injectionCount: one.injectionCount + other.injectionCount,
    runCount: one.runCount + other.runCount,
    callNumberCount: one.callNumberCount + other.callNumberCount,
    problems: [...one.problems, ...other.problems],
    controlCount: one.controlCount + other.controlCount,
    controlRepeatCount: one.controlRepeatCount + other.controlRepeatCount,
    codes,
    missing: one.missing.filter((code) => other.missing.includes(code)),
    healedAfterMs: [...one.healedAfterMs, ...other.healedAfterMs],
  };
}

function rowOf({
  fault,
  injectionCount,
  runCount,
  callNumberCount,
  problems,
  controlCount,
  controlRepeatCount,
  codes,
  healedAfterMs,
}: FaultResult) {
  const name = `${String(fault.number).padStart(2)} ${fault.name}`;
  return [
    name,
    injectionCount,
    runCount,
    callNumberCount,
    problems.length,
    controlCount,
    controlRepeatCount,
    worst(healedAfterMs),
    `  ${[...codes.keys()].sort().join(", ")}`,
  ];
}

function refusalsOf(results: readonly FaultResult[]): string {
  const sums = new Map<string, number>();
  for (const { codes } of results) {
    for (const [code, count] of codes) sums.set(code, (sums.get(code) ?? 0) + count);
  }
  return [...sums]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([code, count]) => `${code} ${count}`)
    .join(", ");
}

function sumOf(results: readonly FaultResult[], count: (result: FaultResult) => number): number {
  return results.reduce((sum, result) => sum + count(result), 0);
}

function worst(healedAfterMs: readonly number[]): string {
  return (Math.max(0, ...healedAfterMs) / 1000).toFixed(2);
}

function align(cell: string, width: number, column: number): string {
  if (column === HEADINGS.length - 1) return cell;
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
