import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { listMaildir, listSubfolders, readMaildirMessage } from "../src/sources/maildir.js";
import { openMailSources, type Problem, planRanges, type Range } from "../src/sources/source.js";
import { importHere, letter, rowsOf, sampleMaildir, tinyMbox } from "./importing.js";

let maildir: string;
beforeEach(async () => {
  maildir = await sampleMaildir();
});

test("a message of a maildir is found when its flags changed after it was listed", async () => {
  const messages = await listMaildir(maildir);
  await rename(join(maildir, "new", "1003.c.host"), join(maildir, "cur", "1003.c.host:2,RS"));
  const texts = await Promise.all(messages.map((message) => readMaildirMessage(maildir, message)));
  expect(texts.map(String)).toEqual([letter("one"), letter("two"), letter("three")]);
});

test("a message of a maildir that is gone is reported", async () => {
  const messages = await listMaildir(maildir);
  await rm(join(maildir, "new", "1003.c.host"));
  await expect(readMaildirMessage(maildir, messages[2] as (typeof messages)[0])).rejects.toThrow("ENOENT");
});

test("messages of a maildir whose names are not UTF-8 are read, also when moved, and no two have one name", async (ctx) => {
  if (process.platform !== "linux") ctx.skip("names are UTF-8 on this system");
  const inNew = (name: string) => Buffer.from(`${maildir}/new/${name}`, "latin1");
  const names = ["1004.\xff", "1004.\xfe", "1004.\\xff\xfe", "1004.\xff\xfe", "1004.\xc3\xa9"];
  for (const name of names) await writeFile(inNew(name), letter(name));
  // As they come to the process that reads them.
  const listed = JSON.parse(JSON.stringify(await listMaildir(maildir))) as Awaited<ReturnType<typeof listMaildir>>;
  const messages = listed.filter(({ unique }) => unique.startsWith("1004"));
  const texts = ["1004.\\\\xff\\xfe", "1004.\\xfe", "1004.\\xff", "1004.\\xff\\xfe", "1004.é"];
  expect(messages.map(({ unique }) => unique)).toEqual(texts);
  await rename(inNew("1004.\xff"), Buffer.from(`${maildir}/cur/1004.\xff:2,S`, "latin1"));
  const read = await Promise.all(messages.map((message) => readMaildirMessage(maildir, message)));
  expect(read.map(String)).toEqual([2, 1, 0, 3, 4].map((index) => letter(names[index] as string)));
  const folder = Buffer.from(`${maildir}/.Sent\xff`, "latin1");
  await mkdir(join(maildir, ".Sent", "cur"), { recursive: true });
  await mkdir(join(maildir, ".Sent", "new"));
  await rename(join(maildir, ".Sent"), folder);
  const folders = await listSubfolders(maildir);
  // What removes the files of a test reads names of directories as text.
  await rename(folder, join(maildir, ".Sent"));
  expect(folders).toEqual([".Sent\\xff"]);
});

test("a directory that is no maildir is a source for each mbox in it, and what can't be read there is reported", async () => {
  const lists = join(maildir, "..", "lists");
  await mkdir(join(lists, "more"), { recursive: true });
  await symlink("gone", join(lists, "a.mbox"));
  for (const name of ["b.mbox", ".c.mbox", "b.mbox.lock"]) await writeFile(join(lists, name), tinyMbox(2));
  const { sources } = await openMailSources(lists);
  expect(sources.map(({ path }) => path)).toEqual([join(lists, "a.mbox"), join(lists, "b.mbox"), lists]);
  const reasons: string[] = [];
  const listener = { onSourceScanned: () => {}, onProblem: ({ reason }: Problem) => void reasons.push(reason) };
  const ranges: Range[] = [];
  for await (const range of planRanges(sources, listener)) ranges.push(range);
  expect(ranges.map(({ path, items }) => [path, items.length])).toEqual([[join(lists, "b.mbox"), 2]]);
  expect(reasons).toEqual([expect.stringContaining("ENOENT"), expect.stringMatching(/^directories inside .*: more$/)]);
});

test("a directory with nothing but directories is rejected, with the names of some", async () => {
  const lists = join(maildir, "..", "lists");
  for (const name of ["a", "b", "c", "d", "e", "f"]) await mkdir(join(lists, name), { recursive: true });
  await expect(openMailSources(lists)).rejects.toThrow(
    "Pass those inside that have mail: a, b, c, d, e, … (6 in all).",
  );
});

test("a directory of .eml files or of MH is one source, in the order of the numbers, and a number may be an mbox", async () => {
  const folder = join(maildir, "..", "folder");
  await mkdir(folder);
  for (const name of ["10", "9", "b.EML", "a.eml"]) await writeFile(join(folder, name), `Subject: ${name}\n\nx`);
  await writeFile(join(folder, "2005"), tinyMbox(2));
  await writeFile(join(folder, "11"), "no message\n");
  for (const name of [".mh_sequences", ",3", "x.msf"]) await writeFile(join(folder, name), "x");
  using archive = new Archive(join(maildir, "archive.db"));
  const { stored, problems, scanned } = await importHere(archive, folder);
  expect(stored).toBe(6);
  expect(scanned.map(({ path, messages, notices }) => [path, messages, notices])).toEqual([
    [folder, 5, ["each file is a message, as in MH, or .eml"]],
    [join(folder, "2005"), 2, []],
  ]);
  const bySource = new Map(rowsOf(archive.path).map((row) => [row.source, row]));
  for (const [name, number] of [
    ["9", 1],
    ["10", 2],
    ["a.eml", 4],
    ["b.EML", 5],
  ] as const) {
    expect(bySource.get(join(folder, name))).toMatchObject({ number, subject: name, problem: null });
  }
  const reasons = problems.map(({ source, reason, isNoMail }) => [basename(source), reason, isNoMail]);
  expect(reasons).toEqual([
    [",3", expect.stringContaining("deleted in MH"), true],
    ["x.msf", expect.stringContaining("the index of a mail program"), true],
    ["11", "it does not begin like a message", undefined],
  ]);
  // A file of its own has the same key.
  expect(await importHere(archive, join(folder, "a.eml"))).toMatchObject({ stored: 0 });
  await writeFile(join(folder, "c.eml"), "Subject: c\n\nx");
  expect(await importHere(archive, join(folder, "c.eml"))).toMatchObject({ stored: 1, problems: [] });
});

test("the importer rejects a directory that is not a maildir, and a missing one", async () => {
  await rm(join(maildir, "new"), { recursive: true });
  await expect(openMailSources(maildir)).rejects.toThrow(
    expect.objectContaining({ code: "source_unusable", message: expect.stringContaining("not a maildir") }),
  );
  await expect(openMailSources(join(maildir, "gone"))).rejects.toThrow(
    expect.objectContaining({ code: "source_unusable" }),
  );
});
