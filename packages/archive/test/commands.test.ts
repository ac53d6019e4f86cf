/** What the commands refuse, with what they say. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { command as links } from "../src/commands/links.js";
import { command as numbers } from "../src/commands/numbers.js";
import { entryLine, headerLine } from "../src/numbers/numbers-file.js";
import { ArchiveReader } from "../src/reader/archive-reader.js";
import { message, temporaryDirectory } from "./importing.js";

const ORIGIN = { storeId: "store-a", namespace: "main" };
const [FIRST, SECOND] = [1, 2].map((run) => encodeCallNumber({ version: 0, run, sequence: 0 })) as unknown as [
  string,
  string,
];
const dated = (date: string | null, byteOffset: number, list: string | null) =>
  message(`Subject: ${byteOffset}\n\n`, { date, byteOffset, list });

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory, "mail.db");
});

const failure = (code: string, text: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(text) });

function storeFirst(): void {
  using archive = new Archive(path);
  archive.store([message("x")], [FIRST], ORIGIN);
}

test("numbers export replaces an older file of the archive, but none with numbers that the archive lacks, and no other file", async () => {
  storeFirst();
  const file = join(directory, "numbers.ndjson");
  const run = () => numbers.run(["export", "--archive", path, "--to", file], {});
  await run();
  const whole = readFileSync(file, "utf8");
  expect(whole).toContain(FIRST);
  await run();
  expect(readFileSync(file, "utf8")).toBe(whole);
  for (const [text, reason] of [
    [headerLine(ORIGIN) + entryLine(SECOND, message("y")), `lacks, as ${SECOND}`],
    ["From a Mon Jan  5 10:00:00 2015\n", "its first line is not that of a file of numbers"],
  ] as const) {
    writeFileSync(file, text);
    await expect(run()).rejects.toThrow(failure("numbers_unusable", reason));
    expect(readFileSync(file, "utf8")).toBe(text);
  }
});

test("numbers export names the path that it can't write to", async () => {
  storeFirst();
  const file = join(directory, "missing", "n.ndjson");
  const run = numbers.run(["export", "--archive", path, "--to", file], {});
  await expect(run).rejects.toThrow(failure("numbers_unusable", `${file} can't be written`));
});

test.each([
  [["hyperkitty", "--url", "/hk/", "--list", "typo"], "source_unusable", "found nothing to link. Check --list"],
  [["public-inbox", "--url", "garden/"], "bad_usage", '--url "garden/" must be a path that begins with a slash'],
  [["--archive", "mail.db"], "bad_usage", "links needs a word before its options"],
  [["pipermale"], "bad_usage", 'links "pipermale" is not a command'],
])("links %j is refused", async (args, code, text) => {
  storeFirst();
  const archive = args.includes("--archive") ? [] : ["--archive", path];
  await expect(links.run([...args, ...archive], {})).rejects.toThrow(failure(code, text));
});

test.each([
  [[], "numbers needs the word export"],
  [["import"], 'numbers needs the word export, not "import"'],
  [["export", "n.ndjson"], "the file is named with --to"],
])("numbers %j is refused", async (args, text) => {
  await expect(numbers.run([...args, "--archive", path], {})).rejects.toThrow(failure("bad_usage", text));
  expect(existsSync(path)).toBe(false);
});

test("the latest messages are those of the latest dates, in whatever order they were stored; the future does not count", () => {
  {
    using archive = new Archive(path);
    const [late, early, undated] = [
      dated("2015-03-01T00:00:00.000Z", 0, "a"),
      dated("2015-01-01T00:00:00.000Z", 1, "a"),
      dated(null, 2, "a"),
    ];
    const others = [dated("2015-02-01T00:00:00.000Z", 3, "b"), dated("2999-01-01T00:00:00.000Z", 4, "b")];
    const fresh = [1, 2, 3, 4, 5].map((run) => encodeCallNumber({ version: 0, run, sequence: 0 }));
    archive.store([late, early, undated, ...others] as never, fresh, ORIGIN);
  }
  using reader = new ArchiveReader(path);
  const subjects = (list?: string) => reader.latest(3, list).map(({ subject }) => subject);
  expect(subjects()).toEqual(["0", "3", "1"]);
  expect(subjects("a")).toEqual(["0", "1", "2"]);
});
