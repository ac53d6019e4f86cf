import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { type NumberSource, RangeImporter } from "../src/importing/range-importer.js";
import { openMailSources, type Problem, planRanges, type Range } from "../src/sources/source.js";
import { rowsOf, temporaryDirectory, tinyMbox } from "./importing.js";

const SETTINGS = { namespace: "main", list: undefined };

let directory: string;
let archive: Archive;
beforeEach(async () => {
  directory = await temporaryDirectory();
  archive = new Archive(join(directory, "archive.db"));
  return () => archive.close();
});

/** Numbers of one run, one after the other. */
function numbersOfRun(run: number): NumberSource & { taken: number } {
  let sequence = 0;
  return {
    storeId: "store-a",
    taken: 0,
    async take(count) {
      this.taken += count;
      return Array.from({ length: count }, () => encodeCallNumber({ version: 0, run, sequence: sequence++ }));
    },
  };
}

async function rangesOf(path: string): Promise<Range[]> {
  const ranges: Range[] = [];
  const listener = { onSourceScanned: () => {}, onProblem: (problem: unknown) => expect.fail(JSON.stringify(problem)) };
  for await (const range of planRanges((await openMailSources(path)).sources, listener)) ranges.push(range);
  return ranges;
}

test("an import takes no number for a message that is already stored", async () => {
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(24));
  const numbers = numbersOfRun(1);
  const importer = new RangeImporter(archive, numbers, SETTINGS);
  for (const range of await rangesOf(mbox)) await importer.import(range);
  expect(numbers.taken).toBe(24);
  for (const range of await rangesOf(mbox)) {
    expect(await importer.import(range)).toMatchObject({ stored: [], notStored: 0 });
  }
  expect(numbers.taken).toBe(24);
  expect(rowsOf(archive.path).length).toBe(24);
});

test("an import adds only what is new when an mbox has grown", async () => {
  const mbox = join(directory, "tiny.mbox");
  const numbers = numbersOfRun(1);
  const importer = new RangeImporter(archive, numbers, SETTINGS);
  for (const count of [3, 10]) {
    await writeFile(mbox, tinyMbox(count));
    for (const range of await rangesOf(mbox)) await importer.import(range);
  }
  expect(numbers.taken).toBe(10);
  expect(rowsOf(archive.path).map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("an import takes no number for a message whose bytes are stored from another place", async () => {
  const numbers = numbersOfRun(1);
  const importer = new RangeImporter(archive, numbers, SETTINGS);
  for (const name of ["tiny.mbox", "moved.mbox"]) {
    await writeFile(join(directory, name), tinyMbox(8));
    const [range] = (await rangesOf(join(directory, name))) as [Range];
    expect(await importer.import(range)).toMatchObject({ sameContent: name === "moved.mbox" ? 8 : 0, alreadyThere: 0 });
    // The second time each place is known.
    expect(await importer.import(range)).toMatchObject({ stored: [], sameContent: 0, alreadyThere: 8 });
  }
  // A process that has no numbers yet needs none.
  const away: NumberSource = { storeId: undefined, take: () => Promise.reject(new Error("away")) };
  await writeFile(join(directory, "again.mbox"), tinyMbox(8));
  const [range] = (await rangesOf(join(directory, "again.mbox"))) as [Range];
  expect(await new RangeImporter(archive, away, SETTINGS).import(range)).toMatchObject({ stored: [], sameContent: 8 });
  expect(numbers.taken).toBe(8);
});

test("an import leaves out what another import has stored meanwhile, and uses its number for the next message", async () => {
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(24));
  const [first, second] = (await rangesOf(mbox)) as [Range, Range];
  const rival = new RangeImporter(archive, numbersOfRun(2), SETTINGS);
  const numbers = numbersOfRun(1);
  const racing: NumberSource = {
    storeId: "store-a",
    async take(count) {
      // After the look-up, before the archive is locked.
      if (numbers.taken === 0) await rival.import(first);
      return numbers.take(count);
    },
  };
  const importer = new RangeImporter(archive, racing, SETTINGS);
  expect(await importer.import(first)).toMatchObject({ stored: [], alreadyThere: 8 });
  expect(await importer.import(second)).toMatchObject({ stored: { length: 16 }, alreadyThere: 0 });
  // 8 for the first range, 8 more for the second: none is wasted.
  expect(numbers.taken).toBe(16);
  expect(rowsOf(archive.path).length).toBe(24);
});

test("an import stores nothing of a range when no number comes", async () => {
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(8));
  const [range] = (await rangesOf(mbox)) as [Range];
  const away: NumberSource = { storeId: undefined, take: () => Promise.reject(new Error("away")) };
  await expect(new RangeImporter(archive, away, SETTINGS).import(range)).rejects.toThrow("away");
  expect(rowsOf(archive.path)).toEqual([]);
  expect(archive.origin).toBeUndefined();
});

test("an import reports a file that changed after it was scanned, and stores nothing of the changed part", async () => {
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(8));
  const [range] = (await rangesOf(mbox)) as [Range];
  // The third message is cut short in its middle.
  await writeFile(mbox, tinyMbox(3).subarray(0, -8));
  const result = await new RangeImporter(archive, numbersOfRun(1), SETTINGS).import(range);
  expect(result).toMatchObject({ stored: { length: 2 }, notStored: 6 });
  expect(result.problems[0]).toMatchObject({ number: 3, stored: false, reason: expect.stringContaining("changed") });
});

