import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { demo, LETTERS, temporaryFolder } from "./importing.js";

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
});
