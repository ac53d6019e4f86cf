/** Mailboxes that gzip has compressed: their messages are those of the unpacked file. */
import { execFileSync } from "node:child_process";
import { rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { readRange } from "../src/sources/read-range.js";
import { openMailSources, planRanges, type Range } from "../src/sources/source.js";
import { importHere, rowsOf, temporaryDirectory, tinyMbox } from "./importing.js";

let mbox: string;
let packed: string;
let archive: Archive;
beforeEach(async () => {
  const directory = await temporaryDirectory();
  mbox = join(directory, "tiny.mbox");
  packed = `${mbox}.gz`;
  archive = new Archive(join(directory, "archive.db"));
  return () => archive.close();
});

const subjects = () => rowsOf(archive.path).map(({ subject }) => Number(subject));
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test("a compressed mbox has the messages of the unpacked one, and the same command after compression adds nothing", async () => {
  await writeFile(mbox, tinyMbox(200));
  expect(await importHere(archive, mbox)).toMatchObject({ stored: 200, problems: [] });
  execFileSync("gzip", [mbox]);
  expect(await importHere(archive, packed)).toMatchObject({ stored: 0, problems: [] });
  expect(archive.count()).toBe(200);

  using other = new Archive(`${archive.path}.2`);
  expect(await importHere(other, packed)).toMatchObject({ stored: 200, problems: [] });
  expect(
    rowsOf(other.path).map(({ raw, from_line, number, byte_offset, source }) => [
      raw,
      from_line,
      number,
      byte_offset,
      source,
    ]),
  ).toEqual(
    rowsOf(archive.path).map(({ raw, from_line, number, byte_offset, source }) => [
      raw,
      from_line,
      number,
      byte_offset,
      source,
    ]),
  );
  execFileSync("gunzip", [packed]);
  expect(await importHere(other, mbox)).toMatchObject({ stored: 0 });
});

test.each([
  [
    "two compressed files in one",
    Buffer.concat([gzipSync(tinyMbox(3)), gzipSync(tinyMbox(5).subarray(tinyMbox(3).length))]),
  ],
  ["NUL bytes behind the end", Buffer.concat([gzipSync(tinyMbox(5)), Buffer.alloc(512)])],
])("a compressed mbox is read to its end with %s", async (_, bytes) => {
  await writeFile(packed, bytes);
  expect(await importHere(archive, packed)).toMatchObject({ stored: 5, problems: [] });
});

test("a compressed mbox that is cut gives the messages that are whole, and the rest is named", async () => {
  const [bytes, whole] = [gzipSync(tinyMbox(2000)), tinyMbox(2000)];
  for (const length of [5, 1000, bytes.length - 4000, bytes.length - 9, bytes.length - 1]) {
    await writeFile(packed, bytes.subarray(0, length));
    const { problems } = await importHere(archive, packed);
    const reason = expect.stringMatching(/^the source can't be read on from here: its gzip data is cut/);
    const count = archive.count();
    const byteOffset = tinyMbox(count).length;
    expect(problems).toEqual([{ source: packed, number: count + 1, byteOffset, reason, stored: false }]);
    expect(subjects()).toEqual(upTo(count));
    // As many as any program gets out of it.
    const most = execFileSync("sh", ["-c", 'gzip -dc < "$1" 2> /dev/null || true', "sh", packed]);
    expect(most.length - byteOffset).toBeLessThanOrEqual(2 * (tinyMbox(2000).length - tinyMbox(1999).length));
    expect(whole.subarray(0, most.length).equals(most)).toBe(true);
  }
  expect(archive.count()).toBe(1999);
  await writeFile(packed, bytes);
  expect(await importHere(archive, packed)).toMatchObject({ stored: 1, problems: [] });
});

test("a compressed mbox that is damaged gives no message, since any of them may be wrong, and says what to do", async () => {
  const bytes = gzipSync(tinyMbox(2000));
  const damages = [bytes.length >> 1, bytes.length - 6].map((at) => Buffer.from(bytes).fill(0xa5, at, at + 2));
  for (const damaged of [
    ...damages,
    Buffer.from("no gzip at all, for 20 bytes\n"),
    Buffer.concat([bytes, Buffer.from("more")]),
  ]) {
    await writeFile(packed, damaged);
    const reason = expect.stringMatching(/gzip data is damaged \(.*Import a good copy, or what gzip -dc makes of it$/);
    expect((await importHere(archive, packed)).problems).toEqual([
      { source: packed, number: 1, byteOffset: 0, reason, stored: false },
    ]);
    expect(archive.count()).toBe(0);
  }
});

test("the ranges of a compressed mbox are read forwards, by one reading of the file, and from its start for an earlier one", async () => {
  await writeFile(packed, gzipSync(tinyMbox(2000)));
  const ranges: Range[] = [];
  const listener = { onSourceScanned: () => {}, onProblem: () => expect.fail() };
  for await (const range of planRanges((await openMailSources(packed)).sources, listener)) ranges.push(range);
  expect(ranges.length).toBeGreaterThan(9);
  const read = async (range: Range) => {
    const messages = [];
    for (const message of await readRange(range))
      messages.push("raw" in message ? message.raw.toString() : message.reason);
    return messages;
  };
  const texts = [await read(ranges[0] as Range)];
  await rename(packed, `${packed}.away`);
  // Only a file that is still open can be read: every other range, as one of two processes does it.
  for (const range of ranges.slice(1).filter((_, index) => index % 2 === 1)) texts.push(await read(range));
  expect(texts.flat().filter((text) => !text.startsWith("Subject: "))).toEqual([]);
  expect(texts.flat().at(-1)).toMatch(/^Subject: (?:1[5-9]|20)\d\d\n/);
  expect(await read(ranges[1] as Range)).toEqual(Array(16).fill(expect.stringContaining("it can't be read: ENOENT")));
  await rename(`${packed}.away`, packed);
  expect((await read(ranges[1] as Range))[0]).toMatch(/^Subject: 9\n/);
  await rm(packed);
  await writeFile(packed, gzipSync(tinyMbox(1)));
  await truncate(packed, 20);
  expect((await read(ranges[0] as Range))[0]).toBe("the file changed while it was imported");
});
