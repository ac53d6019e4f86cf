/** A short overload of a real coordinator, by real processes: what `npm run overload` shows for ten minutes, without a word about times. */
import { expect, test } from "vitest";
import { playOverload } from "./overload.js";

test("more than can be answered is told so, what is served stands in the ledger once, and after it all is as before", async () => {
  // So few places that this machine, whatever else it does, can't help but turn some away.
  const flags = ["--leases-at-once", "1", "--holder-burst-runs", "none"];
  const { flood, loaded, after, figures, looks, runs, exitCode } = await playOverload({
    durationMs: 5_000,
    times: 5,
    measureMs: 1_000,
    flags,
  });
  expect(Object.keys(flood.shed)).toEqual(["overloaded"]);
  for (const { served, shed, sent, unanswered } of [flood, loaded]) {
    expect(served).toBeGreaterThan(0);
    expect(unanswered).toBe(0);
    expect(served + Object.values(shed).reduce((sum, count) => sum + count, 0)).toBe(sent);
  }
  expect(looks).toMatchObject({ failed: 0 });
  expect(looks.count).toBeGreaterThan(0);
  expect(after.served).toBeGreaterThan(0);
  expect(after.unanswered).toBe(0);
  expect(runs).toMatchObject({ repeated: 0, notInLedger: 0, inLedgerOnly: 0, ledger: runs.served });
  // One more for a log or a store that was opened meanwhile, far from the 512 connections of the load.
  expect(figures.after.descriptorCount).toBeLessThan(figures.before.descriptorCount + 10);
  expect(figures.during.descriptorCount).toBeGreaterThan(figures.before.descriptorCount + 100);
  expect(exitCode).toBe(0);
});
