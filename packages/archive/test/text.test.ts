import { expect, test } from "vitest";
import { dateText } from "../src/reader/dates.js";
import { blocksOf, nameOf, shortened, visible, visibleLine } from "../src/reader/text.js";

test.each([
  ["a\0\0b\x1b[31m", "a\ufffdb\ufffd[31m"],
  ["cod\u202etxt.exe\u202c \u2066x\u2069", "codtxt.exe x"],
  ["one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"],
  [`Z${"\u0301".repeat(500)}!`, `Z${"\u0301".repeat(4)}!`],
  ["half a character \ud800", "half a character \ufffd"],
  ["שלום ‏ and <b>tags</b> stay", "שלום ‏ and <b>tags</b> stay"],
])("visible(%j) is %j", (text, expected) => expect(visible(text)).toBe(expected));

test("a line is one line, and is cut between characters", () => {
  expect(visibleLine(" a\n\tb ")).toBe("a b");
  expect(visibleLine("😀".repeat(10), 4)).toBe("😀😀😀…");
  expect(visibleLine("x".repeat(2_000_000)).length).toBe(300);
  expect(visibleLine(null)).toBe("");
});

test.each([
  ["Ada <ada@example.org> wrote", "Ada <ada@ex…> wrote"],
  ["mail ada.b+c@mail.example.co.uk.", "mail ada.b+c@ma…."],
  ["jörg@gärten.example", "jörg@gä…"],
  ["no address: a@b, @home, 3@4 x", "no address: a@b, @home, 3@4 x"],
])("shortened(%j) is %j", (text, expected) => expect(shortened(text)).toBe(expected));

test("a date is shown in the zone at the end of its header, however long the header is", () => {
  const date = "2025-04-22T07:12:05.000Z";
  expect(dateText({ date, dateHeader: `Tue,${" ".repeat(400_000)}(a)(b) +0200` }, false)).toContain("09:12 +0200");
  expect(dateText({ date, dateHeader: `Tue${" ".repeat(400_000)}(a)(b)` }, false)).toContain("07:12 UTC");
});

test("shortening takes time in proportion to the text", () => {
  expect(shortened(`${"a".repeat(200_000)}@${"b.".repeat(50_000)}`).length).toBeGreaterThan(200_000);
});

test.each([
  ['"Ada Lovelace" <ada@example.org>', "Ada Lovelace"],
  ["<ada@example.org>", "<ada@example.org>"],
  ["ada@example.org", "ada@example.org"],
  [null, "(no sender)"],
  ["\u202e", "(no sender)"],
])("nameOf(%j) is %j", (from, expected) => expect(nameOf(from)).toBe(expected));

const blocks = (text: string) => blocksOf(text, (callNumber) => callNumber === "2VznWE2i");

test("quotes, own words and the signature are blocks; a quoted From line of an mbox is text", () => {
  const text = "Hello,\n\n> > first\n> second\n\n>From here\nmine\n-- \nAda\n";
  const shown = blocks(text).map(({ quoteDepth, isSignature, pieces }) => [quoteDepth, isSignature, pieces.join("")]);
  expect(shown).toEqual([
    [0, false, "Hello,"],
    [2, false, "first"],
    [1, false, "second"],
    [0, false, "From here\nmine"],
    [0, true, "-- \nAda"],
  ]);
  expect(blocks(`${">".repeat(500)} deep`)[0]?.quoteDepth).toBe(5);
  expect(blocks(" \n\n")).toEqual([]);
});

test.each<[text: string, links: readonly string[]]>([
  [
    "see https://example.org/a?b=c&d. Or (http://example.org/x_(y)).",
    ["https://example.org/a?b=c&d", "http://example.org/x_(y)"],
  ],
  ["javascript:alert(1) data:text/html,x ftp://x.example //x.example https:// mailto:a@b.example", []],
  ["<https://example.org/>", ["https://example.org/"]],
  ["message 2VznWE2i, not 2VznWE2ix, 2vznWE2i or archives", ["2VznWE2i"]],
  [
    Array.from({ length: 1_000 }, () => "http://a.example").join(" "),
    Array.from({ length: 300 }, () => "http://a.example"),
  ],
])("%j has the links %j", (text, links) => {
  const pieces = blocks(text).flatMap((block) => block.pieces);
  expect(pieces.map((piece) => (typeof piece === "string" ? piece : piece.text)).join("")).toBe(text);
  const found = pieces.flatMap((piece) =>
    typeof piece === "string" ? [] : ["url" in piece ? piece.url : piece.callNumber],
  );
  expect(found).toEqual(links);
});
