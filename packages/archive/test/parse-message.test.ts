import { expect, test } from "vitest";
import { HEADER_BYTES_MAX, parseMessage } from "../src/message/parse-message.js";

const parse = (text: string) => parseMessage(Buffer.from(text, "latin1"));

test("a field that comes 40,000 times is no work, and its first 100 count", () => {
  expect(parse("To: a\n".repeat(40_000)).to).toBe(Array(100).fill("a").join(", "));
});

test("a list that no address could have is none", () => {
  expect(["<..>", ".", "x <.>"].map((id) => parse(`List-Id: ${id}\n\n`).listId)).toEqual([null, null, null]);
});

test("the fields of a header are decoded", () => {
  const text = [
    "From: =?UTF-8?Q?Tom=C3=A1s_Rivera?= <tomas@letters.example>",
    "Subject: =?UTF-8?B?5pu45p62?= and more,",
    "  folded",
    "Date: Mon, 5 Jan 2026 10:40:37 +0100",
    "Message-ID: <boxes-2@letters.example>",
    "To: =?UTF-8?Q?Ada?= <ada@letters.example>",
    "to: Bo <bo@letters.example>",
    "In-Reply-To: Your message of Monday <boxes-1@letters.example> (Ada)",
    "References: <boxes-0@letters.example>",
    "\t<boxes-1@letters.example>",
    "List-Id: =?UTF-8?Q?B=C3=BCcher?= <Boxes.letters.example>",
    "",
    "x",
  ].join("\n");
  expect(parse(text)).toEqual({
    messageId: "<boxes-2@letters.example>",
    subject: expect.stringMatching(/^書架 and more,\s+folded$/),
    from: "Tomás Rivera <tomas@letters.example>",
    to: "Ada <ada@letters.example>, Bo <bo@letters.example>",
    inReplyTo: "<boxes-1@letters.example>",
    references: "<boxes-0@letters.example> <boxes-1@letters.example>",
    listId: "boxes.letters.example",
    date: "2026-01-05T09:40:37.000Z",
    dateHeader: "Mon, 5 Jan 2026 10:40:37 +0100",
    problem: null,
  });
});

test("header lines are read as UTF-8 or else as windows-1252", () => {
  const { subject, from } = parse("Subject: caf\xc3\xa9\nFrom: J\xfcrgen <j@letters.example>\n\nx\n");
  expect([subject, from]).toEqual(["café", "Jürgen <j@letters.example>"]);
});

test("Message-IDs that differ in anything stay different", () => {
  const ids = ["<AbC@x>", "<abc@x>", "AbC@x", "<=?utf-8?q?enc?=@x>", "<enc@x>", "<nul\0a@x>", "<nul\0b@x>"];
  const parsed = ids.map((id) => parse(`Message-ID: ${id}\n\nx\n`).messageId);
  expect(parsed).toEqual(ids);
});

test.each(["", "Message-ID:\n", "Message-ID:   \n", "Message-ID: <>\n"])(
  "a header with %j has no Message-ID, which is no problem",
  (header) => {
    expect(parse(`Subject: x\n${header}\nx\n`)).toMatchObject({ messageId: null, problem: null });
  },
);

test("the sender is that of a quoted field in a header whose lines were quoted, too", () => {
  expect(parse(">From: Ada <ada@letters.example>\nSubject: x\n\n").from).toBe("Ada <ada@letters.example>");
});

test("the sender is the header's text where it has no address", () => {
  expect(parse("From: ada at letters.example (Ada)\n\n").from).toContain("ada at letters.example");
});

test.each([
  ["a header that ends with the message", "Subject: x\n"],
  ["CRLF", "Subject: x\r\n folded\r\n\r\nx\r\n"],
  ["parts nested too deeply for any parser", `Subject: x\n${nestedParts()}`],
  ["a message inside the message", `Subject: x\nContent-Type: message/rfc822\n\nSubject: inner\n${nestedParts()}`],
])("the fields are complete for %s", (_, text) => {
  expect(parse(text)).toMatchObject({ subject: expect.stringMatching(/^x/), problem: null });
});

test.each([
  ["", "the message is empty"],
  ["\nbody only\n", "the message has no header"],
  ["this is not a header\nSubject: x\n\nx\n", 'line 1 of the header is not a header field: "this is not a header"'],
  [" leading\nSubject: x\n\nx\n", 'line 1 of the header is not a header field: " leading"'],
  ["Subject: x\n: empty\n\nx\n", 'line 2 of the header is not a header field: ": empty"'],
  ["Date: Mon, 32 Jan 2015 10:00:00 +0000\n\nx\n", `its date can't be read: "Mon, 32 Jan 2015 10:00:00 +0000"`],
  ["Date: Fri, 5 Mar 1993 14:20:00 0480\n\nx\n", `its date can't be read: "Fri, 5 Mar 1993 14:20:00 0480"`],
  ["Date: Fri, 5 Mar 93 14:20 +0480\n\nx\n", `its date can't be read: "Fri, 5 Mar 93 14:20 +0480"`],
  ["Date: Thu Jan 15 10:00:00 2015\n\nx\n", null],
  ["Date: Mon, 05 Jan 115 10:00:02 +0000\n\nx\n", `its date can't be read: "Mon, 05 Jan 115 10:00:02 +0000"`],
  ["Date: Mon, 05 Jan 99999 10:00:03 +0000\n\nx\n", `its date can't be read: "Mon, 05 Jan 99999 10:00:03 +0000"`],
  ["Date: Sat, 31 Feb 2015 10:00:00 +0000\n\nx\n", `its date can't be read: "Sat, 31 Feb 2015 10:00:00 +0000"`],
  ["Date: Sun Feb 29 10:00:00 2015\n\nx\n", `its date can't be read: "Sun Feb 29 10:00:00 2015"`],
  ["Date: Mon Feb 29 10:00:00 2016\n\nx\n", null],
  ["Date: 2015-02-31T10:00:00Z\n\nx\n", `its date can't be read: "2015-02-31T10:00:00Z"`],
  ["Date: 1 Jan 2015 10:00:00 +9900\n\nx\n", `its date can't be read: "1 Jan 2015 10:00:00 +9900"`],
  ["Date: 1 Jan 2015 10:00:00 +1400\n\nx\n", null],
  ["Date: 1 Jan 49 10:00:00 +0000\n\nx\n", `its date can't be read: "1 Jan 49 10:00:00 +0000"`],
  ["Date: 31-Jan-93 10:00:00 GMT\n\nx\n", null],
  ["Date: 03/04/05\n\nx\n", `its date can't be read: "03/04/05"`],
  ["Date: 1996/02/29\n\nx\n", null],
  [
    "X-Mozilla-Status: 0009\nSubject: x\n\nx\n",
    "it was deleted in Thunderbird, and waits for the folder to be compacted",
  ],
  ["X-Mozilla-Status: 0001\nSubject: x\n\nx\n", null],
])("the problem of %j is reported", (text, problem) => {
  expect(parse(text).problem).toBe(problem);
});

test("a header without an end is parsed up to a limit, and reported", () => {
  const text = `Subject: large\n${"X-Line: x\n".repeat(HEADER_BYTES_MAX / 10)}`;
  expect(parse(text)).toMatchObject({ subject: "large", problem: expect.stringContaining("too large") });
});

function nestedParts(): string {
  const part = (depth: number) => `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n`;
  return Array.from({ length: 300 }, (_, depth) => part(depth)).join("");
}
