import { describe, expect, it } from "vitest";
import { unquoteFromLines } from "../src/mbox/quoting.js";
import { PARSE_BYTES_MAX, PARSE_PIECE_COUNT_MAX, parseMessage } from "../src/message/parse-message.js";

const parse = (text: string) => parseMessage(Buffer.from(text, "latin1"));

describe("the fields of a message", () => {
  it("are decoded for people", async () => {
    const text = [
      "From: =?UTF-8?Q?Tom=C3=A1s_Rivera?= <tomas@letters.example>",
      "Subject: =?UTF-8?B?5pu45p62?= and more,",
      "  folded",
      "Date: Mon, 5 Jan 2026 10:40:37 +0100",
      "Message-ID: <boxes-2@letters.example>",
      "",
      "x",
    ].join("\n");
    expect(await parse(text)).toEqual({
      messageId: "<boxes-2@letters.example>",
      subject: expect.stringMatching(/^書架 and more,\s+folded$/),
      from: "Tomás Rivera <tomas@letters.example>",
      date: "2026-01-05T09:40:37.000Z",
      dateHeader: "Mon, 5 Jan 2026 10:40:37 +0100",
      problem: null,
    });
  });

  it("are read as UTF-8 where they are, else as windows-1252, line by line", async () => {
    const { subject, from } = await parse("Subject: caf\xc3\xa9\nFrom: J\xfcrgen <j@letters.example>\n\nx\n");
    expect([subject, from]).toEqual(["café", "Jürgen <j@letters.example>"]);
  });

  it("keep Message-IDs apart that differ in anything", async () => {
    const ids = ["<AbC@x>", "<abc@x>", "AbC@x", "<=?utf-8?q?enc?=@x>", "<enc@x>", "<nul\0a@x>", "<nul\0b@x>"];
    const read = await Promise.all(ids.map(async (id) => (await parse(`Message-ID: ${id}\n\nx\n`)).messageId));
    expect(read).toEqual(ids);
  });

  it.each(["", "Message-ID:\n", "Message-ID:   \n", "Message-ID: <>\n"])(
    "take %j for a missing Message-ID",
    async (header) => {
      expect(await parse(`Subject: x\n${header}\nx\n`)).toMatchObject({ messageId: null, problem: null });
    },
  );

  it("fall back to the header's text where no address can be found in it", async () => {
    expect((await parse("From: ada at letters.example (Ada)\n\n")).from).toContain("ada at letters.example");
  });
});

describe("what is wrong with a message", () => {
  it.each([
    ["", "the message is empty"],
    ["\nbody only\n", "the message has no header"],
    ["this is not a header\nSubject: x\n\nx\n", 'line 1 of the header is no header field: "this is not a header"'],
    [" leading\nSubject: x\n\nx\n", 'line 1 of the header is no header field: " leading"'],
    ["Subject: x\n: empty\n\nx\n", 'line 2 of the header is no header field: ": empty"'],
    ["Date: Mon, 32 Jan 2015 10:00:00 +0000\n\nx\n", `its date can't be read: "Mon, 32 Jan 2015 10:00:00 +0000"`],
    ["Date: Mon, 05 Jan 115 10:00:02 +0000\n\nx\n", `its date can't be read: "Mon, 05 Jan 115 10:00:02 +0000"`],
    ["Date: Mon, 05 Jan 99999 10:00:03 +0000\n\nx\n", `its date can't be read: "Mon, 05 Jan 99999 10:00:03 +0000"`],
  ])("is named: %j", async (text, problem) => {
    expect((await parse(text)).problem).toBe(problem);
  });

  it("is nothing for a header that ends with the message, or with CRLF", async () => {
    expect(await parse("Subject: x\n")).toMatchObject({ subject: "x", problem: null });
    expect(await parse("Subject: x\r\n folded\r\n\r\nx\r\n")).toMatchObject({ problem: null });
  });

  it("is named when the parser refuses: the fields are then empty", async () => {
    const nested = Array.from(
      { length: 300 },
      (_, depth) => `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n`,
    );
    expect(await parse(`Subject: deep\n${nested.join("")}`)).toMatchObject({
      subject: null,
      problem: expect.stringContaining("it can't be parsed"),
    });
  });

  it.each([
    ["bytes", Buffer.alloc(PARSE_BYTES_MAX + 1, "x")],
    ["lines", Buffer.alloc(2 * PARSE_PIECE_COUNT_MAX + 100, "x\n")],
    ["pieces of base64", Buffer.alloc(3 * PARSE_PIECE_COUNT_MAX + 100, "aa=")],
  ])("is named when it has too many %s to be parsed whole: its header still is", async (_, large) => {
    large.write("Subject: large\n\n");
    expect(await parseMessage(large)).toMatchObject({
      subject: "large",
      problem: expect.stringContaining("too large"),
    });
  });
});

// It takes seconds of whoever parses all of it.
describe("what costs a parser more than it is long", () => {
  it("is left alone in messages within the message", async () => {
    const nested = Array.from(
      { length: 300 },
      (_, depth) => `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n`,
    );
    const inner = `Content-Type: message/rfc822\n\nSubject: inner\n${nested.join("")}`;
    const { subject, problem } = await parse(`Subject: outer\n${inner}`);
    expect([subject, problem]).toEqual(["outer", null]);
  });
});

describe("the quoting of mboxrd", () => {
  it.each([
    [">From a", "From a"],
    [">>From a\n>From b", ">From a\nFrom b"],
    ["x >From a", "x >From a"],
    [">from a\n> From b\nFrom c", ">from a\n> From b\nFrom c"],
    ["a\r\n>From b\r\n", "a\r\nFrom b\r\n"],
  ])("is undone once: %j", (quoted, text) => {
    expect(unquoteFromLines(Buffer.from(quoted)).toString()).toBe(text);
  });
});
