import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { seededBelow } from "../../../test/faults/seeded-random.js";
import { sized } from "../../../test/size-of-run.js";
import {
  CallNumberError,
  callNumbersOfRun,
  decodeCallNumber,
  encodeCallNumber,
  fromNumber,
  isCallNumber,
  NUMBER_MAX,
  RUN_COUNT,
  RUN_MAX,
  runInBytes,
  SEQUENCE_COUNT,
  SEQUENCE_MAX,
  toNumber,
  VERSION_MAX,
} from "../src/codec.js";
import { referenceCallNumber } from "./plain-reference.js";

const vectors = readFileSync(new URL("../test-vectors/v0.csv", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .slice(1)
  .map((row) => row.split(",") as [string, string, string, string])
  .map(([version, run, sequence, callNumber]) => ({
    fields: { version: Number(version), run: Number(run), sequence: Number(sequence) },
    callNumber,
  }));

const seed = inject("seed");
const TRIP_COUNT = sized(300_000, 2_000_000);

test("the codec encodes and decodes the 2,314 call numbers of the reference implementation", () => {
  expect(vectors).toHaveLength(2314);
  for (const { fields, callNumber } of vectors) {
    expect(encodeCallNumber(fields)).toBe(callNumber);
    expect(decodeCallNumber(callNumber)).toEqual(fields);
    expect(fromNumber(toNumber(callNumber))).toBe(callNumber);
  }
});

test("the plain reference of these tests agrees with the reference implementation", () => {
  for (const { fields, callNumber } of vectors) {
    expect(referenceCallNumber(fields.version, fields.run, fields.sequence)).toBe(callNumber);
  }
});

test("the codec decodes random call numbers to their fields, each a different text", () => {
  const random = seededBelow(seed);
  const byText = new Map<string, number>();
  for (let trip = 0; trip < TRIP_COUNT; trip++) {
    const version = random(VERSION_MAX + 1);
    const run = random(RUN_MAX + 1);
    const sequence = random(SEQUENCE_COUNT);
    const callNumber = encodeCallNumber({ version, run, sequence });
    const back = decodeCallNumber(callNumber);
    if (back.version !== version || back.run !== run || back.sequence !== sequence) {
      expect.fail(`${version},${run},${sequence} became ${callNumber} became ${JSON.stringify(back)}`);
    }
    const input = (version * 2 ** 30 + run) * 2 ** 14 + sequence;
    const other = byText.get(callNumber);
    if (other !== undefined && other !== input) expect.fail(`${callNumber} is written for ${other} and for ${input}`);
    byText.set(callNumber, input);
  }
  expect(byText.size).toBeGreaterThan(0.99 * TRIP_COUNT);
});

test("the codec agrees with the plain reference on every single bit, on the edges and on random fields", () => {
  const singleBits = Array.from({ length: 47 }, (_, bit) => 2 ** bit);
  for (const bits of [0, NUMBER_MAX, ...singleBits]) {
    const fields = {
      version: Math.floor(bits / 2 ** 44),
      run: Math.floor(bits / 2 ** 14) % 2 ** 30,
      sequence: bits % 2 ** 14,
    };
    expect(encodeCallNumber(fields)).toBe(referenceCallNumber(fields.version, fields.run, fields.sequence));
  }
  fc.assert(
    fc.property(fc.nat(VERSION_MAX), fc.nat(RUN_MAX), fc.nat(SEQUENCE_MAX), (version, run, sequence) => {
      expect(encodeCallNumber({ version, run, sequence })).toBe(referenceCallNumber(version, run, sequence));
    }),
    { seed, numRuns: sized(4_000, 20_000) },
  );
});

test("callNumbersOfRun returns all 16,384 call numbers of a run, each once", () => {
  for (const run of [1, 99, 2 ** 20, RUN_MAX]) {
    const encode = callNumbersOfRun(0, run);
    const all = Array.from({ length: SEQUENCE_COUNT }, (_, sequence) => encode(sequence));
    expect(new Set(all).size).toBe(SEQUENCE_COUNT);
    all.forEach((callNumber, sequence) => {
      if (callNumber !== referenceCallNumber(0, run, sequence)) expect.fail(`${run}, ${sequence}: ${callNumber}`);
    });
  }
});

test("the codec maps numbers to texts in order, so that text and number sort alike", () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (left, right) => {
      const [a, b] = [left % (NUMBER_MAX + 1), right % (NUMBER_MAX + 1)];
      expect(Math.sign(a - b)).toBe(fromNumber(a) < fromNumber(b) ? -1 : fromNumber(a) > fromNumber(b) ? 1 : 0);
      expect(toNumber(fromNumber(a))).toBe(a);
    }),
    { seed, numRuns: sized(4_000, 20_000) },
  );
});

