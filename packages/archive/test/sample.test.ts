/** The mailing list of the demo is real mail: other programs can read all of it, in its threads, languages, charsets and encodings. */
import { readFileSync } from "node:fs";
import PostalMime, { type Email } from "postal-mime";
import { expect, test } from "vitest";
import { parseMessage } from "../src/message/parse-message.js";
import { GARDEN } from "./importing.js";

const SEPARATOR = /^From \S+ [A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\n/gm;
const texts = readFileSync(GARDEN, "latin1").split(SEPARATOR).slice(1);
const messages = texts.map((text) => Buffer.from(text, "latin1"));
const emails: readonly Email[] = await Promise.all(messages.map((message) => PostalMime.parse(message)));

function allOf(pattern: RegExp): readonly string[] {
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, value = ""]) => value.toLowerCase()))),
  ].sort();
}

test("the sample has 30 messages, and the importer finds no problem in them", async () => {
  expect(messages).toHaveLength(30);
  for (const message of messages) {
    const { problem, date, from, messageId } = await parseMessage(message);
    expect({ problem, date, from, messageId }).toEqual({
      problem: null,
      date: expect.stringMatching(/^2025-0[4-6]-/),
      from: expect.stringMatching(/^[^<>=?]+ <\S+\.example>$/),
      messageId: expect.stringMatching(/^<\S+\.example>$/),
    });
  }
});

test("each reply of the sample is to a message before it, and names the whole thread", () => {
  const references = new Map<string, string>();
  for (const { messageId = "", inReplyTo, references: named = "" } of emails) {
    expect(references.has(messageId)).toBe(false);
    const thread = inReplyTo === undefined ? "" : `${references.get(inReplyTo)} ${inReplyTo}`.trim();
    expect(named.split(/\s+/).join(" ")).toBe(thread);
    references.set(messageId, thread);
  }
  expect(emails.filter(({ inReplyTo }) => inReplyTo === undefined)).toHaveLength(7);
});

test("the sample has three languages, five charsets and four encodings, and every text is readable", () => {
  expect(allOf(/^Content-Language: (\w\w)$/gm)).toEqual(["de", "en", "es"]);
  const charsets = allOf(/^Content-Type: text\/plain; charset="([^"]+)"/gm);
  expect(charsets).toEqual(["iso-8859-1", "iso-8859-15", "us-ascii", "utf-8", "windows-1252"]);
  expect(allOf(/^Content-Transfer-Encoding: (\S+)$/gm)).toEqual(["7bit", "8bit", "base64", "quoted-printable"]);
  for (const { text = "", subject = "" } of emails) expect(text + subject).not.toMatch(/\ufffd|=\?|Ã|=[0-9A-F]{2}/);
  const [, , tomatoes, pepper] = emails;
  expect(tomatoes?.text).toContain("Ochsenherz, Grüne Zebra");
  expect(pepper?.text).toContain("¿Alguien\ntiene albahaca?");
});

test("the attachments of the sample have their names and bytes", () => {
  const attachments = emails.flatMap((email) => email.attachments);
  const beginnings = attachments.map(({ filename, content }) => {
    return [filename, Buffer.from(content as ArrayBuffer).toString("latin1", 1, 5)];
  });
  expect(beginnings).toEqual([
    ["seed-swap.ics", "EGIN"],
    ["Gießplan.csv", "ag;D"],
    ["kale.png", "PNG\r"],
    ["offer-fence.pdf", "PDF-"],
    ["Beschlüsse.txt", "esch"],
  ]);
});
