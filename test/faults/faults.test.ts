/** The short form of the fault suite: each kind at least once, on real servers, with real coordinator processes. */
import { afterAll, describe, expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { ALL_FAULTS } from "./all-faults.js";
import { type FaultResult, runFault } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";
import { tableOf } from "./table.js";

const INJECTIONS = 2;
const seed = inject("seed");
const results: FaultResult[] = [];

describe("under every fault", () => {
  test.for(ALL_FAULTS.map((fault, index) => [`${fault.number}: ${fault.name}`, fault, index] as const))(
    "no run is leased twice, and leasing goes on: %s",
    async ([, fault, index], { skip }) => {
      const { binary } = inject("redis");
      if (binary === undefined) return skip(ownServerUnavailable());
      const result = await runFault(fault, { binary, injectionCount: INJECTIONS, random: seededRandom(seed + index) });
      results.push(result);
      expect(result.problems).toEqual([]);
      expect(result.missing).toEqual([]);
    },
  );

  test("the control, a plain INCR under the same faults, repeats: else nothing was proved", ({ skip }) => {
    if (results.length < ALL_FAULTS.length) return skip("not all faults were run to their end");
    expect(results.reduce((sum, { controlRepeatCount }) => sum + controlRepeatCount, 0)).toBeGreaterThan(0);
    expect(results.reduce((sum, { injectionCount }) => sum + injectionCount, 0)).toBeGreaterThanOrEqual(80);
    expect(results.reduce((sum, { runCount }) => sum + runCount, 0)).toBeGreaterThan(100_000);
  });
});

afterAll(() => {
  if (results.length > 0) console.log(tableOf(results));
});
