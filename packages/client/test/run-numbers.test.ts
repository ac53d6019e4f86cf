/**
 * The fast path against the plain reference: a codec that is wrong for one of 2^47 numbers destroys a message.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { DIGITS, decodeCallNumber, fromNumber, RUN_MAX, SEQUENCE_COUNT, VERSION_MAX } from "@callnumber/protocol/codec";
import { expect, inject, test } from "vitest";
import { seededBelow } from "../../../test/faults/seeded-random.js";
import { sized } from "../../../test/size-of-run.js";
import { plainNumber, plainText } from "../../protocol/test/plain-arithmetic.js";
import { referenceCallNumber } from "../../protocol/test/plain-reference.js";
import { RunNumbers, TEXT_COUNT_MAX } from "../src/run-numbers.js";

const seed = inject("seed");

/** All numbers of a run, in each of the three forms. */
interface Whole {
  readonly texts: readonly string[];
  readonly bytes: Buffer;
  readonly numbers: Float64Array;
}

function wholeRun(version: number, run: number): Whole {
  const runNumbers = new RunNumbers(version, run);
  const bytes = Buffer.alloc(SEQUENCE_COUNT * 8);
  const numbers = new Float64Array(SEQUENCE_COUNT);
  runNumbers.writeBytes(bytes, 0, 0, SEQUENCE_COUNT);
  runNumbers.writeNumbers(numbers, 0, 0, SEQUENCE_COUNT);
  const texts: string[] = [];
  for (let from = 0; from < SEQUENCE_COUNT; from += TEXT_COUNT_MAX) {
    texts.push(...cut(runNumbers.textUpTo(from, from + TEXT_COUNT_MAX)));
  }
  return { texts, bytes, numbers };
}

function cut(text: string): string[] {
  return text.match(/.{8}/gs) ?? [];
}

function bytesOf(numbers: readonly number[]): Buffer {
  return Buffer.from(Float64Array.from(numbers).buffer);
}

function mustBeRight({ texts, bytes, numbers }: Whole, version: number, run: number, sequence: number): void {
  const number = plainNumber(version, run, sequence);
  const text = plainText(number);
  const inBytes = bytes.toString("latin1", sequence * 8, sequence * 8 + 8);
  if (texts[sequence] !== text || inBytes !== text || numbers[sequence] !== number) {
    expect.fail(`${version},${run},${sequence}: ${texts[sequence]}, ${inBytes}, ${numbers[sequence]}, not ${text}`);
  }
}

test("the arithmetic of these tests agrees with the specification", () => {
  const random = seededBelow(seed);
  for (let trial = 0; trial < sized(50_000); trial++) {
    const [version, run, sequence] = [random(VERSION_MAX + 1), random(RUN_MAX + 1), random(SEQUENCE_COUNT)];
    const text = plainText(plainNumber(version, run, sequence));
    if (text !== referenceCallNumber(version, run, sequence)) expect.fail(`${version},${run},${sequence}: ${text}`);
  }
});

test("the numbers of a run are right for every sequence of many runs, with the first and last, in all three forms", () => {
  const random = seededBelow(seed + 1);
  const edges = [0, 1, 2, 99, 8452, 2 ** 20 - 1, 2 ** 20, 2 ** 29, RUN_MAX - 1, RUN_MAX];
  const drawn = Array.from({ length: sized(20, 280) }, () => random(RUN_MAX + 1));
  const runs = [...edges.map((run) => [0, run]), ...edges.map((run) => [VERSION_MAX, run])];
  for (const [version, run] of [...runs, ...drawn.map((run) => [random(VERSION_MAX + 1), run])] as [number, number][]) {
    const whole = wholeRun(version, run);
    for (let sequence = 0; sequence < SEQUENCE_COUNT; sequence++) mustBeRight(whole, version, run, sequence);
  }
});

test("the numbers of a run are right for every single bit of a call number", () => {
  for (let bit = 0; bit < 47; bit++) {
    const bits = 2 ** bit;
    const [version, run, sequence] = [Math.floor(bits / 2 ** 44), Math.floor(bits / 2 ** 14) % 2 ** 30, bits % 2 ** 14];
    mustBeRight(wholeRun(version, run), version, run, sequence);
  }
});

test("the numbers of a run are right where the lower half of the digits is all zero, which only a carry makes", () => {
  for (let upper = 1; upper <= 20; upper++) {
    const { version, run, sequence } = decodeCallNumber(fromNumber(upper * DIGITS.length ** 4));
    mustBeRight(wholeRun(version, run), version, run, sequence);
  }
});

test("the numbers of a run are the same wherever a text, a range of bytes or of numbers begins and ends", () => {
  const random = seededBelow(seed + 3);
  const run = random(RUN_MAX + 1);
  const runNumbers = new RunNumbers(0, run);
  const { texts, numbers } = wholeRun(0, run);
  const whole = texts.join("");
  for (let trial = 0; trial < sized(3_000); trial++) {
    const from = random(SEQUENCE_COUNT);
    const to = Math.min(from + 1 + random(TEXT_COUNT_MAX), SEQUENCE_COUNT);
    const expected = whole.slice(from * 8, to * 8);
    expect(runNumbers.textUpTo(from, to)).toBe(expected.padStart(TEXT_COUNT_MAX * 8, "-"));
    const end = Math.min(from + 1 + random(12 * TEXT_COUNT_MAX), SEQUENCE_COUNT);
    const bytes = Buffer.alloc((end - from) * 8 + 13, "#");
    runNumbers.writeBytes(bytes, 5, from, end);
    expect(bytes.toString("latin1")).toBe(`#####${whole.slice(from * 8, end * 8)}########`);
    const plain = new Float64Array(end - from + 2).fill(-1);
    runNumbers.writeNumbers(plain, 1, from, end);
    // An assertion over the arrays themselves would look at each of millions of elements.
    expect(Buffer.from(plain.buffer).equals(bytesOf([-1, ...numbers.slice(from, end), -1])), `${from} to ${end}`).toBe(
      true,
    );
  }
});

test("RunNumbers rejects an impossible version or run", () => {
  for (const [version, run] of [
    [8, 1],
    [-1, 1],
    [0, 2 ** 30],
    [0, -1],
    [0, 1.5],
  ] as const) {
    expect(() => new RunNumbers(version, run)).toThrow(RangeError);
  }
});
