import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { decodeCallNumber, encodeCallNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { startProgramOnTerminal } from "../../../test/processes/command.js";
import { ownServerUnavailable, startRedisServer } from "../../../test/redis/test-redis.js";
import { Archive } from "../src/archive/archive.js";
import {
  CALLNUMBER_ARCHIVE,
  callnumber,
  DEMO,
  demo,
  LETTERS,
  MESSAGE_COUNTS,
  message,
  placesOf,
  rowsOf,
  runImporter,
  skipWithoutSharedMail,
  startCoordinator,
  temporaryDirectory,
  tinyMbox,
} from "./importing.js";

const SOURCES = Object.keys(MESSAGE_COUNTS);
const TOTAL = Object.values(MESSAGE_COUNTS).reduce((sum, count) => sum + count, 0);
/** 49 are equal to another one to the byte, with the separator: 35 inside notmuch-and-lkml.mbox alone. 16 others have CRLF in one of two files. */
const COPY_COUNT = 65;

test("an import gives every message of all archives a number of its own, and stores exactly the bytes of the files", async (ctx) => {
  skipWithoutSharedMail(ctx);
  const archive = await importAll(`sqlite:${join(await temporaryDirectory(), "store.db")}`);
  const places = placesOf(archive);
  for (const path of SOURCES) {
    const bytes = await readFile(path);
    let position: number | undefined = 0;
    for (const { byte_offset, from_line, raw, why } of places.filter(({ source }) => source === path)) {
      // Between the messages there are only the blank lines of the format.
      if (position !== undefined) expect(bytes.toString("latin1", position, byte_offset)).toMatch(/^(?:\r?\n)*$/);
      position = undefined;
      if (why !== null && why !== "separator-and-bytes") continue;
      const stored = Buffer.concat([from_line ?? Buffer.alloc(0), raw]);
      expect(bytes.subarray(byte_offset, byte_offset + stored.length).equals(stored)).toBe(true);
      position = byte_offset + stored.length;
    }
    if (position !== undefined) expect(bytes.toString("latin1", position)).toMatch(/^(?:\r?\n)?$/);
  }
});

test("an import does the same with a store on Redis", async (ctx) => {
  skipWithoutSharedMail(ctx);
  const reason = ownServerUnavailable();
  if (reason !== undefined) ctx.skip(reason);
  const { storeUrl } = await startRedisServer();
  await callnumber("init", "--store", storeUrl);
  await importAll(storeUrl);
});

/** Imports everything, then everything again. Returns the path of the archive. */
async function importAll(storeUrl: string): Promise<string> {
  const { url } = await startCoordinator(storeUrl);
  const archive = join(await temporaryDirectory(), "archive.db");
  const args = [...SOURCES, "--archive", archive, "--coordinator", url, "--processes", "4"];
  const first = await runImporter(...args);
  expect(first.status).toBe(0);
  expect(first.summary).toMatchObject({
    messages: { stored: TOTAL - COPY_COUNT, alreadyThere: 0, sameContent: COPY_COUNT, notStored: 0 },
    processes: 4,
    archiveHolds: TOTAL - COPY_COUNT,
  });
  const again = await runImporter(...args);
  expect(again.status).toBe(0);
  expect(again.summary?.messages).toEqual({ stored: 0, alreadyThere: TOTAL, sameContent: 0, notStored: 0 });
  expect(again.summary?.runsLeased).toBe(0);

  const callNumbers = rowsOf(archive).map(({ call_number }) => call_number);
  expect(new Set(callNumbers).size).toBe(TOTAL - COPY_COUNT);
  expect(new Set(callNumbers.map((text) => decodeCallNumber(text).run)).size).toBeLessThanOrEqual(
    first.summary?.runsLeased ?? 0,
  );
  // No number is above what its process reported to the coordinator.
  const sample = callNumbers.filter((_, index) => index % 97 === 0);
  const answers = JSON.parse(await callnumber("inspect", ...sample, "--coordinator", url, "--json"));
  expect(answers.map(({ verdict }: { verdict: string }) => verdict)).toEqual(sample.map(() => "reported"));
  return archive;
}

test("an import reports each odd message by source, number and byte, and imports what is good", async () => {
  const { directory, url } = await coordinator();
  const [mbox, picture] = [join(directory, "odd.mbox"), join(directory, "picture.mbox")];
  const missing = join(directory, "caf\ufffd.mbox");
  const from = "From a Mon Jan  5 10:00:00 2015\n";
  await writeFile(mbox, `junk before\n\n${from}Subject: fine\n\nx\n\n${from}not a header\n\nx\n\n${from}`);
  await writeFile(picture, Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
  const args = [missing, mbox, picture, "--archive", join(directory, "archive.db"), "--coordinator", url];
  const { status, summary, stderr } = await runImporter(...args);
  expect(stderr).toContain("its name is not UTF-8");
  expect(status).toBe(1);
  expect(summary?.outcome).toBe("complete");
  expect(summary?.messages).toEqual({ stored: 4, alreadyThere: 0, sameContent: 0, notStored: 2 });
  const place = (source: string, number: number, byteOffset: number) => ({ source, number, byteOffset });
  const because = (text: string, stored = true) => ({ reason: expect.stringContaining(text), stored });
  expect(new Set(summary?.problems)).toEqual(
    new Set([
      { ...place(mbox, 0, 0), ...because("before the first separator") },
      { ...place(mbox, 2, 63), ...because("line 1 of the header") },
      { ...place(mbox, 3, 112), ...because("the message is empty") },
      { ...place(picture, 1, 0), ...because("it is not an mbox", false) },
      { ...place(missing, 0, 0), ...because("can't be opened", false) },
    ]),
  );
});

test("a rewritten mbox gets no number twice, unless the answer on the terminal is yes", async () => {
  const { directory, url } = await coordinator();
  const [mbox, archive] = [join(directory, "tiny.mbox"), join(directory, "archive.db")];
  const args = [mbox, "--archive", archive, "--coordinator", url, "--same-content"];
  await writeFile(mbox, tinyMbox(20));
  expect((await runImporter(...args, "skip")).status).toBe(0);
  const before = rowsOf(archive);
  // As a mail program does that deletes the third one.
  const offsets = before.map(({ byte_offset }) => byte_offset) as [number, number, number, number];
  await writeFile(mbox, Buffer.concat([tinyMbox(20).subarray(0, offsets[2]), tinyMbox(20).subarray(offsets[3])]));

  const terminal = startProgramOnTerminal(80, CALLNUMBER_ARCHIVE, "import", ...args, "ask");
  await expect.poll(() => terminal.output().stdout).toMatch(/Number the skipped 17 messages again\? \[y\/N\]/);
  expect(rowsOf(archive)).toEqual(before);
  terminal.type("y\r");
  expect(await terminal.ended()).toBe(0);
  const after = rowsOf(archive);
  expect(after).toEqual(expect.arrayContaining(before));
  expect(after.length).toBe(20 + 17);

  const noTerminal = await promisify(execFile)(process.execPath, [CALLNUMBER_ARCHIVE, "import", ...args, "ask"]).catch(
    (error) => error,
  );
  expect(noTerminal).toMatchObject({ code: 2, stderr: expect.stringContaining("needs a terminal") });
});

test("two concurrent imports of one file store nothing twice", async () => {
  const { directory, url } = await coordinator();
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(3000));
  const args = [mbox, "--archive", join(directory, "archive.db"), "--coordinator", url, "--processes", "2"];
  const both = await Promise.all([runImporter(...args), runImporter(...args)]);
  expect(both.map(({ status }) => status)).toEqual([0, 0]);
  expect(both.reduce((sum, { summary }) => sum + (summary?.messages.stored ?? 0), 0)).toBe(3000);
  expect(rowsOf(join(directory, "archive.db")).length).toBe(3000);
});

test("an import stops at a call number that is already in the archive, and overwrites nothing", async () => {
  const { directory, url } = await coordinator();
  const status = await fetch(`${url}/v1/namespaces/main/status`);
  const { storeId } = (await status.json()) as { storeId: string };
  const path = join(directory, "archive.db");
  const forged = encodeCallNumber({ version: 0, run: 1, sequence: 5 });
  {
    using archive = new Archive(path);
    archive.store([message("the first", { source: "elsewhere" })], [forged], { storeId, namespace: "main" });
  }
  const before = rowsOf(path);
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(8));
  const failed = await runImporter(mbox, "--archive", path, "--coordinator", url);
  expect(failed).toMatchObject({ status: 3, stderr: expect.stringContaining(forged) });
  expect(failed.summary).toMatchObject({ outcome: "failed", error: { code: "repeated_call_number" } });
  expect(rowsOf(path)).toEqual(before);
});

