/** What a shell is answered when it completes a command line, and the script by which it asks. */
import { expect, test } from "vitest";
import { done, expectFailure, jsonOf } from "./commands-for-test.js";

/** The words, without their meanings; `files` where the shell completes the name of a file. */
async function completionsOf(...words: readonly string[]): Promise<string> {
  const lines = (await done("complete", "--", ...words)).stdout.trimEnd().split("\n");
  const found = lines.slice(0, -1).map((line) => line.split("\t")[0]);
  return lines.at(-1) === ":0" ? "files" : found.join(" ");
}

test.each([
  [["ru"], "runs"],
  [["re"], "recover retention"],
  [["help", "re"], "recover retention"],
  [["token", ""], "create list revoke help"],
  [["recover", "--ap"], "--apply"],
  [["recover", "--min"], "--min-run"],
  [["token", "create", "--role", ""], "lease read operator"],
  [["serve", "--log-level", "w"], "warn"],
  [["complete", ""], "bash fish zsh"],
  [["explain", "token"], "token_invalid token_unknown tokens_file_invalid"],
  [["token", "list", "--tokens-file", "x"], "files"],
  [["backup", "--to", ""], "files"],
  [["next", "-n", ""], ""],
  [["nonsense", ""], ""],
])("%j is completed by: %s", async (words, expected) => {
  expect(await completionsOf(...words)).toBe(expected);
});

test("each completion has its meaning, from the help", async () => {
  const { stdout } = await done("complete", "--", "backup", "--to");
  expect(stdout).toBe(
    "--to\tthe file to write; it must not exist\n--token-file\tfile that holds the token, which others may not read; else CALLNUMBER_TOKEN\n:4\n",
  );
});

test.each(["bash", "fish", "zsh"])("complete prints the script for %s, which asks the command", async (shell) => {
  const { stdout } = await done("complete", shell);
  expect(stdout).toContain("callnumber complete -- ");
  expect(await jsonOf("complete", shell)).toEqual({ shell, script: expect.stringContaining(stdout.trimEnd()) });
});

test("the script for bash evaluates nothing that was typed, and completes names of files", async () => {
  const { stdout } = await done("complete", "bash");
  expect(stdout).toContain(`callnumber complete -- $(printf '%q ' "\${words[@]:1}")"`);
  expect(stdout).toContain("\ncomplete -o default -F ");
});

test("complete rejects another shell", async () => {
  await expectFailure(["complete", "tcsh"], 2, "Allowed choices are bash, fish, zsh");
  await expectFailure(["complete"], 2, "Example: callnumber complete fish");
});
