/** The long form of the fault suite: all kinds over and over, with new seeds, for some minutes: `npm run faults -- --minutes 10`. */
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { noPython } from "../python/python.js";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { ALL_FAULTS } from "./all-faults.js";
import { UsualLoad } from "./load.js";
import { codesMissing } from "./refusal-codes.js";
import { availableFaults, type FaultResult, lineOf } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";

const MINUTES = Number(env["CALLNUMBER_MINUTES"] ?? 10);
const INJECTIONS = 3;
/** Of `--target TEXT`: only faults with the text in their name. */
const TARGET = env["CALLNUMBER_TARGET"] ?? "";

test(`no run is leased twice in ${MINUTES} minutes of faults, and the control repeats`, async ({ skip }) => {
  const { binary } = inject("redis");
  const { programs: postgres } = inject("postgres");
  if (binary === undefined) return skip(ownServerUnavailable());
  const seed = inject("seed");
  const faults = availableFaults(ALL_FAULTS.filter(({ name }) => name.includes(TARGET)));
  expect(faults).not.toEqual([]);
  const results: FaultResult[] = [];
  const failures: string[] = [];
  const endsAtMs = Date.now() + MINUTES * 60_000;
  // Each kind at least once, however short the time.
  for (let index = 0; index < faults.length || Date.now() < endsAtMs; index++) {
    const fault = faults[index % faults.length] as (typeof faults)[number];
    const name = `${fault.name} (seed ${seed + index})`;
    try {
      const load = new UsualLoad(0, !noPython && fault.hasPython);
      const random = seededRandom(seed + index);
      const result = await fault.run({ binary, postgres, injectionCount: INJECTIONS, random, load });
      console.log(lineOf(result));
      for (const problem of result.problems) failures.push(`${name}: ${problem}`);
      for (const code of result.missing) failures.push(`${name}: no request was rejected with ${code}`);
      results.push(result);
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message}`);
    }
  }
  const seen = new Set(results.flatMap(({ codes }) => [...codes.keys()]));
  const missing = TARGET === "" ? codesMissing(seen) : [];
  for (const code of missing) failures.push(`under no fault was a request rejected with ${code}`);
  const sum = (of: (result: FaultResult) => number) => results.reduce((before, result) => before + of(result), 0);
  const repeatCount = sum(({ controlRepeatCount }) => controlRepeatCount);
  if (repeatCount === 0) failures.push("INVALID: the control repeated nothing, so nothing was proved");
  console.log(
    [
      `totals: ${new Set(results.map(({ fault }) => fault)).size} kinds`,
      `${sum(({ injectionCount }) => injectionCount)} injections`,
      `${sum(({ runCount }) => runCount)} runs leased`,
      `${failures.length} problems`,
      `${repeatCount} repeats of the control`,
    ].join(", "),
  );
  expect(failures).toEqual([]);
});
