/** Bytes made wrong: flipped, inserted, taken out, spliced, repeated, and words of the target's grammar inserted. */
import type { Draw } from "./campaign.js";

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
    return putAt(bytes, draw.below(bytes.length + 1), Buffer.of(draw.oneOf([...EDGE_BYTES, draw.below(256)])));
  },
  function insertWord(bytes, draw, words) {
    return putAt(bytes, draw.below(bytes.length + 1), words.length === 0 ? NONE : draw.oneOf(words));
  },
  function replaceByWord(bytes, draw, words) {
    const [begin, end] = someSpan(bytes, draw);
    return Buffer.concat([
      bytes.subarray(0, begin),
      words.length === 0 ? NONE : draw.oneOf(words),
      bytes.subarray(end),
    ]);
  },
  function takeOut(bytes, draw) {
    const [begin, end] = someSpan(bytes, draw);
    return Buffer.concat([bytes.subarray(0, begin), bytes.subarray(end)]);
  },
  function repeat(bytes, draw) {
    const [begin, end] = someSpan(bytes, draw);
    const piece = bytes.subarray(begin, end);
    const times =
      piece.length === 0 ? 0 : Math.min(draw.oneOf([1, 2, 40]), Math.ceil(REPEATED_BYTES_MAX / piece.length));
    return putAt(bytes, end, Buffer.concat(Array.from({ length: times }, () => piece)));
  },
  function splice(bytes, draw) {
    const [begin, end] = someSpan(bytes, draw);
    return putAt(bytes, draw.below(bytes.length + 1), bytes.subarray(begin, end));
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

/** Mostly short: what is far off is rejected at once, and shows little. */
function someSpan(bytes: Buffer, draw: Draw): readonly [begin: number, end: number] {
  const begin = draw.below(bytes.length + 1);
  const length = draw.below(draw.oneOf([2, 8, 64, bytes.length + 1]));
  return [begin, Math.min(begin + length, bytes.length)];
}

function putAt(bytes: Buffer, at: number, piece: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]);
}
