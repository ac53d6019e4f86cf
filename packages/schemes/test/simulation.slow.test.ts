/** The simulation: which scheme repeats in which scenario and by how much; and both the count and the theory, checked in other ways. */
import { describe, expect, test } from "vitest";
import { defineScheme } from "../src/define-scheme.js";
import { decimal } from "../src/encodings.js";
import { type Field, SCHEMES, type Scheme } from "../src/index.js";
import { type Outcome, SCENARIOS, type Scenario, type Simulation, simulate } from "../src/simulation/simulate.js";
import { schemeNamed } from "./helpers.js";

const NODES = 8;
const NUMBERS = 3_200;
const PER_NODE = NUMBERS / NODES;
const LONGER_THAN_A_RUN = 16_400;
/** So many of each node that some fall into the same millisecond. */
const PER_SECOND = 800;

/** The schemes whose counted numbers repeat in each scenario. No other that counts repeats. */
const REPEATING: Readonly<Record<string, readonly string[]>> = {
  "good-clocks": [],
  "clocks-apart": [],
  "clock-back": [],
  "clock-back-restart": ["chibrary-3-32-8-4", "snowflake-2015", "twitter-snowflake"],
  "quick-restart": ["chibrary-3-32-8-4"],
  "one-hash": ["snowflake-2015"],
  "one-number": ["chibrary-3-32-8-4", "twitter-snowflake"],
  cloned: ["chibrary-4-16-20", "chibrary-3-32-8-4", "snowflake-2015", "twitter-snowflake"],
  "disk-lost": ["chibrary-4-16-20"],
  "counter-back": ["call-number", "tickets"],
  "heavy-rate": [],
};
/** In these chance alone decides. */
const DRAWN = new Set(SCHEMES.filter(({ facts }) => facts.failures.includes("birthday")).map(({ name }) => name)).add(
  "objectid",
);

const named = (...names: readonly string[]) => SCENARIOS.filter(({ name }) => names.includes(name));

const usual = {
  schemes: SCHEMES,
  scenarios: SCENARIOS,
  nodes: NODES,
  numbers: NUMBERS,
  perSecond: PER_SECOND,
  seed: 1,
};

function run(given: Partial<Simulation> = {}): readonly (Outcome & { readonly scenario: Scenario })[] {
  return [...simulate({ ...usual, ...given })].flatMap(({ scenario, outcomes }) => {
    return outcomes.map((outcome) => Object.assign({ scenario }, outcome));
  });
}

const outcomes = run();
function outcomeOf(scenario: string, scheme: string): (typeof outcomes)[number] {
  const found = outcomes.find((outcome) => outcome.scenario.name === scenario && outcome.scheme.name === scheme);
  return found ?? expect.fail(`there is no outcome of ${scheme} in ${scenario}`);
}

describe("every scheme in every scenario", () => {
  test("every scheme in every scenario generates or rejects each requested number, and its repeats are plausible", () => {
    expect(outcomes).toHaveLength(SCENARIOS.length * SCHEMES.length);
    expect(SCENARIOS.map(({ name }) => name)).toEqual(Object.keys(REPEATING));
    expect(outcomes.filter(({ plausible }) => !plausible)).toEqual([]);
    for (const { scenario, generated, rejected } of outcomes) {
      expect(generated + rejected.clock_moved_backward + rejected.number_space_exhausted).toBe(
        NUMBERS * scenario.times.asMany,
      );
    }
  });

  test.each(Object.entries(REPEATING))("%s repeats the numbers of %j, and of no other that counts", (name, schemes) => {
    const repeated = outcomes.filter(({ scenario, scheme, repeats }) => {
      return scenario.name === name && repeats > 0 && !DRAWN.has(scheme.name);
    });
    expect(repeated.map(({ scheme }) => scheme.name)).toEqual(schemes);
  });

  test("a call number never repeats where no run is leased twice, and never waits", () => {
    const safe = SCENARIOS.filter(({ name }) => name !== "counter-back");
    const schemes = [schemeNamed("call-number")];
    for (const outcome of run({ schemes, scenarios: safe, nodes: 2, numbers: 2 * LONGER_THAN_A_RUN, perSecond: 1e5 })) {
      expect(outcome).toMatchObject({ repeats: 0, waited: 0, theory: { kind: "none" } });
      expect(outcome.generated).toBeGreaterThanOrEqual(2 * LONGER_THAN_A_RUN);
    }
  });

  test("schemes that count alike repeat as many as the scenario causes", () => {
    for (const [scenario, scheme, repeats] of [
      ["counter-back", "call-number", NUMBERS / 4],
      ["counter-back", "tickets", NUMBERS / 4],
      ["disk-lost", "chibrary-4-16-20", PER_NODE / 2],
      ["cloned", "chibrary-4-16-20", PER_NODE],
    ] as const) {
      expect(outcomeOf(scenario, scheme)).toMatchObject({ repeats, theory: { kind: "overlap" } });
    }
    // A unit of a second holds more than one of a millisecond.
    const ofSeconds = outcomeOf("clock-back-restart", "chibrary-3-32-8-4").repeats;
    expect(ofSeconds).toBeGreaterThan(3 * outcomeOf("clock-back-restart", "twitter-snowflake").repeats);
  });

  test("a clock that is set back while the process runs makes three schemes fail for as long, and no other", () => {
    const refusing = outcomes.filter(({ rejected }) => rejected.clock_moved_backward > 0);
    expect(refusing.map(({ scenario, scheme }) => `${scenario.name} ${scheme.name}`)).toEqual(
      ["chibrary-3-32-8-4", "snowflake-2015", "twitter-snowflake"].map((name) => `clock-back ${name}`),
    );
    for (const { scheme, rejected } of refusing) {
      // A quarter of the time of one node, less up to one unit of the clock; requests come at random moments.
      const most = PER_NODE / 4;
      const least = scheme.name === "chibrary-3-32-8-4" ? 0 : most;
      expect(rejected.clock_moved_backward).toBeGreaterThan(least - 5 * Math.sqrt(least));
      expect(rejected.clock_moved_backward).toBeLessThan(most + 5 * Math.sqrt(most));
    }
  });

  test("a scheme with 256 numbers in a second waits after each 256 of a node, and its twins still repeat", () => {
    const { scenario, waited } = outcomeOf("heavy-rate", "chibrary-3-32-8-4");
    expect(waited).toBe(NODES * (Math.ceil((PER_NODE * scenario.times.asMany) / 256) - 1));
    const schemes = [schemeNamed("chibrary-3-32-8-4")];
    const [twins] = run({ schemes, scenarios: named("one-number"), numbers: 8_000, perSecond: 1e6 });
    expect(twins).toMatchObject({ repeats: 8_000 / NODES, plausible: true });
    expect(twins?.waited).toBeGreaterThan(0);
  });

  test("the same seed gives the same outcomes, whichever others are simulated", () => {
    const text = (seed: number) => JSON.stringify(run({ seed, numbers: 200 }));
    expect(text(5)).toEqual(text(5));
    expect(text(5)).not.toEqual(text(6));
    const alone = run({ schemes: [schemeNamed("twitter-snowflake")], scenarios: named("one-number") });
    expect(alone).toEqual([outcomeOf("one-number", "twitter-snowflake")]);
  });

  test("any number of nodes, of numbers and any rate are plausible", () => {
    for (const given of [
      { numbers: 1, perSecond: 1e-6 },
      { numbers: 30, perSecond: 1e300 },
      { nodes: 2 },
      { nodes: 1_000 },
    ]) {
      expect(run({ numbers: 1_000, ...given }).filter(({ plausible }) => !plausible)).toEqual([]);
    }
  });
});

