/**
 * `npm run model`: searches the full design and every variant within the full bound, and prints what was found, with each trace.
 * Options: `--variant NAME` (again for more, `full` for the full design; without it, everything), `--depth STEPS`, `--states COUNT`.
 * Ends with 1 when a search ends otherwise than it must, or reaches a bound that was given; with 2 when an option is wrong.
 */
import { parseArgs } from "node:util";
import type { Bounds } from "./search.js";
import { type Report, runTrial } from "./trial-run.js";
import {
  BEYOND_THE_PROMISES,
  COMBINED_VARIANTS,
  CONTROLS,
  FULL_TRIALS,
  SECOND_LOCK,
  type Trial,
  VARIANTS,
} from "./trials.js";

const SECTIONS: readonly (readonly [string, readonly Trial[]])[] = [
  ["The full design: no repeat may be found, and from every world looked at a lease must come again.", FULL_TRIALS],
  ["One thing missing: a repeat must be found.", VARIANTS],
  ["More than one thing missing: a repeat must be found.", COMBINED_VARIANTS],
  ["The full design beyond what docs/guarantees.md promises: a repeat must be found.", BEYOND_THE_PROMISES],
  ["The variants without the claim, but claimed first: no repeat may be found.", CONTROLS],
  ["Without the claim, within the promises: the epoch alone holds, and no repeat is found.", SECOND_LOCK],
];

const { variants, bounds } = options();
const reports: Report[] = [];
for (const [heading, all] of SECTIONS) {
  const trials = all.filter((trial) => variants.length === 0 || variants.includes(optionOf(trial)));
  if (trials.length === 0) continue;
  console.log(`\n${heading}`);
  console.log(row("search", "states", "depth", "seconds", "result"));
  for (const trial of trials) {
    const report = runTrial(trial, bounds);
    reports.push(report);
    const { found, seconds, verdict, passed } = report;
    const result = `${verdict}${passed ? "" : " - NOT AS IT MUST BE"}`;
    console.log(row(trial.name, found.states, found.depth, seconds.toFixed(1), result));
  }
}
printTraces();
printDoubts();
if (reports.some(({ passed }) => !passed)) process.exitCode = 1;

function printTraces(): void {
  for (const { trial, found } of reports) {
    if (found.trace.length === 0) continue;
    console.log(`\n${trial.name}: a repeat is found ${trial.words}`);
    for (const [step, words] of found.trace.entries()) console.log(`${String(step).padStart(4)}  ${words}`);
  }
}

/** Worlds are told apart by fingerprints of 64 bits: two fall together by chance, and then one of them is not searched. */
function printDoubts(): void {
  const pairs = reports.reduce((sum, { found: { states } }) => sum + states ** 2 / 2, 0);
  const chance = pairs / 2 ** 64;
  const memory = Math.round(process.resourceUsage().maxRSS / 1024);
  const printed = chance === 0 ? "0" : chance.toExponential(0);
  console.log(
    `\nThe chance that any world was missed because another has its fingerprint: ${printed}. Memory: ${memory} MiB at most.`,
  );
}

function row(name: string, states: string | number, depth: string | number, seconds: string, result: string): string {
  return `${name.padEnd(30)}${String(states).padStart(10)}${String(depth).padStart(7)}${seconds.padStart(9)}  ${result}`;
}

function optionOf({ name }: Trial): string {
  return name.replace(/\/.*/, "");
}

function options(): { variants: string[]; bounds: Bounds } {
  try {
    const { values } = parseArgs({
      options: { variant: { type: "string", multiple: true }, depth: { type: "string" }, states: { type: "string" } },
    });
    const given = values.variant ?? [];
    const names = [...new Set(SECTIONS.flatMap(([, trials]) => trials.map(optionOf)))];
    const unknown = given.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new RangeError(`there is no variant "${unknown}"; there are ${names.join(", ")}`);
    const [depth, states] = [count("depth", values.depth), count("states", values.states)];
    return {
      variants: given,
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
