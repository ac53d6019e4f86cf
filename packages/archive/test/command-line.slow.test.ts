import { spawnSync } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { expect, test } from "vitest";
import { serve, shellLine } from "../../../test/processes/command.js";
import { HELP_TEXT } from "../src/commands/import-options.js";
import { CALLNUMBER_ARCHIVE, callnumber, LETTERS, runImporter, temporaryDirectory } from "./importing.js";

test("the importer exits with 2 for a wrong command line, and with 1 for a missing source or token file", async () => {
  expect(await runImporter("a.mbox")).toMatchObject({ status: 2, summary: undefined });
  const missing = await runImporter("no-such.mbox", "--archive", "no-such.db");
  expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining("no-such.mbox") });
  const archive = join(await temporaryDirectory(), "a.db");
  const noToken = await runImporter(LETTERS, "--archive", archive, "--token-file", "no-such.token");
  expect(noToken).toMatchObject({ status: 1, stderr: expect.stringContaining("token_invalid") });
});

test("the help fits 80 columns, and a disk that is too full for the output is reported", (ctx) => {
  expect(HELP_TEXT.split("\n").filter((line) => line.length > 80)).toEqual([]);
  if (!existsSync("/dev/full")) ctx.skip("there is no /dev/full here");
  const stdio = ["ignore", openSync("/dev/full", "w"), "pipe"] as const;
  const { status, stderr } = spawnSync(process.execPath, [CALLNUMBER_ARCHIVE, "import", "--help"], {
    stdio: [...stdio],
  });
  expect([status, String(stderr)]).toEqual([1, expect.stringMatching(/^The output can't be written: ENOSPC.*\n$/)]);
});

test("the importer breaks no word on a narrow terminal", () => {
  const line = `stty cols 44; exec ${shellLine(process.execPath, CALLNUMBER_ARCHIVE, "import", "--help")}`;
  const { stdout } = spawnSync("script", ["-qefc", line, "/dev/null"], { encoding: "utf8" });
  const lines = stdout.trimEnd().split("\r\n");
  expect(lines.join(" ").split(/\s+/)).toEqual(HELP_TEXT.trimEnd().split(/\s+/));
  expect(lines.filter((text) => text.length > 44 && text.trim().includes(" "))).toEqual([]);
});

test("the importer rejects a text that is no token, and a URL with a password, before it creates the archive", async () => {
  const directory = await temporaryDirectory();
  const [archive, tokenFile] = [join(directory, "a.db"), join(directory, "two.tokens")];
  await writeFile(tokenFile, "cn_SECRET cn_SECRET\n");
  for (const [option, value, text] of [
    ["--token-file", tokenFile, "token_invalid: "],
    ["--coordinator", "http://ada:SECRET@127.0.0.1:7300", "bad_usage: coordinator must be"],
  ] as const) {
    const { status, stderr } = await runImporter(LETTERS, "--archive", archive, option, value);
    expect([status, existsSync(archive)]).toEqual([1, false]);
    expect(stderr).toContain(text);
    expect(stderr).not.toContain("SECRET");
  }
});

test("the importer sends the token of its file; without one, or with one of another role, it prints what is missing", async () => {
  const directory = await temporaryDirectory();
  const tokensFile = join(directory, "tokens");
  const createToken = async (role: string) => {
    const file = join(directory, `${role}.token`);
    const create = ["token", "create", "--tokens-file", tokensFile, "--role", role, "--namespace", "main"];
    await writeFile(file, await callnumber(...create), { mode: 0o600 });
    return file;
  };
  const [leaseFile, readFile] = [await createToken("lease"), await createToken("read")];
  const { url } = await serve("memory:", "--tokens-file", tokensFile);
  const args = [LETTERS, "--archive", join(directory, "letters.db"), "--coordinator", url, "--processes", "1"];

  const without = await runImporter(...args);
  expect(without).toMatchObject({ status: 1, stderr: expect.stringContaining("--token-file") });
  const other = await runImporter(...args, "--token-file", readFile);
  expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining("token for leasing in this namespace") });
  const done = await runImporter(...args, "--token-file", leaseFile);
  expect(done).toMatchObject({ status: 0, summary: { messages: { stored: 19, sameContent: 1 } } });

  const [listed] = JSON.parse(await callnumber("token", "list", "--tokens-file", tokensFile, "--json"));
  const leases = await callnumber("runs", "--coordinator", url, "--token-file", readFile, "--json");
  const tokenIds = (JSON.parse(leases) as LedgerEntry[]).map(({ tokenId }) => tokenId);
  expect(new Set(tokenIds)).toEqual(new Set([listed.id]));
});
