import { expect, test } from "vitest";
import { type Identity, relationOf, type SameRule, sameRule } from "../src/message/sameness.js";
import { message } from "./importing.js";

const HEADER = "Message-ID: <a@b>\nFrom: Ada\n";
const LETTER = `${HEADER}\nHello,\nFrom here on.\n`;
const SEPARATOR = Buffer.from("From a Mon Jan  5 10:00:00 2015\n");
const with_ = (field: string) => LETTER.replace("From: Ada\n", `${field}\nFrom: Ada\n`);

/** What a message becomes in its life, and whether it is the same one. */
const CASES: readonly [what: string, other: string | Buffer, why: SameRule | undefined][] = [
  ["nothing changed", LETTER, "separator-and-bytes"],
  ["its lines end in CRLF", LETTER.replaceAll("\n", "\r\n"), "message-id-and-bytes"],
  [
    "only its header has CRLF",
    LETTER.replace(/^[^]*?\n\n/, (head) => head.replaceAll("\n", "\r\n")),
    "message-id-and-bytes",
  ],
  ["an mbox quoted it", LETTER.replace("From here", ">From here"), "message-id-and-bytes"],
  ["it was quoted twice", LETTER.replace("From here", ">>From here"), "message-id-and-bytes"],
  ["blank lines were added", `${LETTER}\n\n`, "message-id-and-bytes"],
  ["its last newline is missing", LETTER.slice(0, -1), "message-id-and-bytes"],
  ["it was read", with_("Status: RO\nX-Status: F"), "message-id-and-bytes"],
  [
    "it was read by Thunderbird",
    with_("X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\nX-Mozilla-Keys:  "),
    "message-id-and-bytes",
  ],
  ["a folded mark was added", with_("X-Keywords: a\n\tb"), "message-id-and-bytes"],
  [
    "an IMAP server added its marks",
    with_("X-UID: 7\nX-IMAPbase: 1 2\nContent-Length: 9\nLINES: 2"),
    "message-id-and-bytes",
  ],
  ["Gmail exported it", with_("X-GM-THRID: 1\nX-Gmail-Labels: a,\n b"), "message-id-and-bytes"],
  ["this archive exported it", with_("Archived-At: <https://x.example/message/2VznWE2i>"), "message-id-and-bytes"],
  [
    "this archive exported it, folded",
    with_("Archived-At:\n <https://x.example/message/2VznWE2i>"),
    "message-id-and-bytes",
  ],
  ["another archive named it", with_("Archived-At: <https://x.example/arch/msg/abc/>"), "message-id-and-body"],
  ["it came another way", with_("Received: by x"), "message-id-and-body"],
  ["its subject was changed", with_("Subject: [list] x"), "message-id-and-body"],
  ["a mark stands in the text", LETTER.replace("Hello,", "Status: RO\nHello,"), undefined],
  ["a mark is another field's fold", with_("X-Other: a\n Status: RO"), "message-id-and-body"],
  ["a bare CR in its subject is followed by a mark", with_("Subject: I refuse\rStatus: x"), "message-id-and-body"],
  ["a footer was added", `${LETTER}-- \nlist\n`, undefined],
  ["a quoted line is no From line", LETTER.replace("From here", "> From here"), undefined],
  ["the Message-ID is another one", LETTER.replace("a@b", "A@b"), undefined],
  ["the case of a word changed", LETTER.replace("Hello", "hello"), undefined],
  ["only the body is left", LETTER.slice(HEADER.length), undefined],
  ["it is empty", "", undefined],
];

test("what is quoted behind a NUL is the same message, and a field behind a bare CR is part of the one before", () => {
  const [nul, quoted] = ["\0From a", "\0>From a"].map((text) => message(`${LETTER}${text}\n\0\n>From b\n`));
  expect(sameRule(nul as Identity, quoted as Identity)).toBe("message-id-and-bytes");
  const [one, other] = ["accept", "refuse"].map((word) => message(with_(`Subject: I ${word}\rStatus: x`)));
  expect(sameRule(one as Identity, other as Identity)).toBe("message-id-and-body");
});

