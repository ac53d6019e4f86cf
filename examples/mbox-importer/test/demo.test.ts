import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./importing.js";

const run = promisify(execFile);
const DEMO = fileURLToPath(new URL("../bin/demo.js", import.meta.url));
const LETTERS = fileURLToPath(new URL("../sample/letters.mbox", import.meta.url));
const HERE = fileURLToPath(new URL(".", import.meta.url));

async function demo(temporary: string, ...args: readonly string[]): Promise<string> {
  return (await run(process.execPath, [DEMO, ...args], { env: { ...process.env, TMPDIR: temporary } })).stdout;
}

describe("the demo", () => {
  it("imports, looks a call number up in the archive and at the coordinator, ends with 0 and tidies up", async () => {
    const folder = await temporaryFolder();
    const said = await demo(folder, LETTERS);
    expect(said).toMatch(/stored now +20 messages/);
    expect(said.match(/^ {2}[0-9A-Za-z]{8} {2}\S/gm)?.length).toBe(10);
    expect(said).toMatch(/\$ callnumber inspect \w{8}[\s\S]*reported: run \d+ was leased to mbox-importer/);
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([
    [["--kepe"], "--kepe"],
    [["no-such.mbox"], "there is nothing at"],
  ])("refuses %j before it starts anything", async (args, words) => {
    const folder = await temporaryFolder();
    await expect(demo(folder, ...args)).rejects.toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(words),
    });
    expect(await readdir(folder)).toEqual([]);
  });

  it("tidies up also when nobody reads to the end", async () => {
    const folder = await temporaryFolder();
    const child = spawn(process.execPath, [DEMO, LETTERS], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, TMPDIR: folder },
    });
    child.stdout.once("data", () => child.stdout.destroy());
    await once(child, "exit");
    expect(await readdir(folder)).toEqual([]);
  });

  it("without arguments finds each commit of the history that git writes as mail, and keeps its folder when told to", async (ctx) => {
    const folder = await temporaryFolder();
    const said = await demo(folder, "--keep");
    const [kept] = await readdir(folder);
    expect(said).toContain(`Kept: ${folder}/${kept}`);
    expect(await readdir(`${folder}/${kept}`)).toEqual(expect.arrayContaining(["archive.db", "store.db"]));
    if (!said.includes("the history of this repository")) ctx.skip("there is no git history here");
    const { stdout: count } = await run("git", ["-C", HERE, "rev-list", "--count", "--no-merges", "HEAD"]);
    expect(said).toMatch(new RegExp(`history\\.mbox: ${Number(count).toLocaleString("en-US")} message`));
  });
});
