/** Three coordinators lease from one store in tight loops: a change that rests on what the others change would starve. */
import { expect, inject, test } from "vitest";
import { Crowd } from "./crowd.js";
import { recordToWrite } from "./product.js";
import type { Variant } from "./variant.js";

const ROUND_COUNT = 3_000;
/** Changes for a lease: a lease rests on nothing that another one changes. */
const TRIES_MAX = 1.05;

test.for([1, 3])("three coordinators in tight loops on %i nodes each get their share of leases", async (nodeCount) => {
  const crowd = await Crowd.gather({ nodeCount, hostCount: 3, order: inject("seed") });
  await crowd.lease(ROUND_COUNT);
  const { shares, violation } = crowd;
  console.log(
    `${nodeCount} nodes: leases ${shares.map(({ leaseCount }) => leaseCount).join(", ")}; ` +
      `changes a lease ${shares.map(({ tries }) => tries.toFixed(3)).join(", ")}`,
  );
  expect(violation).toBeUndefined();
  const total = shares.reduce((sum, { leaseCount }) => sum + leaseCount, 0);
  for (const { leaseCount, tries } of shares) {
    expect(leaseCount).toBeGreaterThan(total / 6);
    expect(tries).toBeLessThan(TRIES_MAX);
  }
});

test("three coordinators try again where a lease rests on the mark", async () => {
  const variant: Variant = {
    name: "exact-lease",
    fault: "a lease is written only where no other has leased since it was decided",
    apply: (now, expected, change) => {
      const isSame = now.keys.fields["c"] === expected.found.keys.fields["c"];
      return expected.rising === undefined || isSame ? recordToWrite(now, expected, change) : undefined;
    },
  };
  const crowd = await Crowd.gather({ nodeCount: 1, hostCount: 3, order: inject("seed"), variant });
  await crowd.lease(ROUND_COUNT);
  const { shares } = crowd;
  console.log(`exact: changes a lease ${shares.map(({ tries }) => tries.toFixed(3)).join(", ")}`);
  for (const { tries } of shares) expect(tries).toBeGreaterThan(TRIES_MAX);
});
