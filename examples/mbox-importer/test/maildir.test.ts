import { execFileSync } from "node:child_process";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { listMaildir, listSubfolders, readMaildirMessage } from "../src/sources/maildir.js";
import { openMailSources } from "../src/sources/source.js";
import { rowsOf, runImporter, startCoordinator, temporaryDirectory } from "./importing.js";

const letter = (subject: string) => `Subject: ${subject}\n\nFrom here on, text. >From is not quoted in a maildir.\n`;

let maildir: string;
beforeEach(async () => {
  maildir = join(await temporaryDirectory(), "Maildir");
  for (const name of ["cur", "new", "tmp"]) await mkdir(join(maildir, name), { recursive: true });
  await writeFile(join(maildir, "cur", "1001.a.host:2,S"), letter("one"));
  await writeFile(join(maildir, "cur", "1002.b.host:2,"), letter("two"));
  await writeFile(join(maildir, "new", "1003.c.host"), letter("three"));
  await writeFile(join(maildir, "tmp", "1004.d.host"), letter("not delivered yet"));
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

test("the importer reads a message through a link, and does not block on a pipe among the messages", async () => {
  const directory = await temporaryDirectory();
  await writeFile(join(directory, "elsewhere"), letter("four"));
  await symlink(join(directory, "elsewhere"), join(maildir, "new", "1004.d.host"));
  execFileSync("mkfifo", [join(maildir, "new", "1005.e.host")]);
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const { status, summary } = await runImporter(
    maildir,
    "--archive",
    join(directory, "archive.db"),
    "--coordinator",
    url,
  );
  expect(status).toBe(1);
  expect(summary?.messages).toEqual({ stored: 4, alreadyThere: 0, sameContent: 0, notStored: 1 });
  expect(summary?.problems).toEqual([
    expect.objectContaining({ source: join(maildir, "1005.e.host"), reason: expect.stringContaining("is not a file") }),
  ]);
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

test("the importer gives renamed and moved messages no second number, and names the maildirs inside", async () => {
  await mkdir(join(maildir, ".Sent", "cur"), { recursive: true });
  await mkdir(join(maildir, ".Sent", "new"));
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const args = [maildir, "--archive", join(directory, "archive.db"), "--coordinator", url];
  const first = await runImporter(...args);
  expect(first.status).toBe(0);
  expect(first.summary?.messages).toEqual({ stored: 3, alreadyThere: 0, sameContent: 0, notStored: 0 });
  expect(first.summary?.sources[0]?.notices).toEqual([expect.stringContaining(".Sent")]);

  await rename(join(maildir, "cur", "1001.a.host:2,S"), join(maildir, "cur", "1001.a.host:2,RST"));
  await rename(join(maildir, "new", "1003.c.host"), join(maildir, "cur", "1003.c.host:2,S"));
  const again = await runImporter(...args);
  expect(again.summary?.messages).toEqual({ stored: 0, alreadyThere: 3, sameContent: 0, notStored: 0 });
  const rows = rowsOf(join(directory, "archive.db"));
  expect(rows.map(({ raw }) => Buffer.from(raw).toString())).toEqual([letter("one"), letter("two"), letter("three")]);
  expect(rows.map(({ from_line, subject }) => [from_line, subject])).toEqual([
    [null, "one"],
    [null, "two"],
    [null, "three"],
  ]);
});
