/** A disk without room: a command that can't write leaves what was there, and no lock that would refuse everybody once there is room again. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, shell } from "../../../test/processes/command.js";

/** The file system makes a file, and takes no byte of it: as a full one does. */
const withoutRoom = (line: string) => shell(`ulimit -f 0; ${line}`);

describe.skipIf(process.platform === "win32")("without room", () => {
  test("no token is revoked, and then it can be", async () => {
    const file = join(await folderForTest(), "tokens");
    const create = ["token", "create", "--tokens-file", file, "--role", "read", "--namespace", "main"];
    await callnumber(create);
    const { id } = JSON.parse(await readFile(file, "utf8")) as { id: string };
    // The token that stays takes room.
    await callnumber(create);
    const before = await readFile(file, "utf8");
    const full = await withoutRoom(`callnumber token revoke ${id} --tokens-file '${file}'`);
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining("can't be written (EFBIG)") });
    expect(await readFile(file, "utf8")).toBe(before);
    expect(await readdir(join(file, ".."))).toEqual(["tokens"]);
    expect((await callnumber(["token", "revoke", id, "--tokens-file", file])).code).toBe(0);
    expect(before.endsWith(`\n${await readFile(file, "utf8")}`)).toBe(true);
  });

  test("no number is minted, and then it can be", async () => {
    const file = join(await folderForTest(), "tickets.json");
    const words = ["schemes", "mint", "--scheme", "tickets", "--server", "1", "--state", file];
    expect((await callnumber([...words, "--create"])).code).toBe(0);
    const before = await readFile(file, "utf8");
    const full = await withoutRoom(`callnumber ${words.join(" ")}`);
    expect(full).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("can't be used (EFBIG)") });
    expect(await readFile(file, "utf8")).toBe(before);
    expect(await readdir(join(file, ".."))).toEqual(["tickets.json"]);
    expect((await callnumber(words)).code).toBe(0);
  });
});
