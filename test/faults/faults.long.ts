/** The long form of the fault suite: all kinds over and over, with new seeds, for some minutes: `npm run faults -- --minutes 10`. */
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { ALL_FAULTS } from "./all-faults.js";
import { codesMissing } from "./refusal-codes.js";
import { availableFaults, lineOf, runFault } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";

const MINUTES = Number(env["CALLNUMBER_MINUTES"] ?? 10);
const INJECTIONS = 3;
/** Of `--target TEXT`: only faults with the text in their name. */
const TARGET = env["CALLNUMBER_TARGET"] ?? "";

test(`no run is leased twice in ${MINUTES} minutes of faults, and the control repeats`, async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const seed = inject("seed");
  const faults = availableFaults(ALL_FAULTS.filter(({ name }) => name.includes(TARGET)));
  expect(faults).not.toEqual([]);
  const seen = new Set<string>();
  const failures: string[] = [];
  let controlRepeatCount = 0;
  const endsAtMs = Date.now() + MINUTES * 60_000;
  // Each kind at least once, however short the time.
  for (let index = 0; index < faults.length || Date.now() < endsAtMs; index++) {
    const fault = faults[index % faults.length] as (typeof faults)[number];
    const name = `${fault.name} (seed ${seed + index})`;
    try {
      const random = seededRandom(seed + index);
      const result = await runFault(fault, { binary, injectionCount: INJECTIONS, random });
      console.log(lineOf(result));
      for (const problem of result.problems) failures.push(`${name}: ${problem}`);
      for (const code of result.missing) failures.push(`${name}: no request was rejected with ${code}`);
      for (const code of result.codes.keys()) seen.add(code);
      controlRepeatCount += result.controlRepeatCount;
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message}`);
    }
  }
  const missing = TARGET === "" ? codesMissing(seen) : [];
  for (const code of missing) failures.push(`under no fault was a request rejected with ${code}`);
  if (controlRepeatCount === 0) failures.push("INVALID: the control repeated nothing, so nothing was proved");
  expect(failures).toEqual([]);
});
