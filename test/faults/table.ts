/** The table of a fault run: what was done, what was leased, what repeated here and in the control. */
import { type FiguresRow, figuresTable, wrappedLines } from "../figures-table.js";
import type { FaultResult } from "./run-fault.js";

const HEADINGS = [
  "times",
  "runs leased",
  "call numbers",
  "repeats",
  "control's numbers",
  "control's repeats",
  "seconds without lease",
];

export function tableOf(results: readonly FaultResult[]): string {
  const sum = (countOf: (result: FaultResult) => number) =>
    results.reduce((total, result) => total + countOf(result), 0);
  const totals = [
    sum(({ injectionCount }) => injectionCount),
    sum(({ runCount }) => runCount),
    sum(({ callNumberCount }) => callNumberCount),
    sum(({ problems }) => problems.length),
    sum(({ controlCount }) => controlCount),
    sum(({ controlRepeatCount }) => controlRepeatCount),
    worst(results.flatMap(({ healedAfterMs }) => healedAfterMs)),
  ];
  const table = figuresTable(HEADINGS, [...results.map((result) => rowOf(result)), { figures: totals, words: "all" }]);
  return `${table}\n\n${wrappedLines(`refusals seen: ${refusalsOf(results)}`)}`;
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

function rowOf(result: FaultResult): FiguresRow {
  const { fault, injectionCount, runCount, callNumberCount, problems, controlCount, controlRepeatCount } = result;
  const { codes, healedAfterMs } = result;
  return {
    figures: [
      injectionCount,
      runCount,
      callNumberCount,
      problems.length,
      controlCount,
      controlRepeatCount,
      worst(healedAfterMs),
    ],
    words: `${fault.number} ${fault.name}`,
    notes: codes.size === 0 ? [] : [`refused with ${[...codes.keys()].sort().join(", ")}`],
  };
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

function worst(healedAfterMs: readonly number[]): string {
  return (Math.max(0, ...healedAfterMs) / 1000).toFixed(2);
}
