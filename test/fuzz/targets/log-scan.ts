/**
 * Logs that `recover --scan` reads, torn and mixed: whatever the chunks, the same is found; what is found stands in the bytes; nothing
 * is thrown; and nothing that is added to a log makes a run found in it be missed.
 */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { scanLog } from "../../../packages/coordinator/src/archive/scan-log.js";
import { logLine as line, LOGGED_STORE_ID as STORE_ID } from "../../../packages/coordinator/test/log-lines.js";
import { type Draw, drawsOf } from "../draw.js";
import { mutated } from "../mutation.js";
import { type FuzzTarget, NOTHING_TO_STOP } from "../target.js";

const WORDS = [
  '"event":"lease"',
  '"msg":"lease"',
  "\n",
  "\r\n",
  '"',
  "\\",
  "{",
  "}",
  "[",
  ",",
  ":",
  "null",
  "1e400",
  "-1",
  "1.5",
  '"firstRun":',
  '"runCount":64',
  '"version":7',
  '"mark":1073741823',
  '"ledgerId":',
  '"storeId":',
  "\x1B[0m",
  "\0",
].map((word) => Buffer.from(word));
/** In front of the log: what draws the chunks. */
const CHUNK_SEED_BYTES = 4;

export const logScan: FuzzTarget = {
  name: "log-scan",
  shortCount: 600,
  start: async () => ({ input, check, stop: NOTHING_TO_STOP }),
};

function input(draw: Draw): Buffer {
  const lines = Array.from({ length: 1 + draw.below(6) }, () => draw.oneOf(LINES)(draw));
  const log = mutated(Buffer.from(lines.join("\n")), draw, { words: WORDS });
  const bytes = draw.onceIn(6) ? mutated(gzipSync(log), draw, { countMax: 1 }) : log;
  return Buffer.concat([Buffer.from([0, 1, 2, 3].map(() => draw.below(256))), bytes]);
}

const LINES: readonly ((draw: Draw) => string)[] = [
  (draw) => line("lease", { firstRun: 1 + draw.below(900), runCount: 1 + draw.below(64) }),
  (draw) => line("jump", { before: 3, mark: draw.below(70_000) }),
  (draw) => line("pin", { ledgerId: draw.below(2 ** 31) }),
  () => line("init", { firstRun: 7 }),
  () => "not JSON at all",
  () => "",
];

async function check(bytes: Buffer): Promise<void> {
  const log = bytes.subarray(CHUNK_SEED_BYTES);
  const isGzip = log[0] === 0x1f && log[1] === 0x8b;
  const draw = drawsOf(bytes.length < CHUNK_SEED_BYTES ? 0 : bytes.readUInt32BE());
  const whole = await scanLog({ source: chunksOf(log, log.length + 1), never: [] });
  const other = await scanLog({ source: chunksOf(log, draw.oneOf([1, 2, 7, 100])), never: [] });
  // How much of damaged compressed data is read before the damage depends on the chunks; that it is damaged is told in any case.
  const isTorn = isGzip && (whole.damagedCount > 0 || other.damagedCount > 0);
  if (isTorn)
    assert(whole.damagedCount > 0 && other.damagedCount > 0, "damage is told or not, as the chunks happen to fall");
  else assert.deepEqual(other, whole);
  for (const { greatest, leaseCount } of whole.stores) {
    assert(Number.isSafeInteger(greatest.ledgerId) && greatest.ledgerId >= 0 && greatest.ledgerId < 2 ** 33);
    assert(Number.isSafeInteger(greatest.line) && greatest.line >= 1 && leaseCount >= 0);
  }
  if (isGzip) return;
  const added = Buffer.concat([log, Buffer.from(`\n${line("lease", { firstRun: 1_073_741_000, runCount: 2 })}\n`)]);
  const { stores } = await scanLog({ source: chunksOf(added, 4_096), never: [] });
  assert(
    stores.some(({ storeId, greatest }) => storeId === STORE_ID && greatest.ledgerId >= 1_073_741_001),
    "a run of a good line was missed",
  );
}

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) yield Buffer.from(bytes.subarray(start, start + size));
}
