/** What a fuzz target is, and how its inputs come about: draws from a seed, and bytes made wrong. */
import { oneOf, seededRandom } from "../faults/seeded-random.js";

/** An input is bytes and nothing else, so that a finding is played again from its bytes alone. */
export interface FuzzTarget {
  /** As `--target` names it. */
  readonly name: string;
  /** How many inputs `npm run test:all` tries: a few seconds. */
  readonly shortCount: number;
  /** Sets up what the inputs are given to. It ends with the test. */
  start(): Promise<FuzzSubject> | FuzzSubject;
}

interface FuzzSubject {
  /** The same draws make the same input. */
  input(draw: Draw): Buffer;
  /** @throws whatever the input was found to break. Must hold for any bytes, as people may shorten a finding by hand. */
  check(input: Buffer): Promise<void> | void;
}

/** Draws that come again with the same seed. */
export interface Draw {
  /** 0 to before `below`. */
  below(below: number): number;
  oneOf<T>(choices: readonly T[]): T;
  /** True once in `times`, on average. */
  onceIn(times: number): boolean;
}

export function drawsOf(seed: number): Draw {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  return { below, oneOf: (choices) => oneOf(random, choices), onceIn: (times) => below(times) === 0 };
}

type Mutation = (bytes: Buffer, draw: Draw, words: readonly Buffer[]) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  function flipBit(bytes, draw) {
    const changed = Buffer.from(bytes);
    const at = draw.below(bytes.length + 1);
    if (at < bytes.length) changed.writeUInt8(changed.readUInt8(at) ^ (1 << draw.below(8)), at);
    return changed;
  },
  function setByte(bytes, draw) {
    const changed = Buffer.from(bytes);
    const at = draw.below(bytes.length + 1);
    if (at < bytes.length) changed.writeUInt8(draw.oneOf(EDGE_BYTES), at);
    return changed;
  },
  function insertByte(bytes, draw) {
    const at = draw.below(bytes.length + 1);
    return replaced(bytes, [at, at], Buffer.of(draw.oneOf([...EDGE_BYTES, draw.below(256)])));
  },
  function insertWord(bytes, draw, words) {
    const at = draw.below(bytes.length + 1);
    return replaced(bytes, [at, at], wordOf(words, draw));
  },
  function replaceByWord(bytes, draw, words) {
    return replaced(bytes, someSpan(bytes, draw), wordOf(words, draw));
  },
  function takeOut(bytes, draw) {
    return replaced(bytes, someSpan(bytes, draw), NONE);
  },
  function repeat(bytes, draw) {
    const [begin, end] = someSpan(bytes, draw);
    const piece = bytes.subarray(begin, end);
    const times = Math.min(draw.oneOf([1, 2, 40]), Math.ceil(REPEATED_BYTES_MAX / Math.max(piece.length, 1)));
    return replaced(bytes, [end, end], Buffer.concat(Array.from({ length: times }, () => piece)));
  },
  function splice(bytes, draw) {
    const [begin, end] = someSpan(bytes, draw);
    const at = draw.below(bytes.length + 1);
    return replaced(bytes, [at, at], bytes.subarray(begin, end));
  },
  function cutOff(bytes, draw) {
    return bytes.subarray(0, draw.below(bytes.length + 1));
  },
];

const NONE = Buffer.alloc(0);
const REPEATED_BYTES_MAX = 4_096;
/** Where grammars turn: ends of lines and of texts, signs, digits, the borders of UTF-8. */
const EDGE_BYTES: readonly number[] = Array.from(
  Buffer.from(`\0\t\n\r "#%'+,-./09:;=>?AZ[\\]_az{|}~\x1b\x7f\x80\xbf\xc0\xe2\xed\xf4\xff`, "latin1"),
);

/** One to `countMax` mutations, one after the other. */
export function mutated(
  bytes: Buffer,
  draw: Draw,
  { words = [], countMax = 4 }: { readonly words?: readonly Buffer[]; readonly countMax?: number } = {},
): Buffer {
  let changed = bytes;
  for (let count = draw.below(countMax) + 1; count > 0; count--) {
    changed = draw.oneOf(MUTATIONS)(changed, draw, words);
  }
  return changed;
}

type Span = readonly [begin: number, end: number];

/** Mostly short: what is far off is rejected at once, and shows little. */
function someSpan(bytes: Buffer, draw: Draw): Span {
  const begin = draw.below(bytes.length + 1);
  const length = draw.below(draw.oneOf([2, 8, 64, bytes.length + 1]));
  return [begin, Math.min(begin + length, bytes.length)];
}

function wordOf(words: readonly Buffer[], draw: Draw): Buffer {
  return words.length === 0 ? NONE : draw.oneOf(words);
}

function replaced(bytes: Buffer, [begin, end]: Span, piece: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, begin), piece, bytes.subarray(end)]);
}
