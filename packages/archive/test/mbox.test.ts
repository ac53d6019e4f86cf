import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { mutatedBytes } from "../../../test/mutated-bytes.js";
import { sized } from "../../../test/size-of-run.js";
import { LineReader } from "../src/sources/line-reader.js";
import { type MboxPart, splitMbox } from "../src/sources/mbox.js";
import { MESSAGE_COUNTS, skipWithoutSharedMail } from "./importing.js";

const FROM_ = "From ada@letters.example Mon Jan  5 09:02:11 2026\n";

async function partsOf(bytes: Buffer, chunkBytes = bytes.length + 1): Promise<MboxPart[]> {
  async function* chunks() {
    // All chunks in the same memory, as a reader with one buffer passes them.
    const memory = Buffer.alloc(chunkBytes);
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      const length = bytes.copy(memory, 0, start, start + chunkBytes);
      yield memory.subarray(0, length);
    }
  }
  const parts: MboxPart[] = [];
  for await (const batch of splitMbox(chunks())) parts.push(...batch);
  return parts;
}

async function contentsOf(text: string): Promise<[string, string][]> {
  const bytes = Buffer.from(text, "latin1");
  const parts = await partsOf(bytes);
  return parts.map(({ kind, contentOffset, contentEnd }) => [
    kind,
    bytes.toString("latin1", contentOffset, contentEnd),
  ]);
}

function expectNothingLost(parts: readonly MboxPart[], bytes: Buffer): void {
  expect(Buffer.concat(parts.map(({ offset, end }) => bytes.subarray(offset, end))).equals(bytes)).toBe(true);
  for (const { offset, contentOffset, contentEnd, end } of parts) {
    expect(offset <= contentOffset && contentOffset <= contentEnd && contentEnd <= end).toBe(true);
    expect(bytes.toString("latin1", contentEnd, end)).toMatch(/^(?:\r?\n)?$/);
  }
}

test.each([
  ["the plain form", "From a@b Mon Jan  5 10:00:00 2015"],
  ["CRLF", "From a@b Mon Jan  5 10:00:00 2015\r"],
  ["no seconds", "From a@b Mon Jan  5 10:00 2015"],
  ["a zone before the year", "From a@b Mon Jan  5 10:00:00 +0200 2015"],
  ["a named zone before the year", "From a@b Mon Jan  5 10:00:00 MET DST 2015"],
  ["a zone after the year", "From a@b Mon Jan  5 10:00:00 2015 -0700"],
  ["a named zone after the year", "From a@b Mon Jan  5 10:00:00 2015 EST"],
  ["UUCP", "From uucp Mon Jan  5 10:00:00 1987 remote from ihnp4"],
  ["git", "From 0e7977a870aafbacbc9043647f061f04a69b41f1 Mon Sep 17 00:00:00 2001"],
  ["a hidden address", "From a at b.example  Fri Apr  1 08:26:00 2005"],
  ["a zone with an offset", "From a@b Mon Jan  5 10:00:00 UTC+0200 2015"],
  ["the date of a header", "From a@b Fri, 5 Mar 1993 14:20:00 +0100"],
  ["the date of a header with a two-digit year", "From a@b Fri, 5-Mar-93 14:20 -0800 (PST)"],
  ["a year of two digits", "From a@b Mon Jan  5 10:00:00 15"],
  ["an ISO date", "From a@b 2015-01-05 10:00:00"],
  ["an ISO date with a zone", "From a at b.example 2015-01-05T10:00:00+02:00\r"],
  ["dots in the time", "From a@b Mon Jan  5 10.00.00 2015"],
])("a separator is found in %s", async (_, line) => {
  expect(await contentsOf(`${FROM_}S: 1\n\nx\n\n${line}\nS: 2\n\ny\n`)).toEqual([
    ["message", "S: 1\n\nx\n"],
    ["message", "S: 2\n\ny\n"],
  ]);
});

test.each([
  ["text that begins with From", "From here on, text."],
  ["a year without a time", "From the year 2015"],
  ["a time without a year", "From 10:00 on"],
  ["text after the year", "From a@b Mon Jan  5 10:00:00 2015, he wrote:"],
  ["a year of three digits", "From a@b Mon Jan  5 10:00:00 115"],
  ["a year of five digits", "From a@b Mon Jan  5 10:00:00 20150"],
  ["an ISO date without a header behind it", "From a@b 2015-01-05 10:00:00"],
  ["a date without a sender", "From Fri, 5 Mar 1993 14:20\nTo: Sat, 6 Mar 1993 12:00"],
  ["an ISO date without a sender", "From 2015-01-05 10:00\nTo: 2015-01-06 12:00"],
  ["no date, whatever follows", "From a@b\nS: 2"],
  ["a rare form without a blank line before it", "text\nFrom a@b 2015-01-05 10:00:00\nS: 2"],
  ["another case", "FROM a@b Mon Jan  5 10:00:00 2015"],
  ["a quoted one", ">From a@b Mon Jan  5 10:00:00 2015"],
  ["a line longer than any mail program writes", `From ${"a".repeat(1000)} Mon Jan  5 10:00:00 2015`],
  ["one that goes on far to the right", `From a@b Mon Jan  5 10:00:00 2015${" ".repeat(1000)}, he wrote:`],
])("a separator is not found in %s", async (_, line) => {
  expect(await contentsOf(`${FROM_}S: 1\n\nx\n\n${line}\ny\n`)).toEqual([["message", `S: 1\n\nx\n\n${line}\ny\n`]]);
});

