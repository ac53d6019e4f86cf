/** What a run of the tests checks before it begins. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { requirePrograms } from "./global-setup.js";
import { folderForTest } from "./processes/command.js";

test("a run of the tests names the programs that it misses", async () => {
  const folder = await folderForTest();
  for (const name of ["bash", "stty"]) {
    writeFileSync(join(folder, name), "");
    chmodSync(join(folder, name), 0o755);
  }
  expect(() => requirePrograms(folder)).toThrow(/not on PATH: mkfifo, script\./);
});
