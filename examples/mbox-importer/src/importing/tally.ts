/** Adds up what the processes report, in constant memory. */
import type { Problem } from "../sources/range.js";
import type { RangeResult } from "./range-importer.js";
import { PROBLEM_COUNT_MAX } from "./summary.js";

export class Tally {
  stored = 0;
  alreadyThere = 0;
  notStored = 0;
  bytes = 0;
  problemCount = 0;
  readonly problems: Problem[] = [];

  get messages(): number {
    return this.stored + this.alreadyThere + this.notStored;
  }

  add(result: RangeResult, bytes: number): void {
    this.stored += result.stored;
    this.alreadyThere += result.alreadyThere;
    this.notStored += result.notStored;
    this.bytes += bytes;
    for (const problem of result.problems) this.addProblem(problem);
  }

  addProblem(problem: Problem): void {
    this.problemCount++;
    if (this.problems.length < PROBLEM_COUNT_MAX) this.problems.push(problem);
  }
}