test("the codec decodes the greatest number and rejects the next one", () => {
  expect(decodeCallNumber("dxlGgaI3")).toEqual({ version: 7, run: RUN_MAX, sequence: SEQUENCE_MAX });
  expect(toNumber("dxlGgaI3")).toBe(2 ** 47 - 1);
  expect(runInBytes(Buffer.from("dxlGgaI3"), 0)).toBe(2 ** 33 - 1);
  expect(() => toNumber([..."dxlGgaI3"] as unknown as string)).toThrow(/a call number is a string/);
  expect(["x", "xy"].map((text) => refusalOf(text).message)).toEqual([
    '"x" has 1 character; a call number has 8',
    '"xy" has 2 characters; a call number has 8',
  ]);
  for (const text of ["dxlGgaI4", "dxlGgaIA", "dxlGgb00", "e0000000", "zzzzzzzz"]) {
    expect(refusalOf(text)).toMatchObject({ code: "beyond_greatest", message: expect.stringContaining("dxlGgaI3") });
  }
});

test.each([
  ["", "wrong_length", undefined],
  ["2VznWE2", "wrong_length", undefined],
  ["2VznWE2i0", "wrong_length", undefined],
  ["02VznWE2i", "wrong_length", undefined],
  ["2VznWE2i\n", "wrong_length", undefined],
  [" VznWE2i", "wrong_character", 0],
  ["2Vzn-E2i", "wrong_character", 4],
  ["2VznWE2\u0131", "wrong_character", 7],
  ["2VznWE2\uff49", "wrong_character", 7],
  ["2VznWE\u{1f600}", "wrong_character", 6],
  ["2VznWE2\ud800", "wrong_character", 7],
  ["-0000001", "wrong_character", 0],
])("the codec rejects %j as %s", (text, code, position) => {
  expect(refusalOf(text)).toMatchObject({ code, position });
  expect(isCallNumber(text)).toBe(false);
});

test("the codec accepts no second encoding: it encodes what it decoded to the same text", () => {
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_+/ .\u00e9";
  const text = fc
    .array(fc.constantFrom(...digits), { minLength: 7, maxLength: 9 })
    .map((characters) => characters.join(""));
  fc.assert(
    fc.property(text, (candidate) => {
      if (isCallNumber(candidate)) expect(encodeCallNumber(decodeCallNumber(candidate))).toBe(candidate);
      else expect(refusalOf(candidate)).toBeInstanceOf(CallNumberError);
    }),
    { seed, numRuns: sized(8_000, 50_000) },
  );
});

test("runInBytes reads the run as from text, wherever it begins, and -1 where there is not a call number", () => {
  for (const { fields, callNumber } of vectors) {
    const bytes = Buffer.from(`/${callNumber}\n`);
    expect(runInBytes(bytes, 1)).toBe(fields.version * RUN_COUNT + fields.run);
    expect(runInBytes(bytes, 0)).toBe(-1);
    expect(runInBytes(bytes, 2)).toBe(-1);
  }
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 8, maxLength: 8 }),
      fc.nat(NUMBER_MAX),
      fc.nat(7),
      (noise, number, place) => {
        const bytes = Buffer.from(fromNumber(number));
        bytes[place] = noise[place] as number;
        const text = bytes.toString("latin1");
        const { version, run } = isCallNumber(text) ? decodeCallNumber(text) : { version: 0, run: -1 };
        expect(runInBytes(bytes, 0)).toBe(version * RUN_COUNT + run);
      },
    ),
    { seed, numRuns: sized(8_000, 50_000) },
  );
  expect(runInBytes(Buffer.from("2VznWE2"), 0), "the bytes end too early").toBe(-1);
});

