/**
 * `npm run model`: searches the full design and every variant within the full bound, and prints what was found, with each trace.
 * Options: `--variant NAME` (again for more, `full` for the full design; without it, everything), `--depth STEPS`, `--states COUNT`.
 * Ends with 1 when the full design repeats a run, does not heal, or a variant repeats nothing; with 2 when an option is wrong.
 */
import { parseArgs } from "node:util";
import { type Report, runTrial } from "./trial-run.js";
import { CLAIM_CONTROL, FULL_TRIALS, VARIANTS } from "./trials.js";

const ALL = [...FULL_TRIALS, CLAIM_CONTROL, ...VARIANTS];

const { variants, bounds } = options();
const trials = ALL.filter(({ name }) => variants.length === 0 || variants.includes(name.replace(/\/.*/, "")));

console.log(row("variant", "states", "depth", "seconds", "result"));
const reports: Report[] = [];
for (const trial of trials) {
  const report = runTrial(trial, bounds);
  reports.push(report);
  const { found, seconds, verdict } = report;
  console.log(row(trial.name, found.states, found.depth, seconds.toFixed(1), verdict));
}

for (const { trial, found, passed } of reports) {
  console.log(
    `\n${trial.name}: ${trial.expected === "repeat" ? "a repeat is found " : ""}${trial.words}${passed ? "" : " - FAILED"}`,
  );
  for (const [step, words] of found.trace.entries()) console.log(`${String(step).padStart(4)}  ${words}`);
}
if (reports.some(({ passed }) => !passed)) process.exitCode = 1;

function row(name: string, states: string | number, depth: string | number, seconds: string, result: string): string {
  return `${name.padEnd(20)}${String(states).padStart(10)}${String(depth).padStart(7)}${seconds.padStart(9)}  ${result}`;
}

function options(): { variants: string[]; bounds: { depth?: number; states?: number } } {
  try {
    const { values } = parseArgs({
      options: { variant: { type: "string", multiple: true }, depth: { type: "string" }, states: { type: "string" } },
    });
    const variants = values.variant ?? [];
    const names = [...new Set(ALL.map(({ name }) => name.replace(/\/.*/, "")))];
    const unknown = variants.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new RangeError(`there is no variant "${unknown}"; there are ${names.join(", ")}`);
    const [depth, states] = [count("depth", values.depth), count("states", values.states)];
    return {
      variants,
      bounds: { ...(depth === undefined ? {} : { depth }), ...(states === undefined ? {} : { states }) },
    };
  } catch (error) {
    console.error((error as Error).message);
    process.exit(2);
  }
}

function count(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new RangeError(`--${name} is "${given}": give a whole number above 0`);
  return Number(given);
}
