/**
 * The fault suite, on real servers, with real coordinator processes, with the control: a third of the short ones, drawn by the seed, once in
 * `npm test`; each kind in `npm run test:all`, and for as long as you like in `npm run faults`. Two at a time, as most of a fault is waiting.
 */
import { describe, expect, inject, test } from "vitest";
import { noPython } from "../python/python.js";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { drawn, IS_WHOLE, sized } from "../size-of-run.js";
import { ALL_FAULTS } from "./all-faults.js";
import { PARTITION, SHORT_PARTITION } from "./kinds/partition.js";
import { SHORT_STALE, STALE } from "./kinds/together.js";
import { UsualLoad } from "./load.js";
import { type FaultResult, lineOf } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";

const INJECTIONS = 1;
const RUN_COUNT_MIN = sized(300, 10_000);
/** Leaves other tests their part of the machine. In the long form importers do not pause. */
const PAUSE_MS = 30;
/** These take minutes; here they have shorter bounds. */
const LONG = new Set([...PARTITION, STALE]);
const ALL = [...ALL_FAULTS.filter((fault) => !LONG.has(fault)), SHORT_PARTITION, SHORT_STALE];
const FAULTS = IS_WHOLE
  ? ALL
  : drawn(
      ALL.filter(({ isShort }) => isShort),
      3,
      inject("seed"),
    );

describe("under every fault", () => {
  const seed = inject("seed");
  const { programs: postgres } = inject("postgres");
  const results: FaultResult[] = [];
  const left: string[] = [];

  test.concurrent.for(FAULTS.map((fault, index) => [fault.name, fault, index] as const))(
    "no run is leased twice, and leasing goes on: %s",
    async ([label, fault, index], { skip }) => {
      const { binary } = inject("redis");
      const reason = binary === undefined ? ownServerUnavailable() : fault.unavailable();
      if (binary === undefined || reason !== undefined) {
        left.push(label);
        return skip(reason);
      }
      const random = seededRandom(seed + index);
      const load = new UsualLoad(PAUSE_MS, IS_WHOLE && !noPython && fault.hasPython);
      const result = await fault.run({ binary, postgres, injectionCount: INJECTIONS, random, load });
      results.push(result);
      console.log(lineOf(result));
      expect(result.problems).toEqual([]);
      expect(result.missing).toEqual([]);
    },
  );

  test("the control, a plain counter, repeats numbers under the same faults", ({ skip }) => {
    if (results.length + left.length < FAULTS.length) return skip("not all faults were run to their end");
    const sum = (of: (result: FaultResult) => number) => results.reduce((before, result) => before + of(result), 0);
    expect(sum(({ controlRepeatCount }) => controlRepeatCount)).toBeGreaterThan(0);
    expect(sum(({ runCount }) => runCount)).toBeGreaterThan(RUN_COUNT_MIN);
  });
});
