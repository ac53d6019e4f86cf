/** What a machine brings to minting: every value as likely as the next, and nothing guessed that somebody must say. */
import { describe, expect, test } from "vitest";
import { machineContext, needsState } from "../src/commands/machine-context.js";
import { type Field, SCHEMES, type Scheme } from "../src/index.js";

const scheme = (name: string): Scheme => SCHEMES.find((each) => each.name === name) as Scheme;
const DRAWN = 20_000;

describe("the machine's randomness", () => {
  const { random } = machineContext(scheme("uuid"), {}, undefined);

  test.each([1, 2, 3, 62, 2 ** 32, 2 ** 47, 2 ** 48 - 1, 2 ** 48, 2 ** 48 + 1, 3 * 2 ** 51, 2 ** 53 - 1])(
    "below %d is within, and in the middle on average",
    (bound) => {
      const drawn = Array.from({ length: DRAWN }, () => random.below(bound));
      expect(drawn.every((value) => Number.isSafeInteger(value) && value >= 0 && value < bound)).toBe(true);
      const mean = drawn.reduce((sum, value) => sum + value / bound, 0) / DRAWN;
      // Six standard deviations of the mean: once in 500 million runs it is beyond by chance.
      const deviation = Math.sqrt((1 - 1 / bound ** 2) / 12 / DRAWN);
      expect(Math.abs(mean - (1 - 1 / bound) / 2)).toBeLessThanOrEqual(6 * deviation);
    },
  );
});

describe("what a machine can't know", () => {
  test("is asked for, for each scheme that has a place for it", () => {
    const asksFor = (source: Field["source"]) =>
      source.kind === "node" && (source.from === "given" || source.from === "server");
    for (const each of SCHEMES) {
      const context = () => machineContext(each, {}, undefined);
      if (each.fields.some(({ source }) => asksFor(source))) expect(context).toThrow(/must be told which/);
    }
  });

  test("is kept by a state file where the scheme counts: nothing counts from anywhere else", () => {
    const counting = SCHEMES.filter(needsState).map(({ name }) => name);
    expect(counting).toEqual(["call-number", "chibrary-4-16-20", "tickets"]);
    const { counter, disk } = machineContext(scheme("tickets"), { server: 1 }, undefined);
    expect(() => counter.next()).toThrow(/without a state file/);
    expect(() => disk.get("a")).toThrow(/without a state file/);
  });

  test("is refused where a number has no place for it", () => {
    for (const options of [{ node: 1 }, { server: 1 }, { mac: ["de:ad:be:ef:00:01"] }]) {
      expect(() => machineContext(scheme("uuid"), options, undefined)).toThrow(/has no place for --/);
    }
  });
});
