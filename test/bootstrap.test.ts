/** scripts/bootstrap.mjs in a small tree, with a stand-in for npx: when it installs, and what it makes of the lock file. */
import { spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "./processes/command.js";

/** As pnpm outside CI: adds a package that is not locked yet. */
const NPX = `#!/bin/sh
echo "$*" >> calls
test ! -f examples/own/package.json || grep -q examples/own pnpm-lock.yaml || echo "  examples/own: {}" >> pnpm-lock.yaml
`;

test.skipIf(process.platform === "win32")(
  "the bootstrap installs a package that the lock file lacks, reports it, and installs nothing when run again",
  async () => {
    const folder = await folderForTest();
    const write = (name: string, text: string) => {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    };
    mkdirSync(join(folder, "scripts"));
    cpSync(join(REPOSITORY, "scripts/bootstrap.mjs"), join(folder, "scripts/bootstrap.mjs"));
    write("package.json", '{ "packageManager": "pnpm@1.0.0+sha512.0", "engines": { "node": ">=20.19" } }');
    write("pnpm-workspace.yaml", "packages:\n  - packages/*\n  - examples/*\n");
    write("pnpm-lock.yaml", "importers:\n");
    write("packages/protocol/src/api.ts", "");
    write("docs/reference/errors.md", "");
    write("packages/coordinator/dist/console/index.html", "");
    for (const tool of ["node_modules/typescript/bin/tsc", "packages/console/node_modules/vite/bin/vite.js"]) {
      write(tool, "");
    }
    write("bin/npx", NPX);
    chmodSync(join(folder, "bin/npx"), 0o755);

    const env = { ...process.env, PATH: `${join(folder, "bin")}${delimiter}${process.env["PATH"]}` };
    const bootstrap = () => {
      const script = join(folder, "scripts/bootstrap.mjs");
      const { status, stdout, stderr } = spawnSync(process.execPath, [script], { env, encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      return stdout;
    };
    const calls = () => readFileSync(join(folder, "calls"), "utf8").trim().split("\n");

    expect(bootstrap()).not.toContain("pnpm-lock.yaml");
    write("examples/own/package.json", '{ "name": "own" }');
    expect(bootstrap()).toContain("pnpm-lock.yaml was out of date");
    expect(bootstrap()).toBe("");
    expect(calls()).toEqual(Array(2).fill("--yes pnpm@1.0.0 install --prefer-offline"));
    appendFileSync(join(folder, "pnpm-lock.yaml"), "# changed\n");
    expect(bootstrap()).not.toContain("pnpm-lock.yaml");
    expect(calls()).toHaveLength(3);
  },
);
