/** An export can be imported again, and finds every message stored; other programs read its messages as they were. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import {
  CALLNUMBER_ARCHIVE,
  GARDEN,
  LETTERS,
  rowsOf,
  runImporter,
  sampleMaildir,
  temporaryDirectory,
} from "./importing.js";
import { importedArchive } from "./reading.js";

const BASE = "https://lists.example.org";

async function exported(archive: string, ...args: readonly string[]): Promise<Buffer> {
  const command = [CALLNUMBER_ARCHIVE, "export", "--archive", archive, ...args];
  return (await promisify(execFile)(process.execPath, command, { encoding: "buffer", maxBuffer: 2 ** 30 })).stdout;
}

test("an import of an export finds every message stored, and the export has each message's bytes and address", async () => {
  const { archive, coordinator, directory } = await importedArchive(GARDEN, LETTERS, await sampleMaildir());
  const rows = rowsOf(archive);
  const mbox = await exported(archive, "--base-url", `${BASE}/`);
  const path = join(directory, "exported.mbox");
  await writeFile(path, mbox);
  const { summary, status } = await runImporter(path, "--archive", archive, "--coordinator", coordinator.url);
  expect(status).toBe(0);
  expect(summary?.messages.stored).toBe(0);
  expect(rowsOf(archive)).toEqual(rows);
  const text = mbox.toString("latin1");
  for (const row of rows) {
    const field = `Archived-At: <${BASE}/message/${row.call_number}>`;
    const start = text.indexOf(field);
    // As a reader of mboxrd unquotes it; the field ends as the lines of the message do.
    const after = text
      .slice(start + field.length)
      .replace(/^\r?\n/, "")
      .replace(/^>(?=>*From )/gm, "");
    expect(start).toBeGreaterThan(0);
    expect(after.startsWith(Buffer.from(row.raw).toString("latin1"))).toBe(true);
  }
});

test("an export has a list, or numbers in the order given, and refuses what is not there", async () => {
  const { archive } = await importedArchive(GARDEN, ["Subject: none\n\nx"]);
  const [first, second] = rowsOf(archive).map((row) => row.call_number) as [string, string];
  const numbersIn = async (...args: readonly string[]) =>
    [...String(await exported(archive, "--base-url", BASE, ...args)).matchAll(/^Archived-At: .*\/(\w{8})>$/gm)].map(
      ([, n]) => n,
    );
  expect(await numbersIn("--list", "garden.lists.beechstreet.example")).toHaveLength(30);
  expect(await numbersIn(second, `${BASE}/message/${first}`)).toEqual([second, first]);
  expect(await numbersIn("--list", "other")).toEqual([]);
  await expect(exported(archive)).rejects.toThrow("--base-url is missing");
  await expect(exported(archive, "--base-url", "lists")).rejects.toThrow('"lists" must be a URL');
  await expect(exported(archive, "--base-url", BASE, "dxlGgaI3")).rejects.toThrow("message_missing");
  await expect(exported(archive, "--base-url", BASE, "zzzzzzzz")).rejects.toThrow("is not a call number");
  await expect(exported(join(await temporaryDirectory(), "x.db"), "--base-url", BASE)).rejects.toThrow(
    "archive_unusable",
  );
  expect(await readFile(GARDEN)).not.toContain("Archived-At");
});
