/**
 * The guard as a model, searched within a small bound: three data nodes, two coordinators, and every order of their steps and of the
 * adversary's. `npm run model` searches further and prints every trace.
 * Guarantees: G1, G2, G3, G4, G10, G12 (docs/guarantees.md).
 */
import { describe, expect, test } from "vitest";
import { FULL_DESIGN } from "./design.js";
import { search } from "./search.js";
import { runTrial } from "./trial-run.js";
import { BEYOND_THE_PROMISES, COMBINED_VARIANTS, CONTROLS, SHORT_FULL_TRIALS, type Trial, VARIANTS } from "./trials.js";

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
  test.each([...VARIANTS, ...COMBINED_VARIANTS])("$words ($name)", mustRepeat);
});

describe("what is not promised is not there: a repeat is found", () => {
  test.each(BEYOND_THE_PROMISES)("$words ($name)", mustRepeat);
});

describe("the claim is what is missing: no repeat is found", () => {
  test.each(CONTROLS)("$words ($name)", (trial) => {
    expect(search(trial).ended).toBe("exhausted");
  });
});

test("a variant differs from the full design in one thing", () => {
  for (const { name, design } of VARIANTS) {
    const differing = (Object.keys(FULL_DESIGN) as (keyof typeof FULL_DESIGN)[]).filter(
      (key) => design[key] !== FULL_DESIGN[key],
    );
    expect(differing, name).toHaveLength(1);
  }
});

test("a search that reaches a bound does not say that it found nothing", () => {
  const trial = first(SHORT_FULL_TRIALS);
  for (const bounds of [{ states: 100 }, { depth: 3 }]) {
    const { passed, verdict } = runTrial(trial, bounds);
    expect(passed).toBe(false);
    expect(verdict).toMatch(/^BOUND REACHED/);
  }
});

test("a design that only refuses is found out: it never leases again", () => {
  const { healed, passed } = runTrial({ ...first(SHORT_FULL_TRIALS), design: { ...FULL_DESIGN, leases: false } });
  expect(healed.worlds).toBeGreaterThan(0);
  expect(healed.failures).toBe(healed.worlds);
  expect(passed).toBe(false);
});

function mustRepeat(trial: Trial): void {
  const { ended, trace } = search(trial);
  expect(ended).toBe("repeat");
  expect(trace.at(-1)).toContain("REPEATED");
}

function first([trial]: readonly Trial[]): Trial {
  if (!trial) throw new Error("there is no trial of the full design");
  return trial;
}
