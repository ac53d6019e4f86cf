/**
 * Figures that the makers of schemes published, next to ours. The sources:
 * Chibrary: doc/multiple-email-notes and service/call_number_service.rb in https://github.com/pushcx/chibrary.com · Snowflake: README.mkd in https://github.com/twitter-archive/snowflake ·
 * KSUID: README.md and ksuid.go in https://github.com/segmentio/ksuid · UUID: RFC 9562, https://datatracker.ietf.org/doc/rfc9562/
 */
import { expect, test } from "vitest";
import { chanceOfRepeat, drawsForChance } from "../src/birthday.js";
import { YEAR_S } from "../src/commands/format.js";
import { planLength, planSplit, planSplits } from "../src/commands/plan.js";
import { schemeNamed } from "./helpers.js";

const load = { messages: 1e9, years: 20, processes: 10 };

/** Chibrary's notes: "base62 characters, Math.log2(62 ** n).floor". The first two lengths, and the numbers of all, are not in them. */
test.each([
  [4, 23, 14_776_336n],
  [5, 29, 916_132_832n],
  [6, 35, 56_800_235_584n],
  [7, 41, 3_521_614_606_208n],
  [8, 47, 218_340_105_584_896n],
  [9, 53, 13_537_086_546_263_552n],
  [10, 59, 839_299_365_868_340_224n],
])("a plan gives %d characters the %d bits of Chibrary's notes, and 62^n = %d numbers", (characters, bits, numbers) => {
  expect(planLength(characters, load)).toMatchObject({ bits, numbers });
});

test("a plan counts and draws the same numbers", () => {
  const { numbers, years, repeatChance } = planLength(8, load);
  expect(years).toBeCloseTo((Number(numbers) / load.messages) * load.years, 3);
  expect(repeatChance).toBe(chanceOfRepeat(Number(numbers), load.messages));
});

test("a plan of eight characters offers the split of Chibrary", () => {
  expect(planSplits(8, load)).toContainEqual(planSplit(30, 14, load));
  expect(planSplit(30, 14, load)).toMatchObject({ version: 3, run: 30, sequence: 14 });
});

test.each([
  // The 10 bits of the machine are datacenter and worker.
  ["twitter-snowflake", [1, 41, 5, 5, 12]],
  ["ksuid", [32, 128]],
  // Section 5.7: unix_ts_ms, ver, rand_a, var, rand_b.
  ["uuidv7", [48, 4, 12, 2, 62]],
])("%s has fields of the published widths: %j", (name, widths) => {
  expect(schemeNamed(name).fields.map(({ width }) => "bits" in width && width.bits)).toEqual(widths);
});

test("a Snowflake lasts the published 69 years, with 1,024 machines of 4,096 numbers a millisecond", () => {
  const { lastsSeconds, nodes, perSecond } = schemeNamed("twitter-snowflake").facts;
  expect(Math.floor(lastsSeconds(1) / YEAR_S)).toBe(69);
  expect([nodes, perSecond]).toEqual([1_024, 1_024 * 4_096 * 1_000]);
});

test("a KSUID has the published 27 characters, around 136 years and greatest text", () => {
  const { facts, format } = schemeNamed("ksuid");
  expect([facts.characters, Math.floor(facts.lastsSeconds(1) / YEAR_S)]).toEqual([27, 136]);
  expect(format({ seconds: 2 ** 32 - 1, random: 2n ** 128n - 1n })).toBe("aWgEPTl1tmebfsQzFP4bxwgy80V");
});

/** "Birthday problem", https://en.wikipedia.org/wiki/Birthday_problem. */
test.each([
  [23, 0.5],
  [57, 0.99],
  [70, 0.999],
])("%d people are the first with the published chance of %d that two share a birthday", (people, chance) => {
  expect(drawsForChance(365, chance)).toBe(people);
});

/** "Hash collisions", https://ben-yu.com/hash-collisions/, rounded. */
test.each([
  [16, 300, 100],
  [32, 77_000, 1_000],
])("hashes of %d bits repeat by even odds after the published %d", (bits, published, unit) => {
  expect(Math.round(drawsForChance(2 ** bits, 0.5) / unit) * unit).toBe(published);
});

/**
 * "Sharding & IDs at Instagram", quoted in http://cbcg.net/blog/2011/10/01/sharding-ids-at-instagram: 41 bits of milliseconds last 41 years.
 * "NanoID Collision Time Calculator", https://sixafter.github.io/nanoid: 64^21 is 1.209e38, and 1 % comes after 1.555e18.
 */
test("two published figures are wrong: Instagram's years, and the draws of a nanoid calculator", () => {
  expect(schemeNamed("millis-41-10-13").facts.lastsSeconds(1)).toBe(2 ** 41 / 1_000);
  expect(Math.floor(2 ** 41 / 1_000 / YEAR_S)).toBe(69);
  expect(schemeNamed("nanoid").facts.bits).toBe(21 * Math.log2(64));
  // By the page's own formula, with the right space.
  expect(drawsForChance(64 ** 21, 0.01) / Math.sqrt(-2 * 64 ** 21 * Math.log(0.99))).toBeCloseTo(1, 9);
  expect(drawsForChance(64 ** 21, 0.01) / 1.555e18).toBeLessThan(0.85);
});
