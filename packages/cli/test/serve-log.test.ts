/** The log of `serve`: on a terminal; when its reader stalls (a named pipe) or is gone; when the disk is full (/dev/full). */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { type DroppedLines, LogDestination, terminalLog } from "../src/serve/log.js";
import { jsonLines } from "./commands-for-test.js";

const line = (event: string, number: number, length = 1_000) =>
  `${JSON.stringify({ level: 30, number, fill: "x".repeat(length), msg: event })}\n`;
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

function opened(path: string, flags: number): number {
  const fd = openSync(path, flags | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  return fd;
}

async function newPipe(): Promise<string> {
  const path = join(await folderForTest(), "pipe");
  execFileSync("mkfifo", [path]);
  return path;
}

/** A log at a descriptor. It writes a line for each report of dropped lines. */
function logAt(fd: number, options: { readonly waitingBytesMax?: number } = {}) {
  const printed: string[] = [];
  const dropped: DroppedLines[] = [];
  const clock = { ms: 0 };
  const log: LogDestination = new LogDestination({
    ...options,
    fd,
    printError: (text) => void printed.push(text),
    onDropped: (lines) => {
      dropped.push(lines);
      log.stream.write(line("log_lines_dropped", -1));
    },
    now: () => clock.ms,
  });
  return { log, printed, dropped, clock };
}

async function logInPipe(options: { readonly waitingBytesMax?: number } = {}) {
  const fd = opened(await newPipe(), constants.O_RDWR);
  let text = "";
  const bytes = Buffer.alloc(1 << 20);
  /** Reads what is in the pipe. Returns the numbers of all lines of the event that came through it. */
  const numbers = (event: string) => {
    try {
      text += bytes.toString("utf8", 0, readSync(fd, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
    const lines = jsonLines<{ msg: string; number: number }>(text.slice(0, text.lastIndexOf("\n") + 1));
    return lines.filter(({ msg }) => msg === event).map(({ number }) => number);
  };
  return { ...logAt(fd, options), numbers };
}

test("a line is written before the call returns", async () => {
  const { log, numbers } = await logInPipe();
  log.stream.write(line("lease", 0));
  expect(numbers("lease")).toEqual([0]);
});

test("lines wait for a reader that stalls, and are written in order when it reads again, also during the close", async () => {
  const { log, printed, dropped, numbers } = await logInPipe();
  for (const number of upTo(60)) log.stream.write(line("lease", number, 9_000));
  const closed = log.close();
  await expect.poll(() => numbers("lease")).toEqual(upTo(60));
  await closed;
  expect([printed, dropped]).toEqual([[], []]);
});

test("lines beyond the bound are dropped, counted, and reported once a minute", async () => {
  const { log, printed, dropped, clock, numbers } = await logInPipe({ waitingBytesMax: 80_000 });
  for (const number of upTo(300)) log.stream.write(line("lease", number));
  expect(printed).toEqual(["Can't write the log, and leasing continues: its reader stalls. Lines dropped: 1"]);
  expect(dropped).toEqual([{ lineCount: 1, reason: "its reader stalls" }]);
  clock.ms = 59_999;
  log.stream.write(line("lease", 300));
  expect(printed).toHaveLength(1);
  clock.ms = 60_000;
  log.stream.write(line("lease", 301));
  expect([printed.length, dropped.length]).toEqual([2, 2]);
  await expect.poll(() => (numbers("lease"), printed.length)).toBe(3);
  expect(printed.at(-1)).toMatch(/^The log is written again\. Lines dropped since the start: [1-9]/);
  const written = numbers("lease");
  // Two lines of the listener met the full memory, too.
  const linesDropped = dropped.reduce((sum, { lineCount }) => sum + lineCount, 0);
  expect(linesDropped).toBe(302 - written.length + 2);
  expect(written).toEqual(upTo(written.length));
  log.stream.write(line("lease", 302));
  expect(numbers("lease").at(-1)).toBe(302);
});

test("a full disk throws nothing, and is reported once a minute and at the close", async () => {
  const { log, printed, clock } = logAt(opened("/dev/full", constants.O_WRONLY));
  for (const number of upTo(100)) log.stream.write(line("lease", number));
  expect(printed).toEqual([expect.stringContaining("ENOSPC")]);
  clock.ms = 60_000;
  log.stream.write(line("lease", 100));
  expect(printed).toHaveLength(2);
  // The clock moves backward.
  clock.ms = -3_600_000;
  log.stream.write(line("lease", 101));
  log.stream.write(line("lease", 102));
  expect(printed).toHaveLength(3);
  await log.close();
  expect(printed.slice(3)).toEqual([expect.stringMatching(/^The last lines of the log were not written: ENOSPC/)]);
});

test("a pipe whose reader is gone throws nothing, and its lines are counted", async () => {
  const path = await newPipe();
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = opened(path, constants.O_WRONLY);
  closeSync(reader);
  const { log, printed, clock } = logAt(writer, { waitingBytesMax: 20_000 });
  for (const number of upTo(100)) log.stream.write(line("lease", number));
  expect(printed).toEqual([expect.stringContaining("EPIPE")]);
  clock.ms = 60_000;
  log.stream.write(line("lease", 100));
  expect(printed.at(-1)).toMatch(/EPIPE.* Lines dropped: 8\d$/);
  await log.close();
});

function linesOf(level: "info" | "warn" | "error", fields: object, event: string): string[] {
  const lines: string[] = [];
  terminalLog((text) => lines.push(text))[level](fields, event);
  return lines;
}

test.each<[what: string, level: "info" | "warn" | "error", fields: object, event: string, expected: string[]]>([
  ["nothing of an event that is not a warning", "info", { namespace: "main", runCount: 1 }, "lease", []],
  [
    "nothing of a state that a recovery ends at once",
    "warn",
    { namespace: "main", code: "store_recovering", reason: "heartbeat_expired", explanation: "x" },
    "recovering",
    [],
  ],
  [
    "a recovery as its one line",
    "warn",
    { namespace: "main", mark: 9, explanation: "Idle for 2 h: skipped 690 runs, leasing in 4 s" },
    "recovered",
    ["Idle for 2 h: skipped 690 runs, leasing in 4 s"],
  ],
  [
    "the namespace of a recovery when it is not the default one",
    "warn",
    { namespace: "lists", explanation: "Idle for 2 h: skipped 690 runs, leasing in 4 s" },
    "recovered",
    ["Idle for 2 h: skipped 690 runs, leasing in 4 s (namespace lists)"],
  ],
  [
    "what ends leasing",
    "warn",
    { namespace: "main", code: "store_unavailable", explanation: "The store does not answer" },
    "recovering",
    ["Warning, namespace main: The store does not answer (recovering)"],
  ],
  [
    "the cause of a failure",
    "warn",
    { reason: "no\nline" },
    "heartbeat_failed",
    ["Warning: no\\u{a}line (heartbeat_failed)"],
  ],
  [
    "a finding with its remedy",
    "error",
    { code: "store_eviction_enabled", what: "It evicts", remedy: "Set noeviction" },
    "preflight_finding",
    ["Error: It evicts. Set noeviction (preflight_finding)"],
  ],
  [
    "the fields of an event without a cause, and no nonce",
    "warn",
    { namespace: "main", nonce: "secret", aheadMs: 5000, holder: { name: "importer" } },
    "clock_skew",
    ['Warning, namespace main: aheadMs 5000, holder {"name":"importer"} (clock_skew)'],
  ],
  ["nothing of an event without fields", "warn", {}, "sighup_ignored", []],
])("the terminal shows %s", (_, level, fields, event, expected) => {
  expect(linesOf(level, fields, event)).toEqual(expected);
});
