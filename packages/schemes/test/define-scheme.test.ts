/** What the builder promises to declarations that no scheme of the list makes, and to memories that fail. */
import { describe, expect, test } from "vitest";
import { defineScheme } from "../src/define-scheme.js";
import { decimal } from "../src/encodings.js";
import { SCHEMES, type Scheme } from "../src/index.js";
import { chibrary41620 } from "../src/schemes/chibrary-4-16-20.js";
import { contextWith, MapMemory, memoryFailingAt, mintedStep } from "./helpers.js";

test("a field that is the same in every number is so in the middle too: other numbers are none", () => {
  const scheme = defineScheme({
    name: "marked",
    title: "Marked",
    fields: [
      { name: "upper", width: { bits: 4 }, source: { kind: "random", from: 0, to: 15 } },
      { name: "mark", width: { bits: 4 }, source: { kind: "fixed", value: 9, others: "refused" } },
      { name: "lower", width: { bits: 4 }, source: { kind: "random", from: 0, to: 15 } },
    ],
    encodings: [decimal("decimal", 4)],
  });
  expect(scheme.format({ upper: 1, lower: 2 })).toBe(String(0x192));
  expect(scheme.parse(String(0x192))).toMatchObject({ values: { upper: 1, mark: 9, lower: 2 } });
  expect(scheme.parse(String(0x182))).toEqual({ matches: false, reason: "mark is 8, and 9 in every number" });
  expect(() => scheme.format({ upper: 1, mark: 8, lower: 2 })).toThrow("mark must be 9, not 8");
});

test("what does not fit its field is refused, whether it is declared so or a memory was changed", () => {
  const fields = [
    { name: "upper", width: { bits: 3 }, source: { kind: "fixed", value: 0, others: "read" } },
    { name: "lower", width: { bits: 3 }, source: { kind: "random", from: 0, to: 8 } },
  ] as const;
  const scheme = defineScheme({ name: "spilling", title: "Spilling", fields, encodings: [decimal("decimal", 2)] });
  expect(scheme.mint(contextWith({ random: { below: () => 7 } }))).toMatchObject({ text: "7" });
  expect(() => scheme.mint(contextWith({ random: { below: () => 8 } }))).toThrow("8 does not fit lower");

  const disk = new MapMemory();
  mintedStep(chibrary41620.mint(contextWith({ disk })));
  for (const name of disk.kept.keys()) disk.set(name, -9n);
  expect(() => chibrary41620.mint(contextWith({ disk }))).toThrow("-8 does not fit sequence");
});

describe.each(SCHEMES.map((scheme) => [scheme.name, scheme] as const))("%s", (_, scheme) => {
  test("repeats no number when a memory fails at any of its writings", () => {
    for (let failing = 1; failing <= 40; failing++) {
      const context = contextWith({
        memory: memoryFailingAt(failing),
        disk: memoryFailingAt(failing),
        random: { below: drawsThatRise() },
      });
      expectNoRepeat(scheme, context);
    }
  });
});

/** Steps of the clock in which a unit comes twice, after it was left for the next. */
function expectNoRepeat(scheme: Scheme, context: ReturnType<typeof contextWith>): void {
  const startMs = context.clock.at;
  const texts: string[] = [];
  for (const afterMs of [0, 0, 0, 1_000, 0, 0, 1_000, 1_000, 2_000, 1_000, 2_000]) {
    context.clock.at = startMs + afterMs;
    try {
      texts.push(mintedStep(scheme.mint(context)).text);
    } catch {
      // A refusal, or the memory: no number either way.
    }
  }
  expect(texts.length).toBeGreaterThan(3);
  expect(new Set(texts).size).toBe(texts.length);
}

function drawsThatRise(): (bound: number) => number {
  let drawn = 0;
  return (bound) => ++drawn % bound;
}