test("the message of a rejected text names what is wrong, without control characters", () => {
  expect(refusalOf("2Vzn\u001b[0m").message).toBe(
    '"2Vzn\\u001b[0m" has "\\u001b" as character 5; a call number has only 0-9, A-Z and a-z',
  );
  expect(refusalOf("x".repeat(1000)).message.length).toBeLessThan(120);
  expect(refusalOf("abcdefg\u202e").message).not.toMatch(/\u202e/);
});

test.each([
  [{ version: 8, run: 0, sequence: 0 }, "version must be a whole number from 0 to 7, not 8"],
  [{ version: 0, run: 2 ** 30, sequence: 0 }, "run must be a whole number from 0 to 1073741823, not 1073741824"],
  [{ version: 0, run: 1, sequence: 16_384 }, "sequence must be a whole number from 0 to 16383, not 16384"],
  [{ version: 0, run: -1, sequence: 0 }, "run must be"],
  [{ version: 0, run: 1.5, sequence: 0 }, "run must be"],
  [{ version: 0, run: Number.NaN, sequence: 0 }, "not NaN"],
  [{ version: 0, run: "7", sequence: 0 }, 'not "7"'],
  [{ version: 0, run: {}, sequence: 0 }, "not a value of type object"],
  [{ version: 0, run: 1 }, "sequence must be a whole number from 0 to 16383, not undefined"],
])("encodeCallNumber rejects %j", (fields, message) => {
  expect(() => encodeCallNumber(fields as never)).toThrow(RangeError);
  expect(() => encodeCallNumber(fields as never)).toThrow(message);
});

test.each([
  [8_860_652_339_216, "2VznWE2i"],
  [0, "00000000"],
  [2 ** 47 - 1, "dxlGgaI3"],
])("fromNumber takes %d as a number, a bigint and a decimal string", (number, callNumber) => {
  for (const value of [number, BigInt(number), String(number)]) expect(fromNumber(value)).toBe(callNumber);
});

test.each([
  ["", "+1", "-1", "-0", "01", "00", " 1", "1 ", "1\n", "1.0", "1e3", "0x10", "1n", "1_000", "1,000", "١"],
  ["Infinity", "NaN", "2VznWE2i", String(2 ** 47), "9".repeat(400), -1n, 2n ** 47n, 2n ** 64n + 1n, 2n ** 2000n],
  [null, undefined, true, [1], ["1"], {}, Object("1"), Object(1n), { valueOf: (): number => 1 }, Symbol("1")],
  [-1, 2 ** 47, 0.5, Number.NaN, Number.POSITIVE_INFINITY],
])("fromNumber rejects what is not a whole number of 47 bits, or one that is written in another way", (...values) => {
  for (const value of values) expect(() => fromNumber(value as never), String(value)).toThrow(RangeError);
});

test("fromNumber shows the text that it rejects", () => {
  expect(() => fromNumber("007")).toThrow('number must be a whole number from 0 to 140737488355327, not "007"');
});

test("the codec rejects what is not a text", () => {
  for (const value of [12_345_678, null, undefined, ["2VznWE2i"]]) {
    expect(() => decodeCallNumber(value as never)).toThrow(TypeError);
    expect(isCallNumber(value)).toBe(false);
  }
});

test("isCallNumber rejects a text about as fast as it accepts one, because it makes no error", () => {
  const accepted = fastestMs("2VznWE2i");
  for (const text of ["2VznWE2", "2VznWE2-", "zzzzzzzz"]) {
    expect(fastestMs(text), text).toBeLessThan(50 * accepted);
  }
});

/** Of 2,000 answers, so short that other load misses some of the rounds. */
function fastestMs(text: string): number {
  const rounds = Array.from({ length: 20 }, () => {
    const startMs = performance.now();
    for (let answer = 0; answer < 2_000; answer++) isCallNumber(text);
    return performance.now() - startMs;
  });
  return Math.min(...rounds);
}

function refusalOf(text: string): CallNumberError {
  try {
    decodeCallNumber(text);
  } catch (error) {
    if (error instanceof CallNumberError) return error;
    throw error;
  }
  return expect.fail(`${JSON.stringify(text)} was accepted`);
}
