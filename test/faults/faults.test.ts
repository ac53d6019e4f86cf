/** The short form of the fault suite: each kind at least once, on real servers, with real coordinator processes. */
import { afterAll, describe, expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { FAULTS_OF_COORDINATORS } from "./faults-of-coordinators.js";
import { FAULTS_OF_ONE_SERVER } from "./faults-of-one-server.js";
import { FAULTS_OF_REPLICAS } from "./faults-of-replicas.js";
import { type FaultResult, runFault } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";
import { tableOf } from "./table.js";

const FAULTS = [...FAULTS_OF_ONE_SERVER, ...FAULTS_OF_COORDINATORS, ...FAULTS_OF_REPLICAS];
const INJECTIONS = 2;
const seed = inject("seed");
const results: FaultResult[] = [];

describe("under every fault", () => {
  test.each(FAULTS.map((fault, index) => [`${fault.number}: ${fault.name}`, fault, index] as const))(
    "no run is leased twice, and leasing goes on: %s",
    async (_, fault, index, { skip }: { skip: (reason: string) => never } = {} as never) => {
      const unavailable = ownServerUnavailable();
      if (unavailable !== undefined) skip(unavailable);
      const { binary } = inject("redis");
      if (binary === undefined) throw new Error("no Redis to start");
      const result = await runFault(fault, { binary, injectionCount: INJECTIONS, random: seededRandom(seed + index) });
      results.push(result);
      expect(result.problems).toEqual([]);
      expect(result.missing).toEqual([]);
    },
  );

  test("the control, a plain INCR under the same faults, repeats: else nothing was proved", () => {
    if (results.length < FAULTS.length) return;
    expect(results.reduce((sum, { controlRepeatCount }) => sum + controlRepeatCount, 0)).toBeGreaterThan(0);
  });
});

afterAll(() => {
  if (results.length > 0) console.log(tableOf(results));
});