test("a separator counts without a blank line before it when a header field follows, and only then", async () => {
  const inText = "From b@c Mon Jan  5 10:00:00 2015\n";
  expect(await contentsOf(`${FROM_}S: 1\n\nx\n${inText}S: 2\n\ny\n`)).toEqual([
    ["message", "S: 1\n\nx\n"],
    ["message", "S: 2\n\ny\n"],
  ]);
  expect(await contentsOf(`${FROM_}S: 1\n\nx\n${inText}he wrote\n`)).toEqual([
    ["message", `S: 1\n\nx\n${inText}he wrote\n`],
  ]);
});

test.each([
  ["a number", "From 6051272061054231474", "From -3831648075992104022"],
  ["a dash", "From - ", "From - \r"],
  ["nothing", "From ", "From "],
])("a separator has %s instead of a date in a file that begins with one", async (_, first, next) => {
  expect(await contentsOf(`\n${first}\nS: 1\n\nx\n\nFrom now on\nS: y\n${next}\nS: 2\n\n${next}\ny\n`)).toEqual([
    ["blank", "\n"],
    ["message", "S: 1\n\nx\n\nFrom now on\nS: y\n"],
    ["message", `S: 2\n\n${next}\ny\n`],
  ]);
  for (const other of [FROM_, "From -1\n", "From - \n", "From \n"].filter((line) => form(line) !== form(first))) {
    expect(await contentsOf(`${other}S: 1\n\nx\n\n${next}\nS: 2\n`)).toHaveLength(1);
  }
});

const form = (line: string) => line.trim().replace(/-?\d+/, "number");

const counted = (body: string, length = body.length) => `${FROM_}S: x\nContent-Length: ${length}\n\n${body}\n`;
const forged = `x\n\n${FROM_}S: inside\n\ny\n`;

test.each([
  ["leads to the next separator", counted(forged) + counted("z\n"), [forged, "z\n"]],
  ["leads to the file's end", counted("z\n") + counted(forged), ["z\n", forged]],
  ["counts the blank line", counted(forged, forged.length + 1) + counted("z\n"), [forged, "z\n"]],
  ["leads to nothing", counted(forged, forged.length - 1), ["x\n", "y\n"]],
  ["leads out of the file", counted(forged, 9999), ["x\n", "y\n"]],
  ["is in a file with a message without one", `${FROM_}S: 1\n\nz\n\n${counted(forged)}`, ["z\n", "x\n", "y\n"]],
  ["is in the text", `${FROM_}S: 1\n\nContent-Length: 60\n${forged}`, ["Content-Length: 60\nx\n", "y\n"]],
])("a Content-Length that %s decides what is a message, or does not", async (_, text, bodies) => {
  const contents = await contentsOf(text);
  expect(contents.map(([, content]) => content.slice(content.indexOf("\n\n") + 2))).toEqual(bodies);
});

test("a separator is found behind a hole of NUL bytes, wherever the hole begins", async () => {
  for (const before of ["x\n\n", "x\n", "x"]) {
    expect(await contentsOf(`${FROM_}S: 1\n\n${before}\0\0\0${FROM_}no header\n`)).toEqual([
      ["message", `S: 1\n\n${before}\0\0\0`],
      ["message", "no header\n"],
    ]);
  }
});

test("the parts of an mbox leave exactly one blank line to the format", async () => {
  expect(await contentsOf(`${FROM_}S: 1\n\nx\n\n\n\n${FROM_}S: 2\n\ny\n\n\n`)).toEqual([
    ["message", "S: 1\n\nx\n\n\n"],
    ["message", "S: 2\n\ny\n\n"],
  ]);
});

test("the parts of an mbox name text before the first separator, and text without any", async () => {
  expect(await contentsOf(`junk\n\n${FROM_}S: 1\n`)).toEqual([
    ["preamble", "junk\n\n"],
    ["message", "S: 1\n"],
  ]);
  const rare = "From a@b 2015-01-05 10:00:00\n";
  expect(await contentsOf(`\n${rare}S: 1\n`)).toEqual([
    ["blank", "\n"],
    ["message", "S: 1\n"],
  ]);
  expect(await contentsOf(`${rare}text\n`)).toEqual([["unseparated", `${rare}text\n`]]);
  expect(await contentsOf("\n\nS: 1\n\nx\n\n")).toEqual([
    ["blank", "\n\n"],
    ["unseparated", "S: 1\n\nx\n\n"],
  ]);
});

