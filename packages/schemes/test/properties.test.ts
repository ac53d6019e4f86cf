/** What holds for every scheme and any text, drawn by the thousand. */
import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { folderForTest, REPOSITORY } from "../../../test/processes/command.js";
import { sized } from "../../../test/size-of-run.js";
import { defineScheme } from "../src/define-scheme.js";
import { BASE62, decimal, fromDigits, inDigits } from "../src/encodings.js";
import { capacityOf, nodeFields } from "../src/fields.js";
import { type Field, SCHEMES, type Scheme, type SequenceScope, type Values } from "../src/index.js";
import { chibrary41620 } from "../src/schemes/chibrary.js";
import {
  contextWith,
  generatedStep,
  memoryFailingAt,
  mustMatch,
  readingsOf,
  schemeNamed,
  vectorsOf,
} from "./helpers.js";

const byName = SCHEMES.map((scheme) => [scheme.name, scheme] as const);

test("the list has every scheme in its order", () => {
  expect(SCHEMES.map(({ name }) => name)).toEqual([
    "call-number",
    "chibrary-4-16-20",
    "chibrary-3-32-8-4",
    "mysql-13-6-1",
    "mysql-11-9",
    "millis-41-10-13",
    "snowflake-2015",
    "twitter-snowflake",
    "uuid",
    "uuidv7",
    "objectid",
    "ulid",
    "ksuid",
    "nanoid",
    "tickets",
    "random-base62-5",
    "rand64",
    "hash-12",
  ]);
});

const { vectors } = vectorsOf<{
  readonly vectors: readonly { readonly int: string; readonly base62: string; readonly pad8: string }[];
}>("base62");

test("base62 encodes and decodes the 27 vectors, with and without leading zeros", () => {
  expect(vectors).toHaveLength(27);
  for (const { int, base62, pad8 } of vectors) {
    expect(inDigits(BigInt(int), BASE62)).toBe(base62);
    expect(inDigits(BigInt(int), BASE62, 8)).toBe(pad8);
    expect(fromDigits(base62, BASE62)).toBe(BigInt(int));
    expect(fromDigits(pad8, BASE62)).toBe(BigInt(int));
  }
});

test("base62 decodes no other character", () => {
  for (const text of ["", "-", "0-", "é", "0\n", "１"]) expect(fromDigits(text, BASE62)).toBeUndefined();
});

test("the examples of the README print what it shows", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const examples = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  expect(examples).toHaveLength(2);
  const shown = [...(examples[1] as string).matchAll(/; \/\/ (.*)$/gm)].map(([, text]) => text);
  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "packages", "cli", "node_modules"), join(folder, "node_modules"), "junction");
  const printed = examples.map((code, index) => {
    const path = join(folder, `example-${index}.mjs`);
    writeFileSync(path, code);
    return execFileSync(process.execPath, [path], { encoding: "utf8" });
  });
  expect(printed[0]).toContain("0.388");
  expect(printed[1]).toBe(`${shown.join("\n")}\n`);
});

test("a fixed field in the middle must have its value", () => {
  const scheme = defineScheme({
    name: "marked",
    title: "Marked",
    fields: [
      { name: "upper", width: { bits: 4 }, source: { kind: "random", from: 0, to: 15 } },
      { name: "mark", width: { bits: 4 }, source: { kind: "fixed", value: 9, others: "rejected" } },
      { name: "lower", width: { bits: 4 }, source: { kind: "random", from: 0, to: 15 } },
    ],
    encodings: [decimal("decimal", 4)],
  });
  expect(scheme.format({ upper: 1, lower: 2 })).toBe(String(0x192));
  expect(scheme.parse(String(0x192))).toMatchObject({ values: { upper: 1, mark: 9, lower: 2 } });
  expect(scheme.parse(String(0x182))).toEqual({
    matches: false,
    isNear: true,
    reason: "mark is 8, and 9 in every number",
  });
  expect(() => scheme.format({ upper: 1, mark: 8, lower: 2 })).toThrow("mark must be 9, not 8");
});

