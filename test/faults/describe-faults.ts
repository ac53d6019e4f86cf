/**
 * The fault suite for some faults, on real servers, with real coordinator processes, beside the control: the short ones once in `npm test`,
 * each kind twice in `npm run test:all`. In several test files, so that they run side by side.
 */
import { afterAll, describe, expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { IS_WHOLE, sized } from "../size-of-run.js";
import type { Fault } from "./fault.js";
import { UsualLoad } from "./load.js";
import { type FaultResult, runFault } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";
import { tableOf } from "./table.js";

const INJECTIONS = sized(1, 2);
const RUN_COUNT_MIN = sized(1_000, 20_000);
/** Always somebody asks, and other tests have their part of the machine. In the long form nobody pauses. */
const PAUSE_MS = 12;

export function describeFaults(name: string, ...groups: readonly (readonly Fault[])[]): void {
  const faults = groups.flat().filter(({ isShort }) => isShort || IS_WHOLE);
  const seed = inject("seed");
  const results: FaultResult[] = [];
  const left: string[] = [];

  describe(`under every fault of ${name}`, () => {
    test.for(faults.map((fault, index) => [`${fault.number}: ${fault.name}`, fault, index] as const))(
      "no run is leased twice, and leasing goes on: %s",
      async ([told, fault, index], { skip }) => {
        const { binary } = inject("redis");
        const reason = binary === undefined ? ownServerUnavailable() : fault.unavailable();
        if (binary === undefined || reason !== undefined) {
          left.push(told);
          return skip(reason);
        }
        const random = seededRandom(seed + index);
        const load = new UsualLoad(PAUSE_MS);
        const result = await runFault(fault, { binary, injectionCount: INJECTIONS, random, load });
        results.push(result);
        expect(result.problems).toEqual([]);
        expect(result.missing).toEqual([]);
      },
    );

    test("the control, a plain counter under the same faults, repeats: else nothing was proved", ({ skip }) => {
      if (results.length + left.length < faults.length) return skip("not all faults were run to their end");
      const sum = (of: (result: FaultResult) => number) => results.reduce((before, result) => before + of(result), 0);
      expect(sum(({ controlRepeatCount }) => controlRepeatCount)).toBeGreaterThan(0);
      expect(sum(({ runCount }) => runCount)).toBeGreaterThan(RUN_COUNT_MIN);
    });
  });

  afterAll(() => {
    if (results.length > 0) console.log(tableOf(results));
  });
}
