/** What a published package contains: its license and built files, and nothing of the build or its machine. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";

const NAMES = ["protocol", "client", "schemes", "coordinator", "cli"];

test.each(NAMES)("the package %s contains its license and built files, and neither maps nor sources", (name) => {
  const folder = join(REPOSITORY, "packages", name);
  const words = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const { stdout } = spawnSync("npm", words, { cwd: folder, encoding: "utf8", shell: process.platform === "win32" });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["LICENSE", "package.json", expect.stringMatching(/^dist\/.*\.js$/)]));
  // Maps lead to sources that are not there.
  const own = /^(?:LICENSE|package\.json|bin\/[\w.-]+\.js|lua\/[\w.-]+\.lua|test-vectors\/[\w.-]+|dist\/.*[^/])$/;
  expect(paths.filter((path) => !own.test(path) || /(?:\.map|\.tsbuildinfo)$|(?:^|\/)\./.test(path))).toEqual([]);
  expect(readFileSync(join(folder, "LICENSE"), "utf8")).toBe(readFileSync(join(REPOSITORY, "LICENSE"), "utf8"));
});
