/** `import -`: one message on standard input, as a mail program delivers it. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, test } from "vitest";
import { shellLine } from "../../../test/processes/command.js";
import { CALLNUMBER_ARCHIVE, rowsOf, startCoordinator, temporaryDirectory } from "./importing.js";

const LETTER = "Subject: x\n\nFrom here on, text.\n";
const FROM_ = "From ada@letters.example Mon Jan  5 09:02:11 2026\n";

let directory: string;
let archive: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  archive = join(directory, "archive.db");
});

async function deliver(bytes: string, ...options: readonly string[]) {
  const child = spawn(process.execPath, [CALLNUMBER_ARCHIVE, "import", "-", "--archive", archive, ...options]);
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  child.stdin.end(bytes);
  const status = await new Promise((resolve) => child.once("close", resolve));
  return [status, ...(await output)];
}

test("a message on standard input is stored once, without a word, whatever its separator is", async () => {
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const coordinator = ["--coordinator", url];
  for (const bytes of [FROM_ + LETTER, LETTER, FROM_.replace("09", "10") + LETTER]) {
    expect(await deliver(bytes, ...coordinator)).toEqual([0, "", ""]);
  }
  const [row, ...others] = rowsOf(archive);
  expect(others).toEqual([]);
  expect(row).toMatchObject({ source: "-", byte_offset: 0, subject: "x", problem: null });
  expect([Buffer.from(row?.from_line ?? []).toString(), Buffer.from(row?.raw ?? []).toString()]).toEqual([
    FROM_,
    LETTER,
  ]);
  expect(await deliver("", ...coordinator)).toEqual([1, "", "callnumber-archive: it is empty\n"]);
  // Larger than what a pipe holds.
  expect(await deliver(`${LETTER}${"x".repeat(3_000_000)}\n`, ...coordinator)).toEqual([0, "", ""]);
  expect(rowsOf(archive).map(({ raw }) => raw.length)).toEqual(expect.arrayContaining([LETTER.length + 3_000_001]));
});

test("many messages on standard input share a run, also those of processes that start at once", async () => {
  const { url, stop } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const options = ["--coordinator", url];
  expect(await deliver("Subject: first\n\nx\n", ...options)).toEqual([0, "", ""]);
  const later = await Promise.all([1, 2, 3, 4].map((n) => deliver(`Subject: ${n}\n\n${n}\n`, ...options)));
  expect(later).toEqual(later.map(() => [0, "", ""]));
  const numbers = rowsOf(archive).map(({ call_number }) => decodeCallNumber(String(call_number)));
  expect(numbers).toHaveLength(5);
  expect(new Set(numbers.map(({ run }) => run)).size).toBe(1);
  await stop();
  // Another store's coordinator, at another address: refused before it generates a number.
  const other = await startCoordinator(`sqlite:${join(directory, "other.db")}`);
  const refused = await deliver("Subject: 6\n\n6\n", "--coordinator", other.url);
  expect(refused).toEqual([75, "", expect.stringContaining("store_mismatch")]);
  expect(rowsOf(archive)).toHaveLength(5);
});

test("a message on standard input makes the mail program try again when it can't be stored now", async () => {
  const coordinator = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  await coordinator.stop();
  const away = await deliver(LETTER, "--coordinator", coordinator.url, "--wait", "1");
  expect(away).toEqual([75, "", expect.stringContaining("coordinator_unreachable")]);
  expect(await deliver(LETTER, "--wait", "none")).toEqual([75, "", expect.stringContaining('--wait "none"')]);
  await mkdir(`${archive}.d`);
  const noArchive = await deliver(LETTER, "--coordinator", coordinator.url, "--archive", `${archive}.d`);
  expect(noArchive).toEqual([75, "", expect.stringContaining("archive_unusable")]);
});

test("procmail keeps a message that can't be stored, and gives it away when it is stored", async (ctx) => {
  if (!existsSync("/usr/bin/procmail")) ctx.skip("procmail is not installed");
  const { url, stop } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const rules = join(directory, "procmailrc");
  const procmail = async (input: string, ...options: readonly string[]) => {
    const args = ["import", "-", "--archive", archive, "--coordinator", url, ...options];
    const program = shellLine(process.execPath, CALLNUMBER_ARCHIVE, ...args);
    // A program that fails ends in EXITCODE; HOST ends procmail without a delivery.
    const recipe = [`MAILDIR=${directory}`, "DEFAULT=default", ":0 w", `| ${program}`, "EXITCODE=75", "HOST"];
    await writeFile(rules, `${recipe.join("\n")}\n`);
    return spawnSync("/usr/bin/procmail", [rules], { input }).status;
  };
  expect(await procmail(FROM_ + LETTER)).toBe(0);
  expect(rowsOf(archive)).toHaveLength(1);
  await stop();
  expect(await procmail(`${FROM_}${LETTER}more\n`, "--wait", "1")).toBe(75);
  expect(rowsOf(archive)).toHaveLength(1);
  expect(existsSync(join(directory, "default"))).toBe(false);
});
