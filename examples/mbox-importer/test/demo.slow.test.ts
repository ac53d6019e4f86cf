import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { DEMO, demo, LETTERS, temporaryFolder } from "./importing.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));

describe("the demo", () => {
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
    const { stdout: count } = await promisify(execFile)("git", [
      "-C",
      HERE,
      "rev-list",
      "--count",
      "--no-merges",
      "HEAD",
    ]);
    expect(said).toMatch(new RegExp(`history\\.mbox: ${Number(count).toLocaleString("en-US")} message`));
  });
});