test("an import rejects a store or namespace that the archive is not pinned to, before the first number", async () => {
  const { directory, url } = await coordinator();
  const { url: otherUrl } = await startCoordinator(`sqlite:${join(directory, "other.db")}`);
  const path = join(directory, "archive.db");
  const [one, other] = [join(directory, "one.mbox"), join(directory, "other.mbox")];
  await writeFile(one, tinyMbox(10));
  await writeFile(other, tinyMbox(20));
  const archive = ["--archive", path, "--coordinator"];
  expect((await runImporter(one, ...archive, url)).status).toBe(0);

  const otherStore = await runImporter(other, ...archive, otherUrl);
  expect(otherStore).toMatchObject({ status: 3, stderr: expect.stringContaining("--coordinator") });
  expect(otherStore.summary?.error?.code).toBe("store_mismatch");
  const otherNamespace = await runImporter(other, ...archive, url, "--namespace", "letters");
  expect(otherNamespace).toMatchObject({ status: 3, stderr: expect.stringContaining("other_namespace") });
  expect(rowsOf(path).length).toBe(10);

  // Nothing in an archive acts on a terminal.
  using database = new DatabaseSync(path);
  database.prepare("update facts set value = ? where name = 'namespace'").run("x\u001b[2J\u202egpj");
  const { stderr } = await runImporter(other, ...archive, url);
  expect(stderr).toContain("Pass --namespace x [2J gpj, or another --archive.");
  expect(stderr).not.toMatch(/[^\P{C}\n]/u);
});

