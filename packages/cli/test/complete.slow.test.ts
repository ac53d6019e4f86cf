/** Completion in the shells themselves, as they run it when a user presses Tab. A shell that is missing skips its test. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { folderForTest, PATH_WITH_COMMAND, startProgramOnTerminal } from "../../../test/processes/command.js";

const FUNCTIONS_OF_BASH = "/usr/share/bash-completion/bash_completion";

const has = (program: string) =>
  (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)));

/** How each shell is started without files of the user, and reads the script; and what it needs. */
const SHELLS = [
  {
    shell: "bash",
    words: ["--norc", "--noprofile", "-i"],
    begin: `source ${FUNCTIONS_OF_BASH}; source <(callnumber complete bash)`,
    isThere: has("bash") && existsSync(FUNCTIONS_OF_BASH),
  },
  {
    shell: "zsh",
    words: ["-f", "-i"],
    begin: "autoload -U compinit; compinit -u -D; source <(callnumber complete zsh)",
    isThere: has("zsh"),
  },
  {
    shell: "fish",
    words: ["--no-config", "-i"],
    begin: "callnumber complete fish | source",
    isThere: has("fish"),
  },
] as const;

/** Without colors, and without the characters that zsh takes back. */
const screenOf = (stdout: string) => stripVTControlCharacters(stdout).replaceAll("\b", "");

/** Starts the shell on a terminal, in an empty folder, until it has read the script. */
async function started({ shell, words, begin }: (typeof SHELLS)[number]) {
  const folder = await folderForTest();
  const inside = `process.env.PATH = ${JSON.stringify(PATH_WITH_COMMAND)}; process.env.HOME = ${JSON.stringify(folder)};
    process.chdir(process.env.HOME);
    const { spawnSync } = require("node:child_process");
    spawnSync(${JSON.stringify(shell)}, ${JSON.stringify(words)}, { stdio: "inherit" });`;
  const { output, type } = startProgramOnTerminal(100, "--eval", inside);
  type(`${begin}; echo rea""dy\r`);
  await expect.poll(() => output().stdout, { timeout: 30_000 }).toContain("ready");
  const shows = async (text: string | RegExp) => {
    await expect.poll(() => screenOf(output().stdout), { timeout: 30_000 }).toMatch(text);
  };
  return { folder, type, shows };
}

describe.each(SHELLS)("$shell", (one) => {
  test.skipIf(!one.isThere || !has("script"))(
    "completes commands, options and values, where it is installed",
    async () => {
      const { folder, type, shows } = await started(one);
      type("callnumber advan\t");
      await shows(/callnumber advance-version/);
      type("--app\t");
      await shows(/advance-version +--apply/);
      type("\u0015callnumber token create --role oper\t");
      await shows(/--role +operator/);
      type("\u0015callnumber explain store_lock\t");
      await shows(/explain +store_locked/);
      writeFileSync(join(folder, "archive-tokens"), "");
      type("\u0015callnumber token list --tokens-file archi\t");
      await shows(/--tokens-file +archive-tokens/);
    },
    120_000,
  );

  test.skipIf(!one.isThere || !has("script"))(
    "runs nothing of what was typed, where it is installed",
    async () => {
      const { folder, type, shows } = await started(one);
      const evidence = join(folder, "evidence");
      writeFileSync(join(folder, "kept"), "kept");
      type(`callnumber decode '$(touch evidence)' ; callnumber decode $(touch evidence) > kept advan\t`);
      type('\u0015echo do""ne\r');
      await shows("done");
      expect(existsSync(evidence)).toBe(false);
      expect(readFileSync(join(folder, "kept"), "utf8")).toBe("kept");
    },
    120_000,
  );
});
