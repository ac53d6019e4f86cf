/** What a newcomer types first, in a fresh clone with an empty home: it works, or one line of ours names the command. */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { registryUnavailable } from "./deploy/packed.js";
import { type Finished, REPOSITORY } from "./processes/command.js";

const work = mkdtempSync(join(tmpdir(), "callnumber-reflexes-"));
const home = join(work, "home");
const pnpmFolder = join(work, "pnpm");
mkdirSync(home);
mkdirSync(pnpmFolder);
afterAll(() => rmSync(work, { recursive: true, force: true }));

const { packageManager } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as {
  packageManager: string;
};
const [pnpm = ""] = packageManager.split("+");
const noRegistry = await registryUnavailable(pnpmFolder, pnpm);

const INSTALLING = `Installing the dependencies with ${pnpm}: once, and again when they change.`;
const BUILT = ["Built N files.", "Built the console."];
const INSTALLED = [INSTALLING, "Installed N packages in N s.", ...BUILT];
const READY = "Ready: npm start runs a coordinator, npm run demo shows an archive.";

const SYSTEM = [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
/** What leads to the registry, and nothing else of the person who runs the tests. */
const ENVIRONMENT = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(NODE_EXTRA_CA_CERTS|\w*_proxy)$/i.test(name)),
  ),
  npm_config_registry: execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim(),
  npm_config_update_notifier: "false",
  NO_COLOR: "1",
  HOME: home,
  PATH: SYSTEM,
};

describe.skipIf(noRegistry !== undefined)(`in a fresh clone ${noRegistry ?? ""}`, () => {
  test("npx callnumber names what builds it, in each folder", async () => {
    const clone = freshClone();
    for (const folder of [".", "docs", "packages/cli"]) {
      expect(await typed(join(clone, folder), "npx callnumber")).toEqual({
        code: 1,
        stdout: "",
        stderr: `error: callnumber is not built yet: packages/cli/dist/main.js is missing. Run npm install in ${clone} first.\n`,
      });
    }
    // It has not been installed unseen.
    expect(existsSync(join(clone, "node_modules"))).toBe(false);
  });

  test.each(["npm install", "npm ci", "npm install --omit=dev"])(
    "%s sets everything up, also when repeated",
    async (line) => {
      const clone = freshClone();
      const { code, stdout, stderr } = await typed(clone, line);
      expect({ code, stderr, ours: ours(stdout) }).toEqual({ code: 0, stderr: "", ours: [...INSTALLED, READY] });
      for (const folder of [".", "docs", "examples/minimal-importer", "packages/cli"]) {
        const decoded = await typed(join(clone, folder), "npx callnumber decode 2VznWE2i");
        expect(decoded).toEqual({ code: 0, stdout: "0,99,345\n", stderr: "" });
      }
      // npm takes away what it does not know, and the bootstrap puts it back.
      expect(await typed(clone, line)).toMatchObject({ code: 0, stderr: "" });
      expect(await typed(clone, "node_modules/.bin/callnumber decode 2VznWE2i")).toMatchObject({
        stdout: "0,99,345\n",
      });
      expect(changedIn(clone)).toBe("");
    },
  );

  test("pnpm install sets everything up", async () => {
    const clone = freshClone();
    const { code, stdout } = await typed(
      clone,
      "pnpm install",
      [join(pnpmFolder, "node_modules", ".bin"), SYSTEM].join(delimiter),
    );
    const prepared = stdout.match(/(?<=^\. prepare: ).*$/gm) ?? [];
    const own = ["Installed N packages in N s.", ...BUILT, READY];
    expect({ code, ours: ours(prepared.join("\n")) }).toEqual({ code: 0, ours: expect.arrayContaining(own) });
    expect(await typed(clone, "npx callnumber decode 2VznWE2i")).toMatchObject({ stdout: "0,99,345\n" });
    expect(changedIn(clone)).toBe("");
  });

  test("npm run build sets everything up, and is quick when repeated", async () => {
    const clone = freshClone();
    const first = await typed(clone, "npm run build");
    expect({ ...first, stdout: ours(first.stdout) }).toEqual({ code: 0, stdout: [...INSTALLED, READY], stderr: "" });
    const second = await typed(clone, "npm run build");
    expect({ ...second, stdout: ours(second.stdout) }).toEqual({ code: 0, stdout: [READY], stderr: "" });
  });

  test("npm start runs a coordinator", async () => {
    const clone = freshClone();
    const child = start(clone, `npm start -- --store sqlite:${join(clone, "store.db")} --create --port 0`);
    await expect.poll(() => child.output.stderr).toMatch(/^listening on http:\/\/127\.0\.0\.1:\d+, stop with Ctrl-C$/m);
    expect(ours(child.output.stdout).slice(0, INSTALLED.length)).toEqual(INSTALLED);
    child.typeCtrlC();
    await child.ended;
  });

  test("npm test installs before it runs", async () => {
    const { code, stdout } = await typed(freshClone(), "npm test -- test/global-setup.test.ts");
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/Tests {2}1 passed/) });
    expect(ours(stdout).slice(0, INSTALLED.length)).toEqual(INSTALLED);
  });

  test("the first commands of the README run as printed", async () => {
    const [, block = ""] = /```sh\n([\s\S]*?)```/.exec(readFileSync(join(REPOSITORY, "README.md"), "utf8")) ?? [];
    const { code, stdout } = await typed(freshClone(), block);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^ {2}http:.*\/message\/\w{8}$/m) });
  });
});

/** The files as they are here, committed or not, in a folder of their own. */
function freshClone(): string {
  const git = (cwd: string, ...words: string[]) => execFileSync("git", words, { cwd, encoding: "utf8" });
  const clone = mkdtempSync(join(work, "clone-"));
  onTestFinished(() => rmSync(clone, { recursive: true, force: true }));
  const names = git(REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0");
  for (const name of names.filter((one) => one !== "" && existsSync(join(REPOSITORY, one)))) {
    cpSync(join(REPOSITORY, name), join(clone, name));
  }
  git(clone, "init", "--quiet");
  git(clone, "add", "--all");
  return clone;
}

function changedIn(clone: string): string {
  return execFileSync("git", ["diff", "--name-only"], { cwd: clone, encoding: "utf8" });
}

/** Runs a line of the shell to its end. */
async function typed(cwd: string, line: string, PATH?: string): Promise<Finished> {
  const { ended, output } = start(cwd, line, PATH);
  return { code: await ended, ...output };
}

function start(cwd: string, line: string, PATH = SYSTEM) {
  const child = spawn("bash", ["-c", line], {
    cwd,
    env: { ...ENVIRONMENT, PATH },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const typeCtrlC = () => process.kill(-(child.pid as number), "SIGINT");
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), "SIGKILL");
    await ended;
  });
  return { output, ended, typeCtrlC };
}

/** The lines that are not npm's, without what only shows progress, of which there is little. */
function ours(text: string): readonly string[] {
  const lines = text.split("\n").filter((line) => line !== "" && !/^(> |up to date |removed \d+ )/.test(line));
  const progress = lines.filter((line) => /^ {2}\S.*: \d+ s$/.test(line));
  expect(progress.length).toBeLessThan(20);
  return lines
    .filter((line) => !progress.includes(line))
    .map((line) => line.replace(/\b(?:\d+|the)(?= packages)|\d+(?= s\.$| files\.$)/g, "N"));
}