test("an import stores no part of a message that has come to the place of another one", async () => {
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(1));
  const [range] = (await rangesOf(mbox)) as [Range];
  // As after a truncation: it is longer.
  await writeFile(mbox, tinyMbox(1).toString().replace("Subject: 1", "Subject: another"));
  const result = await new RangeImporter(archive, numbersOfRun(1), SETTINGS).import(range);
  expect(result).toMatchObject({
    stored: [],
    problems: [{ reason: expect.stringContaining("changed"), isTransient: true }],
  });
  expect(rowsOf(archive.path)).toEqual([]);
});

test.each([
  ["in the middle of a message", tinyMbox(3).length - 8, 2],
  ["between two messages", tinyMbox(3).length, 2],
  ["to nothing", 0, 0],
])(
  "an import reports a source that becomes shorter %s, and does not store its last message",
  async (_, length, count) => {
    const mbox = join(directory, "tiny.mbox");
    await writeFile(mbox, tinyMbox(8));
    const { sources } = await openMailSources(mbox);
    await truncate(mbox, length);
    const problems: Problem[] = [];
    const listener = { onSourceScanned: () => {}, onProblem: (problem: Problem) => problems.push(problem) };
    const importer = new RangeImporter(archive, numbersOfRun(1), SETTINGS);
    for await (const range of planRanges(sources, listener)) await importer.import(range);
    expect(rowsOf(archive.path).map(({ number }) => number)).toEqual([1, 2].slice(0, count));
    const reason = expect.stringContaining(`became shorter during the import, ${length} bytes instead of`);
    expect(problems).toEqual([
      { source: mbox, number: count + 1, byteOffset: tinyMbox(count).length, reason, stored: false },
    ]);
  },
);

test.each([
  ["gzip", "1f8b0800", "gzip: add .gz to its name"],
  ["bzip2", "425a6839314159265359", "bzip2: unpack it with bunzip2 first"],
  ["xz", "fd377a585a0000", "xz: unpack it with unxz first"],
  ["zstd", "28b52ffd04", "zstd: unpack it with unzstd first"],
  ["zip", "504b0304", "zip archive: unpack it with unzip first"],
  ["tar", `${"00".repeat(257)}7573746172`, "tar archive: unpack it with tar first"],
  ["MMDF", Buffer.from("\x01\x01\x01\x01\nSubject: x\n").toString("hex"), "with awk first"],
  ["Babyl", Buffer.from("BABYL OPTIONS:\n").toString("hex"), "unrmail of Emacs first"],
  ["rnews", Buffer.from("#! rnews 157\n").toString("hex"), "with sed first"],
  ["emlx", Buffer.from("157       \nSubject: x\n").toString("hex"), "with tail and head first"],
  ["UTF-16, little end first", "fffe46007200", "convert it to UTF-8 first"],
  ["UTF-16, big end first", "feff00460072", "convert it to UTF-8 first"],
])("an import reports what to do with a source in %s", async (_, hex, action) => {
  const mbox = join(directory, "letters.mbox");
  await writeFile(mbox, Buffer.from(hex, "hex"));
  const problems: Problem[] = [];
  const listener = { onSourceScanned: () => {}, onProblem: (problem: Problem) => problems.push(problem) };
  for await (const range of planRanges((await openMailSources(mbox)).sources, listener))
    expect.fail(JSON.stringify(range));
  expect(problems).toMatchObject([
    { number: 1, byteOffset: 0, reason: expect.stringContaining(action), stored: false },
  ]);
});

test.each([
  ["Subject: x\n\ntext\n", true],
  ["X-Mailer: y\nX-Folded: a\n b\nMESSAGE-ID : <a@b>\n\ntext\n", true],
  ["Received: by c\r\n\r\ntext\r\n", true],
  ["Note: x\n\ntext\n", false],
  ["Note: x\nDates: y\n Date: folded\n\nSubject: in the text\n", false],
  ["Once: upon a time\nwe wrote to: From, Date and Subject.\n", false],
])("an import stores a file without a separator if it has a field of a message: %j", async (text, isStored) => {
  const file = join(directory, "notes.txt");
  await writeFile(file, text);
  const [range] = (await rangesOf(file)) as [Range];
  const { stored, problems } = await new RangeImporter(archive, numbersOfRun(1), SETTINGS).import(range);
  const reason = expect.stringContaining(isStored ? "taken as one message" : "it is not an mbox");
  expect({ stored, problems }).toMatchObject({
    stored: { length: Number(isStored) },
    problems: [{ reason, stored: isStored }],
  });
});

const HEADER = "Received: b\n\tc\nSubject: 3\n";

test.each([
  ["x\nfirst ha", "the file ends in the middle of a line: "],
  ["x\nfirst half\n", null],
  [`x\n\nFrom a@b\n${HEADER}`, 'may contain another message: a header follows "From a@b" at byte 92'],
  [`\nFrom Friday\n${HEADER}`.replaceAll("\n", "\r\n"), 'a header follows "From Friday" at byte 91'],
  [`x\n\nFrom a\n${HEADER}`.repeat(11), /"From a" at byte 92, "From a" at byte \d+, .* … \(11 in all\)$/],
  [`x\nFrom a@b\n${HEADER}`, null],
  ["x\n\nFrom a@b\nSubject: 3\n\nhe wrote: x\n", null],
])("an import reports what is odd in the text of an mbox, and stores the message: %j", async (body, problem) => {
  const mbox = join(directory, "letters.mbox");
  await writeFile(mbox, `${tinyMbox(1)}From a Mon Jan  5 10:00:00 2015\nSubject: 2\n\n${body}`);
  const [range] = (await rangesOf(mbox)) as [Range];
  await new RangeImporter(archive, numbersOfRun(1), SETTINGS).import(range);
  const expected = problem === null ? null : expect.stringMatching(problem);
  expect(rowsOf(archive.path).map((row) => row.problem)).toEqual([null, expected]);
});
