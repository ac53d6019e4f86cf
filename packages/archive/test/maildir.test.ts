import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { listMaildir, listSubfolders, readMaildirMessage } from "../src/sources/maildir.js";
import { openMailSources, type Problem, planRanges, type Range } from "../src/sources/source.js";
import { letter, sampleMaildir, tinyMbox } from "./importing.js";

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
  expect(sources.map(({ path }) => path)).toEqual([join(lists, "a.mbox"), join(lists, "b.mbox")]);
  const reasons: string[] = [];
  const listener = { onSourceScanned: () => {}, onProblem: ({ reason }: Problem) => void reasons.push(reason) };
  const ranges: Range[] = [];
  for await (const range of planRanges(sources, listener)) ranges.push(range);
  expect(ranges.map(({ path, items }) => [path, items.length])).toEqual([[join(lists, "b.mbox"), 2]]);
  expect(reasons).toEqual([expect.stringContaining("ENOENT")]);
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
