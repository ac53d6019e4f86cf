/** The long form of the fault suite: all kinds over and over, with new seeds, for some minutes. `npm run faults -- --minutes 10`; --target TEXT for those with it in their name */
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { wrappedLines } from "../figures-table.js";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { signsOfLife } from "../signs-of-life.js";
import { ALL_FAULTS } from "./all-faults.js";
import { codesMissing } from "./refusal-codes.js";
import { type FaultResult, runFault } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";
import { mergedResults, tableOf } from "./table.js";

const MINUTES = Number(env["CALLNUMBER_MINUTES"] ?? 10);
const INJECTIONS = 3;
const TARGET = env["CALLNUMBER_TARGET"] ?? "";
const FAULTS = ALL_FAULTS.filter(({ name }) => name.includes(TARGET));

test(`no run is leased twice in ${MINUTES} minutes of faults, and the control repeats`, async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const seed = inject("seed");
  const signs = signsOfLife();
  const startedAtMs = Date.now();
  const results: FaultResult[] = [];
  const left = new Map<string, string>();
  const failures: string[] = [];
  const endsAtMs = startedAtMs + MINUTES * 60_000;
  // Each kind at least once, however short the time.
  for (let index = 0; index < FAULTS.length || Date.now() < endsAtMs; index++) {
    const fault = FAULTS[index % FAULTS.length] as (typeof FAULTS)[number];
    const told = `${fault.number}: ${fault.name} (seed ${seed + index})`;
    const reason = fault.unavailable();
    if (reason !== undefined) {
      left.set(`${fault.number}: ${fault.name}`, reason);
      continue;
    }
    signs.show(() => {
      const minutes = ((Date.now() - startedAtMs) / 60_000).toFixed(1);
      return `${minutes} of ${MINUTES} minutes, ${failures.length} problems; ${fault.number}: ${fault.name}`;
    });
    try {
      const result = await runFault(fault, { binary, injectionCount: INJECTIONS, random: seededRandom(seed + index) });
      results.push(result);
      for (const problem of result.problems) failures.push(`${told}: ${problem}`);
      for (const code of result.missing) failures.push(`${told}: nobody was refused with ${code}`);
    } catch (error) {
      failures.push(`${told}: ${(error as Error).message}`);
    }
  }
  signs.end();
  console.log(tableOf(mergedResults(results)));
  for (const [name, reason] of left) console.log(wrappedLines(`not injected: ${name}: ${reason}`));
  const seen = new Set(results.flatMap(({ codes }) => [...codes.keys()]));
  const missing = TARGET === "" ? codesMissing(seen) : [];
  for (const code of missing) failures.push(`in no fault was anybody refused with ${code}`);
  const controlRepeatCount = results.reduce((sum, result) => sum + result.controlRepeatCount, 0);
  if (controlRepeatCount === 0) failures.push("INVALID: the control repeated nothing, so nothing was proved");
  expect(failures).toEqual([]);
});