async function coordinator(): Promise<{ readonly directory: string; readonly url: string }> {
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  return { directory, url };
}

test("the demo removes its files also when its output is not read to the end", async () => {
  const directory = await temporaryDirectory();
  const child = spawn(process.execPath, [DEMO, LETTERS], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, TMPDIR: directory },
  });
  child.stdout.once("data", () => child.stdout.destroy());
  await once(child, "exit");
  expect(await readdir(directory)).toEqual([]);
});

test("the demo imports each commit with --history, and keeps its files with --keep", async (ctx) => {
  const { stdout: outside } = await promisify(execFile)("git", [
    "-C",
    import.meta.dirname,
    "rev-parse",
    "--show-cdup",
  ]).catch(() => ({ stdout: "there is no git history here" }));
  if (!/^[./]*\n$/.test(outside)) ctx.skip(outside);
  const directory = await temporaryDirectory();
  const output = await demo(directory, "--history", "--keep");
  const [kept] = await readdir(directory);
  expect(output).toContain(`Kept: ${directory}/${kept}`);
  expect(await readdir(`${directory}/${kept}`)).toEqual(expect.arrayContaining(["archive.db", "store.db"]));
  const revList = ["-C", import.meta.dirname, "rev-list", "--count", "--no-merges", "HEAD"];
  const { stdout } = await promisify(execFile)("git", revList);
  expect(output).toMatch(new RegExp(`history\\.mbox: ${Number(stdout).toLocaleString("en-US")} message`));
});
