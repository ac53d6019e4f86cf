/** Files that stay open: read as they are, few at once, and not for ever. */
import { readdir, readlink, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { OpenFiles } from "../src/ledger-archive/open-files.js";

afterEach(() => void vi.useRealTimers());

/** How many descriptors of this process are files in a folder. */
async function openCount(folder: string): Promise<number> {
  const numbers = await readdir("/proc/self/fd");
  const targets = await Promise.all(numbers.map((number) => readlink(`/proc/self/fd/${number}`).catch(() => "")));
  return targets.filter((target) => target.startsWith(folder)).length;
}

async function untilOpen(folder: string, count: number): Promise<void> {
  await vi.waitUntil(async () => (await openCount(folder)) === count);
}

test("parts are read from one opening of the file; fewer bytes where it ends", async () => {
  const folder = await folderForTest();
  const path = join(folder, "digits");
  await writeFile(path, "0123456789");
  const files = new OpenFiles();
  const parts = await Promise.all([0, 3, 8, 20].map((begin) => files.readPart(path, begin, 4)));
  expect(parts.map(String)).toEqual(["0123", "3456", "89", ""]);
  expect(await openCount(folder)).toBe(1);
});

test("no more than 512 are open, and each of a thousand is read as it is", async () => {
  const folder = await folderForTest();
  const paths = Array.from({ length: 1_000 }, (_, at) => join(folder, String(at)));
  for (const path of paths) await writeFile(path, path);
  const files = new OpenFiles();
  for (let round = 0; round < 2; round++) {
    const read = await Promise.all(paths.map((path) => files.readPart(path, 0, 1_000)));
    expect(read.map(String)).toEqual(paths);
  }
  await untilOpen(folder, 512);
});

test("what is not there is the system's error each time, and found when it is there", async () => {
  const path = join(await folderForTest(), "late");
  const files = new OpenFiles();
  for (let tries = 0; tries < 2; tries++) {
    await expect(files.readPart(path, 0, 4)).rejects.toMatchObject({ code: "ENOENT", syscall: "open" });
  }
  await writeFile(path, "here");
  expect(String(await files.readPart(path, 0, 4))).toBe("here");
});

test("a file is closed after a minute, and another one of its name found", async () => {
  const folder = await folderForTest();
  const path = join(folder, "file");
  await writeFile(path, "one");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const files = new OpenFiles();
  expect(String(await files.readPart(path, 0, 9))).toBe("one");
  await rm(path);
  await writeFile(path, "another");
  vi.advanceTimersByTime(59_000);
  expect(String(await files.readPart(path, 0, 9))).toBe("one");
  vi.advanceTimersByTime(1_000);
  vi.useRealTimers();
  await untilOpen(folder, 0);
  expect(String(await files.readPart(path, 0, 9))).toBe("another");
});