test.each([
  [`${FROM_}S: 1\n`, "message", "S: 1\n"],
  ["S: 1\n", "unseparated", "S: 1\n"],
])("a byte order mark before %j is not a part of a message", async (text, kind, content) => {
  const mark = "\xef\xbb\xbf";
  expect(await contentsOf(mark + text)).toEqual([
    ["blank", mark],
    [kind, content],
  ]);
  expect(await contentsOf(mark)).toEqual([["blank", mark]]);
});

test("the parts of an mbox are none in an empty file, and blank in a blank one", async () => {
  expect(await contentsOf("")).toEqual([]);
  expect(await contentsOf("\n\r\n")).toEqual([["blank", "\n\r\n"]]);
});

test.for(Object.entries(MESSAGE_COUNTS).map(([path, count]) => [basename(path), count, path] as const))(
  "the parts of %s are %i messages, and no byte is lost",
  async ([, count, path], ctx) => {
    skipWithoutSharedMail(ctx);
    const bytes = await readFile(path);
    const whole = await partsOf(bytes);
    expect(whole.filter(({ kind }) => kind === "message" || kind === "unseparated").length).toBe(count);
    expectNothingLost(whole, bytes);
    const chunkSizes = bytes.length > 500_000 ? [1021] : [1, 2, 7, 64, 4096];
    for (const chunkBytes of chunkSizes) expect(await partsOf(bytes, chunkBytes)).toEqual(whole);
  },
);

test("the parts of an mbox are the messages that were written, whatever the size of the chunks", async () => {
  const property = fc.asyncProperty(
    fc.array(message, { minLength: 1, maxLength: 8 }),
    fc.integer({ min: 1, max: 200 }),
    async (messages, chunkBytes) => {
      const bytes = asMboxrd(messages);
      const parts = await partsOf(bytes, chunkBytes);
      const read = parts.map(({ contentOffset, contentEnd }) => bytes.toString("latin1", contentOffset, contentEnd));
      expect(read.map((text) => text.replace(/^>(>*From )/gm, "$1"))).toEqual(messages);
    },
  );
  await fc.assert(property, { numRuns: 2000 });
});

/** Lines that are easily taken for something else. */
const line = fc.oneof(
  fc.constantFrom(
    "",
    "x",
    "From",
    "From ",
    "From a@b Mon Jan  5 10:00:00 2015",
    "From a@b 2015-01-05 10:00",
    "Subject: y",
    "\r",
    " ",
  ),
  fc.constantFrom(">From a 10:00 2015", ">>From a@b Mon Jan  5 10:00:00 2015\r", "\t10:00:00 2015", "-- "),
  fc.uint8Array({ maxLength: 30 }).map((bytes) =>
    Buffer.from(bytes)
      .toString("latin1")
      .replace(/[\n\0]/g, "."),
  ),
);
const message = fc.array(line, { maxLength: 12 }).map((lines) => ["Subject: s", ...lines, ""].join("\n"));

/** Every line of `>`s and `From ` gets one more `>`. */
function asMboxrd(messages: readonly string[]): Buffer {
  const quoted = messages.map((text) => text.replace(/^(>*From )/gm, ">$1"));
  return Buffer.from(quoted.map((text) => `${FROM_}${text}\n`).join(""), "latin1");
}

test("the parts of any bytes lose and double none, whatever the size of the chunks, and a line keeps its beginning only", async () => {
  const words = [
    "\n",
    "\r\n",
    "\n\n",
    "\0\0\0",
    "From ",
    ">From ",
    FROM_,
    `\n${FROM_}`,
    "S: y\n\n",
    " folded\n",
    "a".repeat(990),
  ];
  const texts = [1, 2, 3].map((count) => `${FROM_}Subject: x\nX: y\n\nText\n>From here\n\n`.repeat(count));
  const property = fc.asyncProperty(
    mutatedBytes([...texts, ""], words),
    fc.constantFrom(1, 2, 3, 16, 1_001),
    async (bytes, chunkBytes) => {
      const whole = await partsOf(bytes);
      expectNothingLost(whole, bytes);
      expect(await partsOf(bytes, chunkBytes)).toEqual(whole);
      const reader = new LineReader();
      const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) =>
        bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes),
      );
      let begin = 0;
      for (const { offset, end, head } of [
        ...chunks.map((chunk) => Array.from(reader.push(chunk))),
        Array.from(reader.end()),
      ].flat()) {
        expect(offset).toBe(begin);
        expect(head.equals(bytes.subarray(offset, Math.min(end, offset + 1_000)))).toBe(true);
        begin = end;
      }
      expect(begin).toBe(bytes.length);
    },
  );
  await fc.assert(property, { seed: inject("seed"), numRuns: sized(500, 10_000) });
});
