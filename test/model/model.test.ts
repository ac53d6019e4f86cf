/** The guard as a model, searched within a small bound; `npm run model` searches further and prints every trace. */
import { describe, expect, test } from "vitest";
import { FULL_DESIGN } from "./design.js";
import { search } from "./search.js";
import { runTrial } from "./trial-run.js";
import { CLAIM_CONTROL, SHORT_FULL_TRIALS, VARIANTS } from "./trials.js";

const DEPTH_OF_PROOF = 60;

describe("the full design", () => {
  test.each(SHORT_FULL_TRIALS)("hands no run out twice, and leases again: $name, $words", (trial) => {
    const { found, healed } = runTrial(trial);
    expect(found.trace).toEqual([]);
    // All worlds within the limits were seen, and doubts were among them: a search that stops early proves nothing.
    expect(found.ended).toBe("exhausted");
    expect(healed.doubts).toBeGreaterThan(0);
    expect(healed.failures).toBe(0);
  });
});

describe("a repeat is found", () => {
  test.each(VARIANTS)("$words ($name)", (trial) => {
    const { ended, trace } = search(trial);
    expect(ended).toBe("repeat");
    expect(trace.at(-1)).toContain("REPEATED");
    expect(trace.length).toBeLessThan(DEPTH_OF_PROOF);
  });

  test("only where the claim is missing: claimed first, the same bounds hold nothing", () => {
    expect(search(CLAIM_CONTROL).ended).toBe("exhausted");
  });
});

test("a design that only refuses is found out: it never leases again", () => {
  const [trial] = SHORT_FULL_TRIALS;
  if (!trial) throw new Error("there is no trial of the full design");
  const { healed } = runTrial({ ...trial, design: { ...FULL_DESIGN, leases: false } });
  expect(healed.worlds).toBeGreaterThan(0);
  expect(healed.failures).toBe(healed.worlds);
});