test("a value that does not fit its field is rejected, from a wrong declaration or a changed memory", () => {
  const fields = [
    { name: "upper", width: { bits: 3 }, source: { kind: "fixed", value: 0, others: "read" } },
    { name: "lower", width: { bits: 3 }, source: { kind: "random", from: 0, to: 8 } },
  ] as const;
  const scheme = defineScheme({ name: "spilling", title: "Spilling", fields, encodings: [decimal("decimal", 2)] });
  expect(scheme.generate(contextWith({ random: { below: () => 7 } }))).toMatchObject({ text: "7" });
  expect(() => scheme.generate(contextWith({ random: { below: () => 8 } }))).toThrow("8 does not fit lower");

  const disk = new Map<string, bigint>();
  generatedStep(chibrary41620.generate(contextWith({ disk })));
  for (const name of disk.keys()) disk.set(name, -9n);
  expect(() => chibrary41620.generate(contextWith({ disk }))).toThrow("-8 does not fit sequence");
});

describe.each(byName)("%s", (_, scheme) => {
  test("the scheme parses what it formats, in every encoding, that of today first", () => {
    const property = fc.property(valuesIn(scheme), (values) => {
      fc.pre(fits(scheme, values));
      const text = scheme.format(values);
      expect(mustMatch(scheme.parse(text)).values).toEqual(values);
      const encodings = Object.values(scheme.encodings(values));
      expect(encodings[0]).toBe(text);
      for (const encoding of encodings) {
        expect(readingsOf(scheme, encoding).map((reading) => reading.values)).toContainEqual(values);
      }
    });
    fc.assert(property, { numRuns: sized(150, 500) });
  });

  test("the scheme parses any text without throwing, only one that it formats exactly so, and repeats none in a reason", () => {
    const property = fc.property(textsNear(scheme), (text) => {
      const parsed = scheme.parse(text);
      if (!parsed.matches) expect(parsed.reason).not.toContain("\u001b");
      const readings = readingsOf(scheme, text);
      for (const { values, encoding, number } of readings) {
        expect(scheme.encodings(values)[encoding]).toBe(text);
        expect(mustMatch(scheme.parse(scheme.format(values))).number).toBe(number);
      }
      expect(new Set(readings.map(({ number }) => number)).size).toBe(readings.length);
    });
    fc.assert(property, { numRuns: sized(400, 1_500) });
    for (const digit of ["0", "9", "z", "f", "-"]) {
      expect(scheme.parse(digit.repeat(1_000_000))).toMatchObject({ matches: false });
    }
  });

  test("the scheme rejects values that miss a field, have another, or do not fit one", () => {
    const { values } = generatedStep(scheme.generate(contextWith()));
    expect(() => scheme.format({ ...values, other: 1 })).toThrow('there is no field "other"');
    for (const field of scheme.fields) {
      const { name, source } = field;
      const { [name]: _left, ...rest } = values;
      if (source.kind !== "fixed" || source.others === "read") expect(() => scheme.format(rest)).toThrow(RangeError);
      for (const wrong of [-1, -1n, capacityOf(field), 0.5, Number.NaN, 2 ** 53, "1", null, undefined, {}]) {
        if (wrong === 2 ** 53 && capacityOf(field) > 2n ** 54n) continue;
        expect(() => scheme.format({ ...values, [name]: wrong as number }), `${name} ${String(wrong)}`).toThrow(
          RangeError,
        );
      }
    }
  });

  test("the scheme parses and formats what it generates", () => {
    const context = contextWith({ random: { below: (bound) => Math.floor(bound / 3) } });
    for (let count = 0; count < 50; count++) {
      const { text, values } = generatedStep(scheme.generate(context));
      expect(mustMatch(scheme.parse(text)).values).toEqual(values);
      expect(scheme.format(values)).toBe(text);
    }
  });
});

test.each([...byName, ...(["clock unit", "process", "run", "kept"] as const).map(withShortSequence)])(
  "%s repeats no number when a memory fails at any of its writings",
  (_, scheme) => {
    for (let failing = 1; failing <= 40; failing++) {
      const context = contextWith({
        memory: memoryFailingAt(failing),
        disk: memoryFailingAt(failing),
        random: { below: drawsThatRise() },
      });
      expectNoRepeat(scheme, context);
    }
  },
);

