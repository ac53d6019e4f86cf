/** Mailboxes with a fault that was seen in public reports of other programs: one row for each file of the shared mail. */
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { importHere, ODD_MAIL, rowsOf, skipWithoutSharedMail, temporaryDirectory } from "./importing.js";

let archive: Archive;
beforeEach(async () => {
  archive = new Archive(join(await temporaryDirectory(), "archive.db"));
  return () => archive.close();
});

const deleted = "it was deleted in Thunderbird";

test.for([
  ["Exported.mbox", ["Message 1", "Message 2"], ["it is the index of a mail program"]],
  ["content-length-wrong.mbox", ["Message 1", "Message 2", "Message 3"], []],
  ["eudora.mbx", ["Message 1", "Message 2", "Message 3"], []],
  ["folded-first.mbox", ["Grüße aus Wien", "Message 2"], []],
  ["imap-backup.mbox", ["Message 1", "Message 2"], []],
  ["netscape-from-dash.mbox", ["Message 1", "Message 2", "Message 3"], []],
  ["no-blank-line.mbox", ["Message 1", "Message 2", "Message 3"], ["ends in the middle of a line"]],
  ["rmail.babyl", [], ["it is Babyl"]],
  ["rnews.batch", [], ["it is a news batch of rnews"]],
  ["takeout-gmail.mbox", ["Message 1", "Message 2", "Message 3"], []],
  ["thunderbird-deleted.mbox", ["Message 1", "Message 2", "Message 3"], [deleted, deleted]],
  ["unixfrom-8bit.mbox", ["Message 1", "Message 2"], []],
  ["usenet-google.mbox", ["Post 1", "Post 2", "Post 3"], []],
  ["vi-recover.mbox", ["Message 1", null, "Message 3"], ["line 1 of the header", "the message has no header"]],
] as const)("an import of %s stores its messages, names what is wrong, and adds nothing again", async (odd, ctx) => {
  skipWithoutSharedMail(ctx);
  const [name, subjects, reasons] = odd;
  const { problems } = await importHere(archive, join(ODD_MAIL, name));
  const rows = rowsOf(archive.path);
  expect(rows.map(({ subject }) => subject)).toEqual(subjects);
  expect(problems.map(({ reason }) => reason)).toEqual(reasons.map((reason) => expect.stringContaining(reason)));
  // Refused is a file as a whole, or nothing.
  expect(problems.some(({ stored, isNoMail }) => !stored && isNoMail !== true)).toBe(subjects.length === 0);
  for (const { message_id, from_header, date } of rows.filter(({ subject }) => subject !== null)) {
    expect([message_id, from_header, date]).toEqual([
      expect.stringMatching(/^<.*@example.org>/),
      expect.stringMatching(/^Ada/),
      expect.stringMatching(/^\d{4}-/),
    ]);
  }
  expect(await importHere(archive, join(ODD_MAIL, name))).toMatchObject({ stored: 0 });
});
