/** The log's way out where nobody reads, by a named pipe, and on a disk without room, by /dev/full. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LogOutput, type LostLines } from "../src/cli/log-output.js";

const line = (event: string, number: number, length = 1_000) =>
  `${JSON.stringify({ level: 30, number, fill: "x".repeat(length), msg: event })}\n`;

test("a line acts on no terminal, and means the same", () => {
  const { output, read } = inPipe();
  const told = { level: 30, name: "書架 \u009b2J\u202egpj\u2028\u{e0041}", msg: "lease" };
  output.write(`${JSON.stringify(told)}\n`);
  expect(read()).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+\n$/u);
  expect(JSON.parse(read())).toEqual(told);
});

function inPipe({ waitingBytesMax }: { readonly waitingBytesMax?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-log-"));
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const file = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => {
    closeSync(file);
    rmSync(folder, { recursive: true, force: true });
  });
  const said: string[] = [];
  const lost: LostLines[] = [];
  const clock = { ms: 0 };
  const output = new LogOutput({
    write: (bytes) => writeSync(file, bytes),
    say: (text) => void said.push(text),
    ...(waitingBytesMax === undefined ? {} : { waitingBytesMax }),
    now: () => clock.ms,
  });
  output.onLost((lines) => {
    lost.push(lines);
    output.write(line("log_lines_lost", -1));
  });
  const text = { read: "" };
  const bytes = Buffer.alloc(1 << 20);
  /** All that stands in the pipe. */
  const read = () => {
    try {
      text.read += bytes.toString("utf8", 0, readSync(file, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
    return text.read;
  };
  const numbers = (event: string) =>
    read()
      .split("\n")
      .slice(0, -1)
      .map((each) => JSON.parse(each) as { msg: string; number: number })
      .filter(({ msg }) => msg === event)
      .map(({ number }) => number);
  return { output, said, lost, clock, numbers, read };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

test("what a reader does not take waits, and is written whole and in order when it reads again", async () => {
  const { output, said, lost, numbers } = inPipe();
  // Longer than what a pipe takes as a whole or not at all.
  for (const number of upTo(60)) output.write(line("lease", number, 9_000));
  await expect.poll(() => numbers("lease")).toEqual(upTo(60));
  expect([said, lost]).toEqual([[], []]);
});

test("beyond the bound lines are lost, those that strangers can cause before those of leases, and all are counted", async () => {
  const { output, said, lost, clock, numbers } = inPipe({ waitingBytesMax: 80_000 });
  for (const number of upTo(200)) output.write(line("refusal", number));
  expect(said).toEqual([expect.stringMatching(/^THE LOG CAN'T BE WRITTEN, and leasing goes on: whoever reads it/)]);
  expect(lost).toEqual([{ lineCount: 1, reason: "whoever reads it does not" }]);
  for (const number of upTo(40)) output.write(line("lease", number));
  clock.ms = 59_999;
  for (const number of upTo(100)) output.write(line("debug", number));
  expect(said).toHaveLength(1);
  clock.ms = 60_000;
  output.write(line("refusal", 200));
  expect([said.length, lost.length]).toEqual([2, 2]);
  await expect.poll(() => (numbers("lease"), said.length)).toBe(3);
  const linesLost = 201 + 100 - numbers("refusal").length - numbers("debug").length;
  await expect.poll(() => lost.reduce((sum, { lineCount }) => sum + lineCount, 0)).toBeGreaterThanOrEqual(linesLost);
  expect(numbers("lease")).toEqual(upTo(40));
  expect(said.at(-1)).toMatch(/^the log is written again; lines lost since the start: [1-9]/);
  output.write(line("lease", 40));
  expect(numbers("lease")).toEqual(upTo(41));
});

test.each(["refusal", "refusals", "clocks_disagree", "run_beyond_mark", "sign_in", "internal_error", "repeated"])(
  "lines of %s, which one caller can cause, leave those of leases their room",
  async (event) => {
    const { output, numbers } = inPipe({ waitingBytesMax: 80_000 });
    for (const number of upTo(200)) output.write(line(event, number));
    for (const number of upTo(40)) output.write(line("lease", number));
    await expect.poll(() => numbers("lease")).toEqual(upTo(40));
  },
);

test("a full disk throws nothing and is said once a minute; what waits at the end is told", async () => {
  const file = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(file));
  const said: string[] = [];
  let nowMs = 0;
  const output = new LogOutput({
    write: (bytes) => writeSync(file, bytes),
    say: (text) => void said.push(text),
    now: () => nowMs,
  });
  for (const number of upTo(100)) output.write(line("lease", number));
  expect(said).toEqual([expect.stringContaining("ENOSPC")]);
  nowMs = 60_000;
  output.write(line("lease", 100));
  expect(said).toHaveLength(2);
  // The clock goes back.
  nowMs = -3_600_000;
  output.write(line("lease", 101));
  output.write(line("lease", 102));
  expect(said).toHaveLength(3);
  await output.close();
  expect(said.slice(3)).toEqual([expect.stringMatching(/last lines could not be written: ENOSPC.* 103; lost: 0$/)]);
});
