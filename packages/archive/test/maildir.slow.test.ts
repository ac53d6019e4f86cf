import { execFileSync } from "node:child_process";
import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { letter, rowsOf, runImporter, sampleMaildir, startCoordinator, temporaryDirectory } from "./importing.js";

let maildir: string;
beforeEach(async () => {
  maildir = await sampleMaildir();
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
