/** What the reader makes of a message: text and names only, and bounded, whatever the message has. */
import { expect, test } from "vitest";
import { readAttachment, readMail } from "../src/reader/mail.js";

const mail = (...lines: readonly string[]) => Buffer.from(lines.join("\n"), "latin1");
const multipart = (parts: readonly string[]) =>
  mail('Content-Type: multipart/mixed; boundary="b"', "", ...parts.flatMap((part) => ["--b", part]), "--b--", "");

test("the text part is shown, in its charset; else the text of the HTML part", async () => {
  const plain = await readMail(mail("Content-Type: text/plain; charset=iso-8859-1", "", "Gr\xfc\xdfe"));
  expect(plain).toMatchObject({ text: "Grüße", isFromHtml: false, isCut: false, attachments: [] });
  const html = `<style>p{}</style><script>alert(1)</script><h1>Title</h1><p onclick="x()">One &lt;b&gt;</p>
    <a href="https://a.example/">A</a> <a href="javascript:alert(2)">B</a> <img src="https://t.example/1.gif" alt="pixel">
    <blockquote>quoted</blockquote><form action="https://e.example/"><input value="v"></form>`;
  const { text, isFromHtml } = await readMail(mail("Content-Type: text/html", "", html));
  expect(isFromHtml).toBe(true);
  expect(text).toMatch(/^Title\n+One <b>\n+A \[https:\/\/a\.example\/\] B\n+> quoted/);
  expect(text).not.toMatch(/alert|script|t\.example|e\.example|p\{\}/);
});

test("attachments have safe names, a size and their bytes", async () => {
  const part = (name: string, body: string) =>
    `Content-Type: image/svg+xml\nContent-Disposition: attachment; filename="${name}"\nContent-Transfer-Encoding: base64\n\n${btoa(body)}`;
  const raw = multipart([part("../../etc/passwd", "one"), part("a\u0000b\\c:d.svg", "two"), part("", "three")]);
  expect((await readMail(raw)).attachments).toEqual([
    { name: "_.._etc_passwd", type: "image/svg+xml", byteCount: 3 },
    { name: expect.stringMatching(/^a[^\0\\:]+d\.svg$/), type: "image/svg+xml", byteCount: 3 },
    { name: "attachment-3", type: "image/svg+xml", byteCount: 5 },
  ]);
  const found = await readAttachment(raw, 1);
  expect(Buffer.from(found?.content ?? []).toString()).toBe("two");
  expect(await readAttachment(raw, 3)).toBeUndefined();
  expect(await readAttachment(raw, Number.NaN)).toBeUndefined();
});

test("of 5,000 attachments 100 are listed", async () => {
  const parts = Array.from({ length: 5_000 }, (_, index) => `Content-Disposition: attachment; filename=f${index}\n\nx`);
  const { attachments, attachmentCount } = await readMail(multipart(parts));
  expect([attachments.length, attachmentCount]).toEqual([100, 5_000]);
  expect(await readAttachment(multipart(parts), 100)).toBeUndefined();
});

test("a text of 100,000 lines, or of one line of 2 MB, is cut", async () => {
  const many = await readMail(mail("", "a\n".repeat(100_000)));
  expect([many.text.length, many.isCut]).toEqual([9_999, true]);
  const long = await readMail(mail("", "a".repeat(2_000_000)));
  expect([long.text.length, long.isCut]).toEqual([262_144, true]);
});

test("a header line of 300 kB, an address list of 1 MB and one without end are no work", async () => {
  const addresses = `Cc: ${"a@b.example, ".repeat(80_000)}`;
  const { text, cc } = await readMail(mail(`X-Long: ${"x".repeat(300_000)}`, addresses, "", "text"));
  expect([text, cc.length]).toEqual(["text", 1_000]);
  await expect(readMail(mail(`Content-Type: ${"x;".repeat(1_000_000)}`))).resolves.toMatchObject({ text: "" });
});

test("what is nested too deeply can't be read, and says so", async () => {
  const deep = Array.from(
    { length: 5_000 },
    (_, depth) => `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n`,
  );
  await expect(readMail(Buffer.from(deep.join("")))).rejects.toThrow(/nesting/i);
  const html = `${"<div>".repeat(10_000)}deep`;
  expect((await readMail(mail("Content-Type: text/html", "", html))).text.length).toBeLessThan(10);
});