test.each(CASES)("a message is the same or another one when %s", (_, other, why) => {
  const one = message(LETTER, { fromLine: SEPARATOR });
  const two = message(other, { fromLine: SEPARATOR });
  expect(sameRule(one, two)).toBe(why);
  expect(sameRule(two, one)).toBe(why);
});

test.each([
  [SEPARATOR, Buffer.from("From b\n"), "bytes"],
  [SEPARATOR, null, "bytes"],
  [null, null, "separator-and-bytes"],
] as const)("the separator decides between the first two rules: %s, %s", (fromLine, other, why) => {
  expect(sameRule(message("x", { fromLine }), message("x", { fromLine: other }))).toBe(why);
});

test("messages without a Message-ID are the same by their bytes, never by their body", () => {
  const text = LETTER.replace("Message-ID: <a@b>\n", "");
  expect(sameRule(message(text), message(`Status: O\n${text}`))).toBe("message-id-and-bytes");
  expect(sameRule(message(text), message(`Received: x\n${text}`))).toBeUndefined();
});

test("a line of the header that was quoted is the same line", () => {
  const text = `From a friend\n${LETTER}`;
  expect(sameRule(message(text), message(`>${text}`))).toBe("message-id-and-bytes");
  expect(sameRule(message(text), message(`>${text}`.replaceAll("\n", "\r\n")))).toBe("message-id-and-bytes");
});

test("a header alone is the same with and without its blank line", () => {
  expect(sameRule(message(HEADER), message(`${HEADER}\n`))).toBe("message-id-and-bytes");
  expect(sameRule(message(`${HEADER}\r\n\r\n`), message(HEADER.trimEnd()))).toBe("message-id-and-bytes");
});

test("a cross-post is a message of each list", () => {
  const on = (list: string, isListGiven = true, text = LETTER) => message(text, { list, isListGiven });
  expect(sameRule(on("one"), on("two"))).toBeUndefined();
  expect(sameRule(on("one"), on("one"))).toBe("separator-and-bytes");
  // Equal bytes of one List-Id, of which one import was given another name for the list.
  expect(sameRule(on("one"), on("one.example", false))).toBe("separator-and-bytes");
  expect(sameRule(on("one", false, with_("List-Id: one")), on("two", false, with_("List-Id: two")))).toBeUndefined();
});

test.each([
  ["redelivered", with_("Received: x"), "one", "one"],
  ["cross-posted", with_("Received: x"), "one", "two"],
  ["cross-posted", `${LETTER}-- \nlist two\n`, "one", "two"],
  ["redelivered", with_("Received: x"), null, "two"],
  ["footer-added", `${LETTER}-- \nlist\n`, "one", "one"],
  ["footer-added", `${LETTER}\n\n-- \nlist\n`.replaceAll("\n", "\r\n"), null, null],
  ["other-content", LETTER.replace("Hello", "Good bye"), "one", "two"],
  ["other-content", HEADER, null, null],
] as const)("a second message of one Message-ID is %s: %j, %s, %s", (relation, text, list, otherList) => {
  const [one, two] = [message(LETTER, { list }), message(text, { list: otherList })];
  expect(relationOf(one, two)).toBe(relation);
  expect(relationOf(two, one)).toBe(relation);
});

test("the digest of a message costs no more than its length", () => {
  const quoted = Buffer.from(`${HEADER}\n${">From x\r\n".repeat(500_000)}`);
  expect(sameRule(message(quoted), message(quoted.toString().replaceAll(/>(From x)\r/g, "$1")))).toBe(
    "message-id-and-bytes",
  );
  const marks = Buffer.from(`${"Status: RO\n".repeat(50_000)}${LETTER}`);
  expect(sameRule(message(marks), message(LETTER))).toBeDefined();
});
