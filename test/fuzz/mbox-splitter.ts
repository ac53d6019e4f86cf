/**
 * The mbox splitter: any archive, in chunks of any size. Its parts account for every byte once, whatever the chunks, and no more of a
 * line is kept than its beginning. Real archives next to the repository are seeds, too, where there are any.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LineReader, type MboxPart, splitMbox } from "../../examples/mbox-importer/src/sources/mbox.js";
import { type Draw, drawsOf, type FuzzTarget, mutated } from "./inputs.js";

const SHARED_MAIL = fileURLToPath(new URL("../../../shared/mail", import.meta.url));
const FROM_ = "From ada@letters.example Mon Jan  5 09:02:11 2026\n";
const WORDS = [
  "\n",
  "\r\n",
  "\n\n",
  "\r",
  "\0",
  "\0\0\0",
  "From ",
  ">From ",
  ">>From x",
  FROM_,
  `\n${FROM_}`,
  `\r\n${FROM_}`,
  "From a@b Mon Jan  5 10:00:00 2015 remote from x\r\n",
  "Subject: y\n",
  "S: y\n\n",
  " folded\n",
  "From 10:00 2015",
  "a".repeat(990),
  `From ${"a".repeat(980)} 10:00 2015\n`,
  `${FROM_}${FROM_}`,
  "\n\n\n",
  "text\n",
  "From \n",
].map((text) => Buffer.from(text, "latin1"));
const SEED_BYTES_MAX = 16_384;
const HEAD_BYTES_MAX = 1_000;
/** In front of the archive: what draws the chunks. */
const CHUNK_SEED_BYTES = 4;

export const mboxSplitter: FuzzTarget = {
  name: "mbox-splitter",
  shortCount: 2_000,
  start() {
    const seeds = [madeArchive(), ...realArchives()];
    return {
      input: (draw) => Buffer.concat([Buffer.from([0, 1, 2, 3].map(() => draw.below(256))), archive(draw, seeds)]),
      check,
    };
  },
};

function madeArchive(): Buffer {
  return Buffer.from(
    [1, 2, 3].map((number) => `${FROM_}Subject: ${number}\nX: y\n\nText\n>From here\n\n`).join(""),
    "latin1",
  );
}

function realArchives(): Buffer[] {
  if (!existsSync(SHARED_MAIL)) return [];
  const files = readdirSync(SHARED_MAIL, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name.endsWith(".mbox"),
  );
  return files.map(({ parentPath, name }) => readFileSync(join(parentPath, name)));
}

/** A piece of a seed, or words in any order; then mutated. */
function archive(draw: Draw, seeds: readonly Buffer[]): Buffer {
  if (draw.onceIn(2)) {
    const words = Buffer.concat(Array.from({ length: draw.below(30) }, () => draw.oneOf(WORDS)));
    return draw.onceIn(2) ? words : mutated(words, draw, { words: WORDS });
  }
  const seed = draw.oneOf(seeds);
  const begin = draw.onceIn(2) ? 0 : draw.below(seed.length + 1);
  return mutated(seed.subarray(begin, begin + draw.below(SEED_BYTES_MAX)), draw, { words: WORDS, countMax: 8 });
}

async function check(input: Buffer): Promise<void> {
  const bytes = input.subarray(CHUNK_SEED_BYTES);
  const draw = drawsOf(input.length < CHUNK_SEED_BYTES ? 0 : input.readUInt32BE());
  const whole = await partsOf([bytes]);
  mustAccountForAll(whole, bytes);
  assert.deepEqual(await partsOf(chunksOf(bytes, draw)), whole);
  mustKeepLittle(bytes, chunksOf(bytes, draw));
}

function mustAccountForAll(parts: readonly MboxPart[], bytes: Buffer): void {
  let at = 0;
  for (const { kind, offset, contentOffset, contentEnd, end } of parts) {
    assert.equal(offset, at, "a byte is lost or doubled");
    assert(offset < end && offset <= contentOffset && contentOffset <= contentEnd && contentEnd <= end);
    assert.match(bytes.toString("latin1", contentEnd, end), /^(?:\r?\n)?$/);
    if (kind === "message") assert.equal(bytes.toString("latin1", offset, offset + 5), "From ");
    at = end;
  }
  assert.equal(at, bytes.length, "the end is lost");
}

/** The lines, too, follow each other without a gap, and none keeps more than its beginning. */
function mustKeepLittle(bytes: Buffer, chunks: readonly Buffer[]): void {
  const reader = new LineReader();
  let at = 0;
  const see = (lines: ReturnType<LineReader["push"]>) => {
    for (const { offset, end, head } of lines) {
      assert.equal(offset, at);
      assert(head.length <= HEAD_BYTES_MAX);
      assert(head.equals(bytes.subarray(offset, Math.min(end, offset + HEAD_BYTES_MAX))));
      at = end;
    }
  };
  for (const chunk of chunks) see(reader.push(chunk));
  see(reader.end());
  assert.equal(at, bytes.length);
}

function chunksOf(bytes: Buffer, draw: Draw): Buffer[] {
  const sizeMax = draw.oneOf([1, 2, 3, 16, 1_001, 4_096]);
  const chunks: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const size = sizeMax === 1 ? 1 : draw.below(sizeMax) + (draw.onceIn(10) ? 0 : 1);
    chunks.push(bytes.subarray(start, start + size));
    start += size;
  }
  return chunks;
}

/** Each chunk in the same memory, as a reader with one buffer would hand them over. */
async function partsOf(chunks: readonly Buffer[]): Promise<MboxPart[]> {
  const memory = Buffer.alloc(Math.max(0, ...chunks.map(({ length }) => length)));
  async function* read() {
    for (const chunk of chunks) {
      chunk.copy(memory);
      yield memory.subarray(0, chunk.length);
    }
  }
  const parts: MboxPart[] = [];
  for await (const part of splitMbox(read())) parts.push(part);
  return parts;
}
