/** Every scheme in every world: which must repeat, which must not, and by how much. */
import { describe, expect, test } from "vitest";
import { type Outcome, outcomesOf, type Play, WORLDS } from "../src/collisions/index.js";
import { SCHEMES, schemeNamed } from "../src/index.js";

const NODES = 8;
const NUMBERS = 3_200;
const PER_NODE = NUMBERS / NODES;
const LONGER_THAN_A_RUN = 16_400;
const SEEDS = [1];
/** So many of each node that some fall into the same millisecond. */
const PER_SECOND = 800;

/** Where processes count alike by the fault of the world. Nothing else that counts repeats. */
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
const DRAWN = new Set(["mysql-13-6-1", "mysql-11-9", "millis-41-10-13", "uuid", "random-base62-5"]);

function play(given: Partial<Play> = {}): readonly Outcome[] {
  return [
    ...outcomesOf({
      schemes: SCHEMES,
      worlds: WORLDS,
      nodes: NODES,
      numbers: NUMBERS,
      perSecond: PER_SECOND,
      seed: 1,
      ...given,
    }),
  ];
}

const outcomes = SEEDS.flatMap((seed) => play({ seed }));
const of = (world: string, scheme: string): readonly Outcome[] =>
  outcomes.filter((outcome) => outcome.world.name === world && outcome.scheme.name === scheme);

describe("every scheme in every world", () => {
  test("is played, and what comes of it is no surprise to the theory", () => {
    expect(outcomes).toHaveLength(SEEDS.length * WORLDS.length * SCHEMES.length);
    expect(WORLDS.map(({ name }) => name)).toEqual(Object.keys(REPEATING));
    expect(outcomes.filter(({ plausible }) => !plausible)).toEqual([]);
  });

  test("makes or refuses each number that is asked for", () => {
    for (const { world, minted, refused } of outcomes)
      expect(minted + refused.clock_went_back + refused.space_used_up).toBe(NUMBERS * world.times.asMany);
  });

  test.each(Object.entries(REPEATING))(
    "%s repeats the numbers of %j, with every seed, and of no other that counts",
    (world, repeating) => {
      const counting = outcomes.filter(({ scheme }) => !DRAWN.has(scheme.name) && scheme.name !== "objectid");
      const repeated = counting.filter((outcome) => outcome.world.name === world && outcome.repeats > 0);
      expect(repeated.map(({ scheme }) => scheme.name)).toEqual(SEEDS.flatMap(() => repeating));
    },
  );
});

describe("a call number", () => {
  test("is never made twice in a world in which no run is leased twice, whatever else is wrong", () => {
    const played = SEEDS.flatMap((seed) =>
      play({ seed, schemes: [schemeNamed("call-number")], nodes: 2, numbers: 2 * LONGER_THAN_A_RUN, perSecond: 1e5 }),
    );
    const safe = played.filter(({ world }) => world.name !== "counter-back");
    expect(safe).toHaveLength(SEEDS.length * (WORLDS.length - 1));
    for (const { minted, repeats, waited, theory } of safe)
      expect({ minted: minted >= 2 * LONGER_THAN_A_RUN, repeats, waited, theory: theory.kind }).toEqual({
        minted: true,
        repeats: 0,
        waited: 0,
        theory: "none",
      });
  });

  test("repeats behind a bare counter that is set back: what was made since the backup", () => {
    for (const { repeats, theory } of of("counter-back", "call-number"))
      expect({ repeats, kind: theory.kind }).toEqual({ repeats: NUMBERS / 4, kind: "overlap" });
  });
});

describe("what counts alike", () => {
  test("repeats as many as the world says, counted from what it is", () => {
    for (const { repeats } of of("counter-back", "tickets")) expect(repeats).toBe(NUMBERS / 4);
    for (const { repeats } of of("disk-lost", "chibrary-4-16-20")) expect(repeats).toBe(PER_NODE / 2);
    for (const { repeats } of of("cloned", "chibrary-4-16-20")) expect(repeats).toBe(PER_NODE);
  });

  test("repeats more where a unit of the clock is longer", () => {
    for (const seconds of of("clock-back-restart", "chibrary-3-32-8-4"))
      for (const millis of of("clock-back-restart", "twitter-snowflake"))
        expect(seconds.repeats).toBeGreaterThan(3 * millis.repeats);
  });

  test("is twice as often the same millisecond where twice as much is asked for", () => {
    const [slow] = play({
      schemes: [schemeNamed("snowflake-2015")],
      worlds: WORLDS.filter(({ name }) => name === "one-hash"),
      numbers: 20_000,
      perSecond: 200,
    });
    const [fast] = play({
      schemes: [schemeNamed("snowflake-2015")],
      worlds: WORLDS.filter(({ name }) => name === "one-hash"),
      numbers: 20_000,
      perSecond: 400,
    });
    const ratio = (fast?.repeats ?? 0) / (slow?.repeats ?? 0);
    expect(ratio).toBeGreaterThan(1.3);
    expect(ratio).toBeLessThan(2.8);
  });
});

