/**
 * Prints the closing line of a run from vitest's JSON report. A run that left no report, ran no test, or ended with a fault outside its
 * tests (the second argument is 1), has failed.
 */
import { readFileSync } from "node:fs";

const {
  numPassedTests = 0,
  numFailedTests = 0,
  numPendingTests = 0,
  numFailedTestSuites = 0,
} = reportAt(process.argv[2]);
// A file that can't be loaded, or whose process was ended, has no test that could fail.
const hasFailed = numFailedTestSuites > 0 || numPassedTests === 0 || process.argv[3] === "1";
const failed = Math.max(numFailedTests, hasFailed ? 1 : 0);
const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : "";
console.log(`${numPassedTests} passed, ${failed} failed${skipped}`);
if (failed > 0) process.exit(1);

function reportAt(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return {};
  }
}
