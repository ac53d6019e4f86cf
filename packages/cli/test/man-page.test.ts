/** The manual page: what scripts/man-page.mjs writes into the package, and what man and mandoc of Debian make of it. */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { beforeAll, expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "../../../test/processes/command.js";
import { COMMANDS } from "../dist/commands.js";
import { done } from "./commands-for-test.js";

let page: string;

beforeAll(() => {
  page = execFileSync(process.execPath, ["scripts/man-page.mjs"], { cwd: REPOSITORY, encoding: "utf8" });
});

const isThere = (program: string, flag: string) => spawnSync(program, [flag], { stdio: "ignore" }).error === undefined;

test("the manual page has each command with its summary, and each option of its help", async () => {
  const plain = page.replaceAll("\\-", "-");
  for (const [name, { summary }] of Object.entries(COMMANDS)) {
    expect(plain).toMatch(new RegExp(`^\\.SS ${name}\\b.*\n${summary.replace(/[()]/g, "\\$&")}\\.$`, "m"));
    const { stdout } = await done("help", name);
    for (const [, flags = ""] of stdout.matchAll(/^ {2}(-\S.*?)(?: {2}|$)/gm))
      expect(plain).toContain(`\n.B ${flags}\n`);
  }
});

test.skipIf(!isThere("mandoc", "-h"))(
  "mandoc finds no fault in the manual page, but that a release has no date",
  async () => {
    const file = join(await folderForTest(), "callnumber.1");
    writeFileSync(file, page);
    const { stdout } = spawnSync("mandoc", ["-T", "lint", "-W", "warning", file], { encoding: "utf8" });
    expect(stdout.split("\n").filter((line) => line !== "" && !line.includes("missing date"))).toEqual([]);
  },
);

test.skipIf(!isThere("man", "--version"))("man prints the manual page without a warning", async () => {
  const file = join(await folderForTest(), "callnumber.1");
  writeFileSync(file, page);
  const env = { ...process.env, MANWIDTH: "100", MANPAGER: "cat", LC_ALL: "C.UTF-8" };
  const { stdout, stderr } = spawnSync("man", ["--warnings", "-l", file], { encoding: "utf8", env });
  expect(stderr).toBe("");
  expect(stdout).toMatch(/callnumber - generate short, permanent numbers for messages/);
  expect(stdout).toContain("$ callnumber explain store_locked");
});
