import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeCallNumber, encodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import type { NewMessage } from "../src/archive/insert-message.js";
import { appendLines, entryLine, headerLine } from "../src/numbers/numbers-file.js";
import { appendMissing, syncNumbers } from "../src/numbers/sync-numbers.js";
import { ArchiveReader } from "../src/reader/archive-reader.js";
import { message, rowsOf, temporaryDirectory } from "./importing.js";

const ORIGIN = { storeId: "store-a", namespace: "main" };
const numberOf = (run: number, sequence = 0) => encodeCallNumber({ version: 0, run, sequence });
const LETTER = message("Message-ID: <a@b>\nSubject: s\n\ntext\n");
const OTHER = message("Message-ID: <c@d>\n\nother\n", { byteOffset: 9 });

let directory: string;
let file: string;
let problems: [number, string][];
beforeEach(async () => {
  directory = await temporaryDirectory();
  file = join(directory, "numbers.ndjson");
  problems = [];
});

/** `lastRun`: of the store, when it is asked for a number. */
function sync(archive: Archive, lastRun = 1000, origin = ORIGIN): Promise<void> {
  const takeNumber = async () => ({ callNumber: numberOf(lastRun), origin });
  return syncNumbers(archive, file, takeNumber, (line, reason) => problems.push([line, reason]));
}

/** Stores messages with runs of their own, as an import with the file does. */
function store(archive: Archive, messages: readonly NewMessage[], run: number) {
  const numbers = messages.map((_, sequence) => numberOf(run, sequence));
  return archive.store(messages, numbers, ORIGIN, undefined, (stored) =>
    appendLines(
      file,
      ORIGIN,
      stored.filter(({ isRestored }) => !isRestored).map(({ callNumber, message: one }) => entryLine(callNumber, one)),
    ),
  ).stored;
}

const archiveOf = (name: string) => new Archive(join(directory, name));

test("messages get the numbers of the file in a new archive, in whatever form they come back", async () => {
  {
    using archive = archiveOf("lost.db");
    store(archive, [LETTER, OTHER], 7);
  }
  using archive = archiveOf("new.db");
  await sync(archive);
  const status = message("Message-ID: <a@b>\r\nStatus: RO\r\nSubject: s\r\n\r\ntext\r\n", { source: "/maildir/1" });
  const fresh = message("new\n", { byteOffset: 20 });
  expect(
    store(archive, [fresh, OTHER, status], 8).map(({ callNumber, isRestored }) => [callNumber, isRestored]),
  ).toEqual([
    [numberOf(8), false],
    [numberOf(7, 1), true],
    [numberOf(7, 0), true],
  ]);
  expect(archive.known.find(LETTER, "message-id-and-body")).toBeUndefined();
  expect([archive.origin, problems]).toEqual([ORIGIN, []]);
});

test("a message gets its number by its body only where the body alone makes messages the same", async () => {
  writeFileSync(file, headerLine(ORIGIN) + entryLine(numberOf(7), LETTER));
  using archive = archiveOf("new.db");
  await sync(archive);
  const other = message("Message-ID: <a@b>\nReceived: x\nSubject: s\n\ntext\n");
  expect(archive.known.find(other, "message-id-and-bytes")).toBeUndefined();
  expect(archive.known.find(other, "message-id-and-body")?.callNumber).toBe(numberOf(7));
});

test("a cross-post gets back the number that it had in its list", async () => {
  const of = (list: string): NewMessage => ({ ...LETTER, list, isListGiven: true });
  const [one, two, three] = [of("one"), of("two"), of("three")];
  writeFileSync(file, headerLine(ORIGIN) + entryLine(numberOf(7), one) + entryLine(numberOf(6), two));
  using archive = archiveOf("new.db");
  await sync(archive);
  expect([three, two, one].map((each) => archive.known.find(each, "message-id-and-bytes")?.callNumber)).toEqual([
    undefined,
    numberOf(6),
    numberOf(7),
  ]);
  archive.store([one], [numberOf(7)], ORIGIN);
  using reader = new ArchiveReader(join(directory, "new.db"));
  expect(reader.findRenumbered(numberOf(6))).toBeUndefined();
});

test("old links come back with their message, and those that the file lacks are appended", async () => {
  writeFileSync(
    file,
    headerLine(ORIGIN) + entryLine(numberOf(7), LETTER) + entryLine(numberOf(7), LETTER, ["/old/1?a=B"]),
  );
  using archive = archiveOf("new.db");
  await sync(archive);
  store(archive, [LETTER], 8);
  using opened = archiveOf("new.db");
  appendMissing(opened, join(directory, "exported.ndjson"), ORIGIN);
  expect(readFileSync(join(directory, "exported.ndjson"), "utf8")).toBe(
    headerLine(ORIGIN) + entryLine(numberOf(7), LETTER, ["/old/1?a=B"]),
  );
  await sync(archive);
  expect(readFileSync(file, "utf8").trimEnd().split("\n")).toHaveLength(3);
});

