import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { startProgramOnTerminal } from "../../../test/processes/command.js";
import { DEMO, demo, LETTERS, temporaryDirectory } from "./importing.js";

test("the demo imports a mailing list, looks a call number up in the archive and at the coordinator, and removes its files", async () => {
  const directory = await temporaryDirectory();
  const output = await demo(directory);
  expect(output).toMatch(/stored now +30 messages/);
  expect(output).not.toContain("Problems");
  const shown = [...output.matchAll(/^ {2}([0-9A-Za-z]{8}) {2}(.*)$/gm)].map(([, , text]) => text);
  expect(shown).toHaveLength(10);
  expect(shown[0]).toBe("Priya Nair        Seed swap this Saturday at the green shed");
  expect(shown[2]).toBe("Jörg Weiß         Re: Seed swap this Saturday at the green shed");
  expect(shown[9]).toBe("Jörg Weiß         Gießplan für die erste Maiwoche");
  expect(output).toMatch(/\$ callnumber inspect \w{8}[\s\S]*reported: run \d+ was leased to callnumber-archive/);
  expect(output).toMatch(/the page of this message:\n\n {2}(http:\S+)\/\n {2}\1\/message\/\w{8}\n/);
  expect(await readdir(directory)).toEqual([]);
});

test("on a terminal the pages of the demo stay until Ctrl-C", async () => {
  const { output, ended, typeCtrlC } = startProgramOnTerminal(80, DEMO);
  await expect.poll(() => output().stdout).toContain("until you press Ctrl-C");
  const [, page] = /(http:\S+\/message\/\w{8})/.exec(output().stdout) ?? [];
  expect(await (await fetch(page as string)).text()).toContain("Seed swap this Saturday");
  typeCtrlC();
  expect(await ended()).toBe(0);
  await expect(fetch(page as string)).rejects.toThrow("fetch failed");
  expect(output().stdout).toContain("The files of the demo are removed");
});

test.each(["SIGTERM", "SIGHUP"] as const)(
  "the demo ends its coordinator and removes its files at %s",
  async (signal) => {
    const directory = await temporaryDirectory();
    const child = spawn(process.execPath, [DEMO], { env: { ...process.env, TMPDIR: directory } });
    const closed = once(child, "close");
    let output = "";
    for await (const piece of child.stdout.iterator({ destroyOnReturn: false })) {
      output += piece;
      if (output.includes("Importing")) break;
    }
    child.kill(signal);
    child.stdout.resume();
    await closed;
    const [, coordinator] = /(http:\S+);/.exec(output) ?? [];
    await expect(fetch(coordinator as string)).rejects.toThrow("fetch failed");
    expect(await readdir(directory)).toEqual([]);
  },
);

test("the demo imports an mbox that it is given", async () => {
  const directory = await temporaryDirectory();
  const output = await demo(directory, LETTERS);
  expect(output).toMatch(/stored now +19 messages/);
  // The twentieth is a letter that was sent twice.
  expect(output).toContain("1 message skipped");
});

test.each([
  [["--kepe"], "--kepe"],
  [["--history", LETTERS], "leave out the other sources"],
  [["no-such.mbox"], "there is nothing at"],
])("the demo rejects %j before it starts anything", async (args, text) => {
  const directory = await temporaryDirectory();
  const failure = { code: 2, stdout: "", stderr: expect.stringContaining(text) };
  await expect(demo(directory, ...args)).rejects.toMatchObject(failure);
  expect(await readdir(directory)).toEqual([]);
});
