/** The codec, against plain arithmetic on big integers: any text, any bytes, any values in place of the parts. */
import assert from "node:assert/strict";
import {
  CallNumberError,
  type CallNumberParts,
  callNumbersOfRun,
  decodeCallNumber,
  encodeCallNumber,
  fromNumber,
  isCallNumber,
  runInBytes,
  toNumber,
} from "../../packages/protocol/src/codec.js";
import { type Draw, type FuzzTarget, mutated } from "./inputs.js";

/** Written down once more, from the specification. */
const PLACES = [
  3, 15, 20, 26, 6, 25, 23, 0, 16, 41, 18, 46, 42, 32, 31, 34, 1, 12, 7, 38, 33, 24, 2, 10, 14, 37, 5, 43, 13, 29, 27,
  35, 21, 8, 44, 4, 9, 30, 36, 19, 39, 45, 40, 17, 22, 11, 28,
] as const;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const GREATEST = 2n ** 47n - 1n;

/** The first byte of an input: what the rest of it is. */
const KINDS = ["text", "parts"] as const;
const WORDS = ["00000000", "zzzzzzzz", "dxlGgaI3", "dxlGgaI4", "2VznWE2i", "é", "０", "\u{1d7d8}", "\ud800"].map(
  (text) => Buffer.from(text, "utf16le"),
);

/** Values that no part may have; in place of the first, the number after it is used. */
const ODD_VALUES: readonly unknown[] = Array.of<unknown[]>(
  [undefined, null, "1", "", true, 1n, [], [1], {}, { valueOf: () => 1 }],
  [new Number(1), () => 1, Symbol("part")],
).flat();
const EDGE_NUMBERS = [
  [0, -0, 1, -1, 0.5, 7, 8, 16383, 16384, 2 ** 30 - 1, 2 ** 47 - 1, Number.MIN_VALUE, Number.MAX_VALUE],
  [30, 31, 32, 47, 53].map((power) => 2 ** power),
  [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
].flat();
const PART_BYTES = 9;

export const codec: FuzzTarget = {
  name: "codec",
  shortCount: 40_000,
  start: () => ({ input, check }),
};

function input(draw: Draw): Buffer {
  return draw.onceIn(3)
    ? Buffer.concat([Buffer.of(KINDS.indexOf("parts")), partsInput(draw)])
    : Buffer.concat([Buffer.of(KINDS.indexOf("text")), textInput(draw)]);
}

function textInput(draw: Draw): Buffer {
  const text = Buffer.from(Array.from({ length: 8 }, () => ALPHABET[draw.below(62)]).join(""), "utf16le");
  return draw.onceIn(2) ? text : mutated(text, draw, { words: WORDS, countMax: 3 });
}

function partsInput(draw: Draw): Buffer {
  const ranges = [8, 2 ** 30, 2 ** 14];
  return Buffer.concat(
    ranges.map((range) => {
      const part = Buffer.alloc(PART_BYTES);
      part.writeUInt8(draw.onceIn(8) ? draw.below(ODD_VALUES.length) : 0);
      part.writeDoubleBE(draw.onceIn(4) ? draw.oneOf(EDGE_NUMBERS) : draw.below(range), 1);
      return part;
    }),
  );
}

function check(bytes: Buffer): void {
  const rest = bytes.subarray(1);
  if (KINDS[bytes[0] ?? 0] === "parts") checkParts(rest);
  else checkText(rest.toString("utf16le"));
}

function checkText(text: string): void {
  const expected = plainlyDecoded(text);
  assert.equal(isCallNumber(text), typeof expected === "object");
  const ascii = Buffer.from(text, "utf16le").filter((_, index) => index % 2 === 0);
  const isBytes = text.length === ascii.length && [...text].every((character) => character < "\u0100");
  if (typeof expected === "string") {
    for (const decode of [decodeCallNumber, toNumber]) {
      assert.throws(
        () => decode(text),
        (error) => error instanceof CallNumberError && error.code === expected,
      );
    }
    if (isBytes && text.length === 8) assert.equal(runInBytes(ascii, 0), -1);
    return;
  }
  const parts = decodeCallNumber(text);
  assert.deepEqual(parts, expected);
  assert.equal(encodeCallNumber(parts), text);
  assert.equal(fromNumber(toNumber(text)), text);
  const between = Buffer.concat([Buffer.from([0xff]), ascii, Buffer.from([0xff])]);
  assert.equal(runInBytes(between, 1), parts.version * 2 ** 30 + parts.run);
  assert.equal(runInBytes(between, 2), -1);
  assert.equal(runInBytes(ascii, 1), -1);
}

function checkParts(bytes: Buffer): void {
  const [version, run, sequence] = [0, 1, 2].map((index) => valueAt(bytes, index * PART_BYTES)) as [
    number,
    number,
    number,
  ];
  const encodings: readonly (() => string)[] = [
    () => encodeCallNumber({ version, run, sequence }),
    () => callNumbersOfRun(version, run)(sequence),
  ];
  if (!(isWhole(version, 7) && isWhole(run, 2 ** 30 - 1) && isWhole(sequence, 2 ** 14 - 1))) {
    for (const encode of encodings) assert.throws(encode, isMisuse);
  } else {
    const [text = "", again] = encodings.map((encode) => encode());
    assert.equal(text, again);
    // What one text stands for is one: two fields never share a text.
    assert.deepEqual(plainlyDecoded(text), { version: version + 0, run: run + 0, sequence: sequence + 0 });
  }
  const number: unknown = version;
  if (isWhole(number, 2 ** 47 - 1)) assert.equal(toNumber(fromNumber(version)), version + 0);
  else if (number === 1n || number === "1") assert.equal(toNumber(fromNumber(number)), 1);
  else assert.throws(() => fromNumber(version), isMisuse);
  assert.throws(() => encodeCallNumber(valueAt(bytes, 0) as never), isMisuse);
  if (typeof (version as unknown) !== "string") {
    assert.throws(() => decodeCallNumber(version as never), TypeError);
    assert.equal(isCallNumber(version), false);
  }
}

/** @returns the parts, or the code of the refusal. */
function plainlyDecoded(text: string): CallNumberParts | string {
  if (text.length !== 8) return "wrong_length";
  const digits = text.split("").map((digit) => ALPHABET.indexOf(digit));
  if (digits.includes(-1)) return "wrong_character";
  const shuffled = digits.reduce((sum, digit) => sum * 62n + BigInt(digit), 0n);
  if (shuffled > GREATEST) return "beyond_greatest";
  let bits = 0n;
  for (const [output, place] of PLACES.entries()) {
    bits |= ((shuffled >> BigInt(46 - output)) & 1n) << BigInt(46 - place);
  }
  return {
    version: Number(bits >> 44n),
    run: Number((bits >> 14n) & (2n ** 30n - 1n)),
    sequence: Number(bits & (2n ** 14n - 1n)),
  };
}

function valueAt(bytes: Buffer, at: number): unknown {
  const odd = (bytes[at] ?? 0) % ODD_VALUES.length;
  if (odd !== 0) return ODD_VALUES[odd];
  return at + PART_BYTES <= bytes.length ? bytes.readDoubleBE(at + 1) : undefined;
}

function isWhole(value: unknown, max: number): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max;
}

function isMisuse(error: unknown): boolean {
  return error instanceof RangeError || error instanceof TypeError;
}
