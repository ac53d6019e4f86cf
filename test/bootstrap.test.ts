/** scripts/bootstrap.mjs in a small tree, with a stand-in for npx: when it installs, what it shows, and what it makes of the lock file. */
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY, startProgramOnTerminal } from "./processes/command.js";

/** As pnpm outside CI: adds a package that is not locked yet. Goes on when nothing is called `held`. */
const NPX = `#!/bin/sh
echo "$*" >> calls
echo "Packages: +10"
echo "Progress: resolved 10, reused 1, downloaded 3, added 0"
while test -e held; do sleep 0.05; done
test ! -f examples/own/package.json || grep -q examples/own pnpm-lock.yaml || echo "  examples/own: {}" >> pnpm-lock.yaml
`;

async function smallTree() {
  const folder = await folderForTest();
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  mkdirSync(join(folder, "scripts"));
  const script = join(folder, "scripts/bootstrap.mjs");
  cpSync(join(REPOSITORY, "scripts/bootstrap.mjs"), script);
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
  const PATH = `${join(folder, "bin")}${delimiter}${process.env["PATH"]}`;
  return { folder, write, script, PATH, env: { ...process.env, PATH } };
}

test.skipIf(process.platform === "win32")(
  "the bootstrap installs a package that the lock file lacks, reports it, and installs nothing when run again",
  async () => {
    const { folder, write, script, env } = await smallTree();
    const bootstrap = () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [script], { env, encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      return stdout;
    };
    const calls = () => readFileSync(join(folder, "calls"), "utf8").trim().split("\n");

    expect(bootstrap()).not.toContain("pnpm-lock.yaml");
    write("examples/own/package.json", '{ "name": "own" }');
    expect(bootstrap()).toContain("pnpm-lock.yaml was out of date");
    expect(bootstrap()).toBe("");
    expect(calls()).toEqual(Array(2).fill("--yes pnpm@1.0.0 install --prefer-offline --ignore-scripts"));
    appendFileSync(join(folder, "pnpm-lock.yaml"), "# changed\n");
    expect(bootstrap()).not.toContain("pnpm-lock.yaml");
    expect(calls()).toHaveLength(3);
  },
);

test.skipIf(process.platform === "win32")(
  "the bootstrap shows in a log how far the installation has come",
  async () => {
    const { folder, write, script, env } = await smallTree();
    write("held", "");
    const child = spawn(process.execPath, [script], { env, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    await expect.poll(() => output).toMatch(/^ {2}Fetched 4 of 10 packages: \d+ s$/m);
    spawnSync("rm", [join(folder, "held")]);
    await expect.poll(() => output).toMatch(/^Installed 10 packages in \d+ s\.$/m);
    await expect.poll(() => child.exitCode).toBe(0);
  },
);

test.skipIf(process.platform === "win32")("the bootstrap shows on a terminal one line that changes", async () => {
  const { folder, write, PATH } = await smallTree();
  write("held", "");
  write("on-terminal.mjs", `process.env.PATH = ${JSON.stringify(PATH)};\nawait import("./scripts/bootstrap.mjs");\n`);
  const terminal = startProgramOnTerminal(20, join(folder, "on-terminal.mjs"));
  // Cut where the terminal ends: a longer one would not be replaced.
  await expect.poll(() => terminal.output().stdout).toContain("\r\u001b[KFetched 4 of 10 pac\r");
  spawnSync("rm", [join(folder, "held")]);
  expect(await terminal.ended()).toBe(0);
  expect(terminal.output().stdout).toContain("\r\u001b[KInstalled 10 packages in ");
});