describe("a clock that is set back while the process runs", () => {
  test.each(["chibrary-3-32-8-4", "snowflake-2015", "twitter-snowflake"])("makes %s refuse for as long", (scheme) => {
    for (const { refused, repeats } of of("clock-back", scheme)) {
      expect(repeats).toBe(0);
      // A quarter of the time of one node, less up to one unit of the clock; requests come at random moments.
      const most = PER_NODE / 4;
      const least = scheme === "chibrary-3-32-8-4" ? 0 : most;
      expect(refused.clock_went_back).toBeGreaterThan(least - 5 * Math.sqrt(least));
      expect(refused.clock_went_back).toBeLessThan(most + 5 * Math.sqrt(most));
    }
  });

  test("stops no other scheme, and refuses nothing in any other world", () => {
    const refusing = outcomes.filter(({ refused }) => refused.clock_went_back > 0);
    expect(new Set(refusing.map(({ world, scheme }) => `${world.name} ${scheme.name}`)).size).toBe(3);
  });
});

describe("a scheme that has too few numbers in a second", () => {
  test("waits, once after every 256 numbers of a node", () => {
    for (const { world, waited, repeats } of of("heavy-rate", "chibrary-3-32-8-4")) {
      expect(repeats).toBe(0);
      const perNode = PER_NODE * world.times.asMany;
      expect(waited).toBe(NODES * (Math.ceil(perNode / 256) - 1));
    }
  });

  test("and twins of it repeat what both came to, also when they wait", () => {
    const [outcome] = play({
      schemes: [schemeNamed("chibrary-3-32-8-4")],
      worlds: WORLDS.filter(({ name }) => name === "one-number"),
      numbers: 8_000,
      perSecond: 1e6,
    });
    expect(outcome).toMatchObject({ repeats: 8_000 / NODES, plausible: true });
    expect(outcome?.waited).toBeGreaterThan(0);
  });
});

describe("the same seed", () => {
  test("gives the same, another one another", () => {
    const told = (seed: number) => JSON.stringify(play({ seed, numbers: 200 }));
    expect(told(5)).toEqual(told(5));
    expect(told(5)).not.toEqual(told(6));
  });

  test("gives the same whichever others are played", () => {
    const alone = play({
      schemes: [schemeNamed("twitter-snowflake")],
      worlds: WORLDS.filter(({ name }) => name === "one-number"),
    });
    expect(alone).toEqual([of("one-number", "twitter-snowflake")[0]]);
  });
});

describe("a play that can't be", () => {
  test.each([
    { nodes: 1 },
    { nodes: 1_001 },
    { nodes: 2.5 },
    { numbers: 0 },
    { numbers: Number.NaN },
    { perSecond: 0 },
    { perSecond: -1 },
    { perSecond: Number.NaN },
    { perSecond: Number.POSITIVE_INFINITY },
    { perSecond: 1e-5 },
  ])("is refused before anything is played: %j", (given) => {
    const asked = { schemes: SCHEMES, worlds: WORLDS, nodes: NODES, numbers: NUMBERS, perSecond: PER_SECOND, seed: 1 };
    expect(() => outcomesOf({ ...asked, ...given })).toThrow(RangeError);
  });

  test("but at any other pace it can, however few or many there are", () => {
    for (const perSecond of [1e-6, 1e300])
      for (const numbers of [1, 30])
        expect(play({ numbers, perSecond }).filter(({ plausible }) => !plausible)).toEqual([]);
  });

  test.each([2, 1_000])("%i nodes can be", (nodes) => {
    expect(play({ nodes, numbers: 1_000 }).filter(({ plausible }) => !plausible)).toEqual([]);
  });
});