test("the file gets the numbers of an archive that was made without it, once", async () => {
  using archive = archiveOf("old.db");
  archive.store([LETTER, OTHER], [numberOf(1), numberOf(2)], ORIGIN);
  await sync(archive);
  const text = readFileSync(file, "utf8");
  expect(text).toBe(headerLine(ORIGIN) + entryLine(numberOf(1), LETTER) + entryLine(numberOf(2), OTHER));
  await sync(archive);
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("numbers of messages that have not come back yet go with an export, and into another file", async () => {
  writeFileSync(file, headerLine(ORIGIN) + entryLine(numberOf(7), LETTER, ["/old"]) + entryLine(numberOf(8), OTHER));
  using archive = archiveOf("new.db");
  await sync(archive);
  store(archive, [OTHER], 9);
  const exported = join(directory, "exported.ndjson");
  using opened = archiveOf("new.db");
  appendMissing(opened, exported, ORIGIN);
  const entries = entryLine(numberOf(7), LETTER, ["/old"]) + entryLine(numberOf(8), OTHER);
  expect(readFileSync(exported, "utf8")).toBe(headerLine(ORIGIN) + entries);
  file = join(directory, "second.ndjson");
  await sync(opened);
  expect(readFileSync(file, "utf8")).toBe(headerLine(ORIGIN) + entries);
});

test("of two numbers of one message the last one of the file comes back: a kill has left the first without a message", async () => {
  const numbers = [numberOf(9), numberOf(7), numberOf(8)];
  const lines = numbers.map((number) => entryLine(number, LETTER));
  writeFileSync(file, headerLine(ORIGIN) + lines.join(""));
  using archive = archiveOf("new.db");
  await sync(archive);
  expect(archive.known.find(LETTER, "bytes")?.callNumber).toBe(numbers[2]);
  // Where each place has a number of its own, all of them had one.
  using numbered = new Archive(join(directory, "new.db"), { sameContent: "number" });
  expect(numbered.known.find(LETTER, "bytes")?.callNumber).toBe(numbers[0]);
});

test("a cross-post keeps its number and its list where the import is not given the list", async () => {
  const of = (list: string): NewMessage => ({ ...LETTER, list, isListGiven: true });
  writeFileSync(file, headerLine(ORIGIN) + entryLine(numberOf(7), of("one")) + entryLine(numberOf(6), of("two")));
  using archive = archiveOf("new.db");
  await sync(archive);
  const places = [0, 1, 2].map((byteOffset) => message("Message-ID: <a@b>\nSubject: s\n\ntext\n", { byteOffset }));
  expect(store(archive, places, 50).every(({ isRestored }) => isRestored)).toBe(true);
  const rows = rowsOf(join(directory, "new.db")) as unknown as readonly { call_number: string; list: string }[];
  expect(rows.map(({ call_number: number, list }) => [number, list])).toEqual([
    [numberOf(6), "two"],
    [numberOf(7), "one"],
  ]);
});

test.each(["", "{", '{"format":"callnumber-numbers","version":1,"storeId":"sto'])(
  "a file whose first line was cut, %j, is begun again",
  async (text) => {
    writeFileSync(file, text);
    using archive = archiveOf("a.db");
    await sync(archive);
    store(archive, [LETTER], 7);
    expect(readFileSync(file, "utf8")).toBe(headerLine(ORIGIN) + entryLine(numberOf(7), LETTER));
    expect(problems).toEqual([]);
  },
);

test("no file is made before there is a number", async () => {
  using archive = archiveOf("empty.db");
  await sync(archive);
  expect(existsSync(file)).toBe(false);
});

test("a file that was cut at any byte gives back what is whole, and names the rest", async () => {
  const lines = [headerLine(ORIGIN), entryLine(numberOf(7), LETTER), entryLine(numberOf(7, 1), OTHER)];
  const whole = lines.join("");
  const start = (lines[0] as string).length;
  for (let length = start; length <= whole.length; length += length < start + 4 ? 1 : 13) {
    writeFileSync(file, whole);
    truncateSync(file, length);
    problems = [];
    using archive = archiveOf(`cut-${length}.db`);
    await sync(archive);
    const text = whole.slice(0, length);
    // A line without its newline is whole, too.
    const isWhole = (index: number) => text.length >= lines.slice(0, index + 1).join("").length - 1;
    const stored = store(archive, [LETTER, OTHER], 9);
    expect(stored.map(({ isRestored }) => isRestored)).toEqual([isWhole(1), isWhole(2)]);
    expect(problems).toHaveLength(text.endsWith("\n") || isWhole(text.trimEnd().split("\n").length - 1) ? 0 : 1);
    // What is appended begins a line of its own.
    problems = [];
    using again = archiveOf(`again-${length}.db`);
    await sync(again);
    expect(store(again, [LETTER, OTHER], 10).every(({ isRestored }) => isRestored)).toBe(true);
  }
});

test("a number that the store has not leased is refused, and the archive does not learn it", async () => {
  writeFileSync(file, headerLine(ORIGIN) + entryLine(numberOf(7), LETTER) + entryLine(numberOf(40), OTHER));
  for (const lastRun of [40, 39]) {
    using archive = archiveOf("new.db");
    await expect(sync(archive, lastRun)).rejects.toThrow(
      expect.objectContaining({ code: "number_never_leased", message: expect.stringContaining(numberOf(40)) }),
    );
    expect([archive.known.find(LETTER, "bytes"), archive.origin]).toEqual([undefined, undefined]);
  }
  using archive = archiveOf("new.db");
  await sync(archive, 41);
  expect(archive.known.find(OTHER, "bytes")?.callNumber).toBe(numberOf(40));
  expect(decodeCallNumber(numberOf(40)).run).toBe(40);
});

test.each([
  ["a store of another id", { storeId: "store-b", namespace: "main" }],
  ["another namespace", { storeId: "store-a", namespace: "lists" }],
])("the numbers of %s are refused, by an archive with messages and by a new one", async (_, origin) => {
  writeFileSync(file, headerLine(origin) + entryLine(numberOf(7), LETTER));
  using used = archiveOf("used.db");
  used.store([OTHER], [numberOf(1)], ORIGIN);
  await expect(sync(used)).rejects.toThrow(
    expect.objectContaining({ code: expect.stringMatching(/store_mismatch|other_namespace/) }),
  );
  using fresh = archiveOf("fresh.db");
  await expect(sync(fresh)).rejects.toThrow(expect.objectContaining({ code: "store_mismatch" }));
  expect([used, fresh].map((archive) => archive.known.find(LETTER, "bytes"))).toEqual([undefined, undefined]);
});

test.each([
  ["a text", "Dear Ada,\n"],
  ["entries without their first line", entryLine(numberOf(7), LETTER)],
  ["a directory", undefined],
])("%s is not a file of numbers, and stays as it is", async (_, text) => {
  if (text === undefined) file = directory;
  else writeFileSync(file, text);
  using archive = archiveOf("new.db");
  await expect(sync(archive)).rejects.toThrow(expect.objectContaining({ code: "numbers_unusable" }));
  if (text !== undefined) expect(readFileSync(file, "utf8")).toBe(text);
});

test("a file of numbers that can't be written is named, before a number is taken and after", async () => {
  file = join(directory, "missing", "numbers.ndjson");
  using archive = archiveOf("new.db");
  const expected = expect.objectContaining({ code: "numbers_unusable", message: expect.stringContaining(file) });
  await expect(sync(archive)).rejects.toThrow(expected);
  expect(() => appendLines(file, ORIGIN, ["x\n"])).toThrow(expected);
});

test("lines that are no entries, and a number that another message has, are named", async () => {
  using archive = archiveOf("a.db");
  store(archive, [LETTER], 7);
  appendFileSync(file, `{"number":"dxlGgaI4"}\nx\n${entryLine(numberOf(7), OTHER).replace('"bytes"', '"bytez"')}`);
  await sync(archive);
  expect(problems.map(([line]) => line)).toEqual([3, 4, 5]);
  problems = [];
  writeFileSync(file, headerLine(ORIGIN) + entryLine(numberOf(7), OTHER));
  await sync(archive);
  expect(problems).toEqual([[0, expect.stringContaining(numberOf(7))]]);
});

test("a message that was numbered again by an import without the file is named, and found by both; one that a kill left is not named", async () => {
  {
    using archive = archiveOf("lost.db");
    store(archive, [LETTER], 7);
  }
  using archive = archiveOf("new.db");
  // Appended before a kill, and never stored.
  appendFileSync(file, entryLine(numberOf(8), OTHER));
  archive.store([LETTER, OTHER], [numberOf(9), numberOf(9, 1)], ORIGIN);
  appendFileSync(file, entryLine(numberOf(9, 1), OTHER));
  await sync(archive);
  expect(problems).toEqual([[0, expect.stringMatching(`${numberOf(9)} has the number ${numberOf(7)} in it`)]]);
  using reader = new ArchiveReader(join(directory, "new.db"));
  expect([7, 9, 6].map((run) => reader.findRenumbered(numberOf(run))?.callNumber)).toEqual([
    numberOf(9),
    undefined,
    undefined,
  ]);
  problems = [];
  await sync(archive);
  expect(problems).toEqual([]);
});

test("an entry of a usual message has less than 190 bytes", () => {
  const usual = message("Message-ID: <CAF5XHRf8Z6Zp-1qf=g@mail.example.com>\nList-Id: <garden.example.org>\n\nx\n");
  expect(entryLine(numberOf(7), usual).length).toBeLessThan(190);
});
