import { expect, test } from "vitest";
import { mboxEntry, withArchivedAt } from "../src/reader/raw.js";

const URL = "https://lists.example.org/message/2VznWE2i";
const FIELD = `Archived-At: <${URL}>`;

test.each([
  ["Subject: x\n\nbody\n", `${FIELD}\nSubject: x\n\nbody\n`],
  ["Subject: x\r\n\r\nbody\r\n", `${FIELD}\r\nSubject: x\r\n\r\nbody\r\n`],
  [" folded\n\tagain\nSubject: x\n", ` folded\n\tagain\n${FIELD}\nSubject: x\n`],
  ["\nonly a body", `${FIELD}\n\nonly a body`],
  ["", `${FIELD}\n`],
  [" no line end", `${FIELD}\n no line end`],
])("%j is sent with its address, all other bytes as they are", (raw, expected) => {
  expect(Buffer.concat([...withArchivedAt([Buffer.from(raw)], URL)]).toString()).toBe(expected);
});

test("only the first chunk gets the field", () => {
  const chunks = ["Subject: x\n\n", " y", "\n"].map((text) => Buffer.from(text));
  expect(Buffer.concat([...withArchivedAt(chunks, URL)]).toString()).toBe(`${FIELD}\nSubject: x\n\n y\n`);
});

const entry = (raw: string, fromLine: string | null = "From a Mon Jan  5 10:00:00 2015\n") =>
  Buffer.concat([
    ...mboxEntry({
      raw: Buffer.from(raw, "latin1"),
      fromLine: fromLine === null ? null : Buffer.from(fromLine),
      date: "2025-04-02T07:12:05.000Z",
      url: URL,
    }),
  ]).toString("latin1");

test("an entry of an mbox quotes each From line once more, and ends in a blank line", () => {
  const raw = "Subject: x\n\nFrom me\n>From you\n>>From all\nnot From me\n> From\n\xff\0\n";
  const quoted = "Subject: x\n\n>From me\n>>From you\n>>>From all\nnot From me\n> From\n\xff\0\n";
  expect(entry(raw)).toBe(`From a Mon Jan  5 10:00:00 2015\n${FIELD}\n${quoted}\n`);
  // What mboxrd takes away again.
  expect(entry(raw).replace(/^>(?=>*From )/gm, "")).toContain(raw);
});

test("a message without a separator gets one of its date, and one without a line end gets that", () => {
  expect(entry("Subject: x\n\nend", null)).toBe(
    `From MAILER-DAEMON Wed Apr  2 07:12:05 2025\n${FIELD}\nSubject: x\n\nend\n\n`,
  );
  const usual = "From x Mon Jan  5 10:00:00 2015";
  expect(entry("", usual)).toBe(`${usual}\n${FIELD}\n\n`);
});

test("an entry has a separator that every mbox has, and quotes what looks like one behind a NUL", () => {
  for (const rare of ["From -3831648075992104022\n", "From - \n", "From a Mon, 5 Jan 15 10:00:00 +0000\n"])
    expect(entry("x\n", rare)).toBe(`From MAILER-DAEMON Wed Apr  2 07:12:05 2025\n${FIELD}\nx\n\n`);
  expect(entry("x\n\n\0From a\n")).toContain("\0>From a\n");
});