const seconds: Field = { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } };
const pid: Field = { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } };

function schemeOf(...fields: readonly Field[]): Scheme {
  return defineScheme({ name: "tiny", title: "Tiny", fields, encodings: [decimal("decimal", 20)] });
}

/** Twenty values a second and node. */
const narrow = schemeOf(seconds, pid, {
  name: "random",
  width: { bits: 5 },
  source: { kind: "random", from: 3, to: 22 },
});
/** An ObjectId whose counter wraps around after 256. */
const shortRing = schemeOf(seconds, pid, {
  name: "counter",
  width: { bits: 8 },
  source: { kind: "sequence", within: "process", first: "random" },
});

/** Changes the texts that a scheme generates. */
function changed(scheme: Scheme, textOf: (text: string) => string): Scheme {
  return {
    ...scheme,
    generate: (context) => {
      const step = scheme.generate(context);
      return step.outcome === "generated" ? { ...step, text: textOf(step.text) } : step;
    },
  };
}

test("the count of repeats is that of a plain comparison of all numbers with those before", () => {
  let repeatCount = 0;
  for (const original of [...SCHEMES, narrow, shortRing]) {
    for (const scenario of SCENARIOS) {
      const texts: string[] = [];
      const scheme = changed(original, (text) => {
        texts.push(text);
        return text;
      });
      const [outcome] = run({ schemes: [scheme], scenarios: [scenario], nodes: 4, numbers: 300, perSecond: 20 });
      const repeats = texts.filter((text, index) => texts.indexOf(text) < index).length;
      expect({ generated: outcome?.generated, repeats: outcome?.repeats }).toEqual({
        generated: texts.length,
        repeats,
      });
      repeatCount += repeats;
    }
  }
  expect(repeatCount).toBeGreaterThan(1_000);
});

test("the count is implausible for a scheme that repeats one in a thousand, repeats none, or draws unevenly", () => {
  const snowflake = schemeNamed("twitter-snowflake");
  let count = 0;
  let before = "";
  const stutters = changed(snowflake, (text) => {
    const given = ++count % 1_000 === 0 ? before : text;
    before = text;
    return given;
  });
  const usual = { nodes: 4, numbers: 1_000, perSecond: 200 };
  expect(run({ ...usual, schemes: [stutters], scenarios: named("good-clocks") })).toMatchObject([
    { repeats: 1, plausible: false },
  ]);
  const unique = changed(snowflake, () => String(count++));
  expect(run({ ...usual, schemes: [unique], scenarios: named("one-number") })).toMatchObject([
    { repeats: 0, plausible: false },
  ]);
  const lopsided: Scheme = {
    ...narrow,
    generate: (context) =>
      narrow.generate({ ...context, random: { below: (bound) => Math.floor(context.random.below(bound) / 2) } }),
  };
  const drawing = { ...usual, numbers: 4_000, scenarios: named("good-clocks") };
  expect(run({ ...drawing, schemes: [narrow] })).toMatchObject([{ plausible: true }]);
  expect(run({ ...drawing, schemes: [lopsided] })).toMatchObject([{ plausible: false }]);
});
