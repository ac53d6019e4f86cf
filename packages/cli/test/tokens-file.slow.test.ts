/** A tokens file, and the state file of a scheme, that can't be changed now: a full disk, or another process that was killed. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { folderForTest, shell } from "../../../test/processes/command.js";
import { changeTokensFile } from "../src/commands/token.js";
import { done, jsonLines } from "./commands-for-test.js";

let file: string;

beforeEach(async () => {
  file = join(await folderForTest(), "state");
});

/** The file system makes a file, and takes no byte of it: as a full one does. */
async function expectNoRoom(words: readonly string[], message: string): Promise<void> {
  const before = await readFile(file, "utf8");
  const full = await shell(`ulimit -f 0; callnumber ${words.join(" ")}`);
  expect(full).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(message) });
  expect(await readFile(file, "utf8")).toBe(before);
  expect(await readdir(dirname(file))).toEqual(["state"]);
}

test("token revoke changes nothing on a full disk, and leaves no lock behind", async () => {
  const create = ["token", "create", "--tokens-file", file, "--role", "read", "--namespace", "main"];
  await done(...create);
  // The token that stays takes room.
  await done(...create);
  const before = await readFile(file, "utf8");
  const revoke = ["token", "revoke", jsonLines<{ id: string }>(before)[0]?.id as string, "--tokens-file", file];
  await expectNoRoom(revoke, "can't be written (EFBIG)");
  await done(...revoke);
  expect(before.endsWith(`\n${await readFile(file, "utf8")}`)).toBe(true);
});

test("schemes generate changes nothing on a full disk, and leaves no lock behind", async () => {
  const generate = ["schemes", "generate", "--scheme", "tickets", "--server", "1", "--state", file];
  await done(...generate, "--create");
  await expectNoRoom(generate, "can't be used (EFBIG)");
  await done(...generate);
});

test("a change of the tokens file that finds a lock waits, and then reports what to do", async () => {
  await writeFile(`${file}.lock`, "4711\n");
  await expect(changeTokensFile(file, () => [])).rejects.toMatchObject({
    code: "tokens_file_invalid",
    message: expect.stringMatching(/^another process changes the tokens file: .*state\.lock exists.*remove that file/),
  });
  expect(await readdir(dirname(file))).toEqual(["state.lock"]);
});