/** A sequence of eight values: what follows the last one comes within a few numbers. */
function withShortSequence(within: SequenceScope): readonly [string, Scheme] {
  const sequence: Field = { name: "sequence", width: { bits: 3 }, source: { kind: "sequence", within, first: 0 } };
  const clock: Field = { name: "unit", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } };
  const run: Field = { name: "run", width: { bits: 8 }, source: { kind: "counter", asked: "for each run" } };
  const first = { "clock unit": [clock], process: [clock], run: [run], kept: [] }[within];
  const encodings = [decimal("decimal", 20)] as const;
  return [`short ${within}`, defineScheme({ name: "short", title: "Short", fields: [...first, sequence], encodings })];
}

const nodes = byName.flatMap(([name, { fields }]) => {
  const used = (["given", "server", "pid"] as const).filter((from) => nodeFields(fields, from).length > 0);
  return used.map((from) => [name, from] as const);
});

test.each(nodes)("%s rejects a %s number that does not fit", (name, from) => {
  const scheme = schemeNamed(name);
  const capacity = Number(capacityOf(...nodeFields(scheme.fields, from)));
  expect(scheme.generate(contextWith({ node: { [from]: capacity - 1 } }))).toMatchObject({ outcome: "generated" });
  expect(() => scheme.generate(contextWith({ node: { [from]: capacity } }))).toThrow(`, not ${capacity}`);
});

function valuesIn(scheme: Scheme): fc.Arbitrary<Values> {
  const arbitraries = scheme.fields.map((field) => [field.name, valueIn(field)] as const);
  return fc.record(Object.fromEntries(arbitraries)) as fc.Arbitrary<Values>;
}

/** Small and great values are as worth a try as those in between. */
function valueIn(field: Field): fc.Arbitrary<number | bigint> {
  const { source } = field;
  if (source.kind === "fixed" && source.others === "rejected") return fc.constant(source.value);
  const max = capacityOf(field) - 1n;
  const value = fc.oneof(
    fc.bigInt({ min: 0n, max }),
    fc.constantFrom(0n, 1n, max),
    fc.bigInt({ min: 0n, max: max < 99n ? max : 99n }),
  );
  return max < 2n ** 53n ? value.map(Number) : value;
}

/** Of a field that is beyond what the scheme's greatest number allows. */
function fits(scheme: Scheme, values: Values): boolean {
  return scheme.name !== "mysql-13-6-1" || Number(values.time) < 1_844_674_407_370;
}

/** Any text, texts of its digits, and its own texts with something changed. */
function textsNear(scheme: Scheme): fc.Arbitrary<string> {
  const own = valuesIn(scheme)
    .filter((values) => fits(scheme, values))
    .chain((values) => fc.constantFrom(...Object.values(scheme.encodings(values))));
  const digits = fc.constantFrom(..."0123456789ABCDEFabcdefxyzXZ-_");
  const changed = fc
    .tuple(own, fc.nat(), fc.constantFrom("", "0", "Z", "-", "00"), fc.nat({ max: 2 }))
    .map(([text, at, insert, cut]) => {
      const position = at % (text.length + 1);
      return text.slice(0, position) + insert + text.slice(position + cut);
    });
  const extra = fc.constantFrom(" ", "\n", "\t", "+", "\0", "é");
  const extended = fc.tuple(own, extra).chain(([text, more]) => fc.constantFrom(more + text, text + more));
  return fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: anyCharacter }).map((text) => `\u001b[31m${text}`),
    fc.string({ unit: fc.constantFrom(..."0123456789"), maxLength: 42 }),
    fc.string({ unit: digits, maxLength: 40 }),
    own,
    changed,
    extended,
    own.map((text) => text.toUpperCase()),
    own.map((text) => text.toLowerCase()),
  );
}

/** Steps of the clock in which a unit comes twice, after it was left for the next. */
function expectNoRepeat(scheme: Scheme, context: ReturnType<typeof contextWith>): void {
  const startMs = context.clock.at;
  const texts: string[] = [];
  for (const afterMs of [0, 0, 0, 1_000, 0, 0, 1_000, 1_000, 2_000, 1_000, 2_000]) {
    context.clock.at = startMs + afterMs;
    try {
      texts.push(generatedStep(scheme.generate(context)).text);
    } catch {
      // The scheme or the memory failed: no number either way.
    }
  }
  expect(texts.length).toBeGreaterThan(3);
  expect(new Set(texts).size).toBe(texts.length);
}

function drawsThatRise(): (bound: number) => number {
  let drawn = 0;
  return (bound) => ++drawn % bound;
}
