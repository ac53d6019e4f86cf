import { expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { SHORT_PARTITION } from "./kinds/partition.js";
import { lineOf, runFault } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";

test("while the master's host is cut off, the other side leases on by itself, and no run is leased twice", async ({
  skip,
}) => {
  const { binary } = inject("redis");
  const reason = binary === undefined ? ownServerUnavailable() : SHORT_PARTITION.unavailable();
  if (binary === undefined || reason !== undefined) return skip(reason);
  const random = seededRandom(inject("seed"));
  const result = await runFault(SHORT_PARTITION, { binary, injectionCount: 1, random });
  console.log(lineOf(result));
  expect(result.problems).toEqual([]);
  expect(result.missing).toEqual([]);
  expect(result.controlRepeatCount, "a plain counter on both sides repeats: else nothing was proved").toBeGreaterThan(
    0,
  );
});
