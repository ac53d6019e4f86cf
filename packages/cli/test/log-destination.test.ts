/** The log of `serve` where its reader stalls, by a named pipe, and on a full disk, by /dev/full. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type DroppedLines, LogDestination } from "../src/serve/log.js";

const line = (event: string, number: number, length = 1_000) =>
  `${JSON.stringify({ level: 30, number, fill: "x".repeat(length), msg: event })}\n`;

function inPipe({ waitingBytesMax }: { readonly waitingBytesMax?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-log-"));
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });
  const said: string[] = [];
  const dropped: DroppedLines[] = [];
  const clock = { ms: 0 };
  const log = new LogDestination({
    fd,
    say: (text) => void said.push(text),
    ...(waitingBytesMax === undefined ? {} : { waitingBytesMax }),
    now: () => clock.ms,
  });
  log.onDropped((lines) => {
    dropped.push(lines);
    log.stream.write(line("log_lines_dropped", -1));
  });
  const text = { read: "" };
  const bytes = Buffer.alloc(1 << 20);
  /** The numbers of all lines of the event that came through the pipe. */
  const numbers = (event: string) => {
    try {
      text.read += bytes.toString("utf8", 0, readSync(fd, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
    return text.read
      .split("\n")
      .slice(0, -1)
      .map((each) => JSON.parse(each) as { msg: string; number: number })
      .filter(({ msg }) => msg === event)
      .map(({ number }) => number);
  };
  return { log, said, dropped, clock, numbers };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

test("a line is written before the call returns", () => {
  const { log, numbers } = inPipe();
  log.stream.write(line("lease", 0));
  expect(numbers("lease")).toEqual([0]);
});

test("lines wait for a reader that stalls, and are written whole and in order when it reads again", async () => {
  const { log, said, dropped, numbers } = inPipe();
  for (const number of upTo(60)) log.stream.write(line("lease", number, 9_000));
  await expect.poll(() => numbers("lease")).toEqual(upTo(60));
  await log.close();
  expect([said, dropped]).toEqual([[], []]);
});

test("lines beyond the bound are dropped, counted, and reported once a minute", async () => {
  const { log, said, dropped, clock, numbers } = inPipe({ waitingBytesMax: 80_000 });
  for (const number of upTo(300)) log.stream.write(line("lease", number));
  expect(said).toEqual(["Can't write the log, and leasing goes on: its reader stalls. Lines dropped: 1"]);
  expect(dropped).toEqual([{ lineCount: 1, reason: "its reader stalls" }]);
  clock.ms = 59_999;
  log.stream.write(line("lease", 300));
  expect(said).toHaveLength(1);
  clock.ms = 60_000;
  log.stream.write(line("lease", 301));
  expect([said.length, dropped.length]).toEqual([2, 2]);
  await expect.poll(() => (numbers("lease"), said.length)).toBe(3);
  expect(said.at(-1)).toMatch(/^The log is written again\. Lines dropped since the start: [1-9]/);
  const written = numbers("lease");
  // Two lines of the listener met the full memory, too.
  const linesDropped = dropped.reduce((sum, { lineCount }) => sum + lineCount, 0);
  expect(linesDropped).toBe(302 - written.length + 2);
  expect(written).toEqual(upTo(written.length));
  log.stream.write(line("lease", 302));
  expect(numbers("lease").at(-1)).toBe(302);
});

test("a full disk throws nothing, is reported once a minute, and at the close", async () => {
  const fd = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(fd));
  const said: string[] = [];
  let nowMs = 0;
  const log = new LogDestination({ fd, say: (text) => void said.push(text), now: () => nowMs });
  for (const number of upTo(100)) log.stream.write(line("lease", number));
  expect(said).toEqual([expect.stringContaining("ENOSPC")]);
  nowMs = 60_000;
  log.stream.write(line("lease", 100));
  expect(said).toHaveLength(2);
  // The clock moves backward.
  nowMs = -3_600_000;
  log.stream.write(line("lease", 101));
  log.stream.write(line("lease", 102));
  expect(said).toHaveLength(3);
  await log.close();
  expect(said.slice(3)).toEqual([expect.stringMatching(/^The last lines of the log were not written: ENOSPC/)]);
});

test("a pipe whose reader is gone throws nothing, and its lines are counted", async () => {
  const fd = brokenPipe();
  const said: string[] = [];
  let nowMs = 0;
  const log = new LogDestination({
    fd,
    say: (text) => void said.push(text),
    waitingBytesMax: 20_000,
    now: () => nowMs,
  });
  for (const number of upTo(100)) log.stream.write(line("lease", number));
  expect(said).toEqual([expect.stringContaining("EPIPE")]);
  nowMs = 60_000;
  log.stream.write(line("lease", 100));
  expect(said.at(-1)).toMatch(/EPIPE.* Lines dropped: 8\d$/);
  await log.close();
});

/** Opened for writing. */
function brokenPipe(): number {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-log-"));
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  closeSync(reader);
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });
  return fd;
}
