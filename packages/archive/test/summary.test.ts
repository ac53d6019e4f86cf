import { expect, test } from "vitest";
import { type Summary, summaryText } from "../src/importing/summary.js";
import { printable, wrapped } from "../src/terminal.js";

const SUMMARY: Summary = {
  outcome: "complete",
  error: null,
  archive: "/a/archive.db",
  numbersFile: null,
  coordinator: "http://127.0.0.1:7300",
  namespace: "main",
  sameContent: "skip",
  messages: { stored: 1522, alreadyThere: 1, sameContent: 0, notStored: 0 },
  copies: { "separator-and-bytes": 0, bytes: 0, "message-id-and-bytes": 0, "message-id-and-body": 0 },
  relations: { "cross-posted": 0, redelivered: 0, "footer-added": 0, "other-content": 0 },
  restored: 0,
  runsLeased: 5,
  processes: 4,
  seconds: 2,
  archiveHolds: 1523,
  storeId: "store-a",
  sources: [{ kind: "mbox", path: "/a/empty.mbox", bytes: 0, messages: 0, notices: ["is empty"] }],
  problemCount: 0,
  problems: [],
};

test("the summary shows what was stored, the sources, and whether the import came to its end", () => {
  const text = summaryText(SUMMARY);
  for (const part of ["1,522 messages", "1 message\n", "1,523 messages", "0 messages; is empty"]) {
    expect(text).toContain(part);
  }
  expect(text).toMatch(/^Imported into/);
  expect(text).toContain("file of numbers     none: see --numbers");
  expect(summaryText({ ...SUMMARY, numbersFile: "/a/n.ndjson" })).toContain("file of numbers     /a/n.ndjson");
  expect(summaryText({ ...SUMMARY, outcome: "stopped" })).toMatch(/^Stopped before the end/);
  expect(summaryText({ ...SUMMARY, outcome: "failed" })).toMatch(/^Failed before the end/);
});

test.each([
  ["stored", { stored: 1522, alreadyThere: 1, sameContent: 0, notStored: 0 }, "  read a second       762 messages"],
  [
    "read again",
    { stored: 0, alreadyThere: 2570, sameContent: 10, notStored: 1 },
    "  read a second       1,290 messages",
  ],
  ["a single one", { stored: 0, alreadyThere: 2, sameContent: 0, notStored: 0 }, "  read a second       1 message"],
])(
  "the summary has the rate of messages that were %s, and none without messages or when it failed",
  (_, messages, line) => {
    const lines = (summary: Partial<Summary>) => summaryText({ ...SUMMARY, messages, ...summary }).split("\n");
    expect(lines({})).toContain(line);
    expect(lines({ outcome: "stopped", seconds: 2e5 }).join()).toMatch(/read a second +0\.0\d+ messages/);
    const none = { stored: 0, alreadyThere: 0, sameContent: 0, notStored: 1 };
    for (const without of [{ outcome: "failed" }, { messages: none }] as const) {
      expect(lines(without).join()).not.toContain("a second");
    }
  },
);

test("the summary says what happened to the same messages by rule, and to other messages of a Message-ID, with the query for each", () => {
  const messages = { ...SUMMARY.messages, sameContent: 752 };
  const copies = { ...SUMMARY.copies, bytes: 700, "message-id-and-bytes": 52 };
  const relations = { ...SUMMARY.relations, "footer-added": 3 };
  const text = summaryText({ ...SUMMARY, messages, copies, relations, restored: 4 });
  expect(text.split("\n")).toEqual(
    expect.arrayContaining([
      "  with its old number 4 messages",
      "752 messages skipped: the message has a number already",
      "      700  the same bytes, another separator",
      "       52  the same message, other marks of a store or reader",
      "  List them: select * from copies",
      "3 messages stored with the Message-ID of an earlier one",
      "        3  the same text with something added",
      "  List them: select * from relations",
    ]),
  );
  const again = summaryText({ ...SUMMARY, messages, copies, sameContent: "number" });
  expect(again).toContain("752 messages numbered again: ");
  expect(again).not.toContain("from copies");
  expect(summaryText(SUMMARY)).not.toMatch(/old number|select/);
});

test("the summary lists problems by source, number, byte and reason, counts the rest, and has no control character", () => {
  const problem = { source: "/a/b.mbox", number: 7, byteOffset: 99, reason: "bad \u001b[2J", stored: false };
  const problems = Array.from({ length: 30 }, () => problem);
  const storeId = "s\u001b[2J\u202egpj\nImported into";
  const text = summaryText({ ...SUMMARY, storeId, problemCount: 30, problems });
  expect(text).toContain("/a/b.mbox, message 7, byte 99: bad  [2J (NOT stored)");
  expect(text).toContain("and 10 more");
  expect(text).toContain("store s [2J gpj Imported into, namespace main");
  expect(text).not.toContain("\u001b");
});

test.each([
  ["\u001b[2J\u001b[31mred\u0007", 200, " [2J [31mred "],
  ["line\nbreak\r\u2028x", 200, "line break x"],
  ["right\u202eto left", 200, "right to left"],
  ["Grüße 書架 🎈", 200, "Grüße 書架 🎈"],
  ["abcdef", 4, "abc…"],
  ["ab🎈cdef", 4, "ab…"],
])("printable text has no control character and no half of one: %j", (text, lengthMax, printed) => {
  expect(printable(text, lengthMax)).toBe(printed);
});

test.each([
  ["no line is too long", "no line is too long"],
  ["a line that is broken at a blank", "a line that is broken at\na blank"],
  ["  the rest is under the text", "  the rest is under the\n  text"],
  ["  row   the rest is under the column", "  row   the rest is\n        under the column"],
  ["  too wide a name  is no column", "  too wide a name  is no\n  column"],
  ["/a/path/that/is/longer/than/it is whole", "/a/path/that/is/longer/than/it\nis whole"],
  ["see /a/path/of/24/characters. Go on", "see\n/a/path/of/24/characters.\nGo on"],
])("a narrow terminal breaks lines between words only: %j", (text, expected) => {
  expect(wrapped(text, 24)).toBe(expected);
  expect(wrapped(text, 10)).toBe(text);
  expect(wrapped(text, Number.NaN)).toBe(text);
});
