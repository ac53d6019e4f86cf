/** A change of the tokens file that another process has begun and not ended. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { changeTokensFile } from "../src/change-tokens-file.js";

test("a change that finds a lock waits, and then says what to do", async () => {
  const folder = await folderForTest();
  const file = join(folder, "tokens");
  await writeFile(`${file}.lock`, "4711\n");
  await expect(changeTokensFile(file, () => [])).rejects.toMatchObject({
    code: "tokens_file_invalid",
    message: expect.stringMatching(
      /^another process changes the tokens file: .*tokens\.lock is there.*remove that file/,
    ),
  });
  expect(await readdir(folder)).toEqual(["tokens.lock"]);
});
