/** `callnumber token` as an operator types it: what it prints where, what it leaves in the file, and the mistakes. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMMAND, callnumber, folderForTest } from "../../../test/processes/command.js";

const TOKEN = /^cn_[A-Za-z0-9_-]{43}$/;

async function tokensFile(): Promise<string> {
  return join(await folderForTest(), "tokens");
}

const create = (file: string, ...more: readonly string[]) =>
  callnumber(["token", "create", "--tokens-file", file, "--role", "lease", "--namespace", "main", ...more]);

describe("create", () => {
  test("prints the token alone on standard output, what to do next beside it, and keeps its hash only", async () => {
    const file = await tokensFile();
    const { code, stdout, stderr } = await create(file, "lists", "--note", "importer 1");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^cn_[A-Za-z0-9_-]{43}\n$/);
    const token = stdout.trimEnd();
    const line = JSON.parse(await readFile(file, "utf8"));
    expect(line).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}$/),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      role: "lease",
      namespaces: ["lists", "main"],
      createdAtMs: expect.any(Number),
      note: "importer 1",
    });
    expect(stderr).toContain(line.id);
    expect(stderr).toContain("SIGHUP");
    expect(stderr).not.toContain(token);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  test("says so when the file that it is sent to can be read by others", async () => {
    const file = await tokensFile();
    const into = (mode: number) => {
      const output = openSync(`${file}.${mode}.token`, "w", mode);
      try {
        const words = ["token", "create", "--tokens-file", file, "--role", "lease", "--namespace", "main"];
        return spawnSync(process.execPath, [COMMAND, ...words], {
          stdio: ["ignore", output, "pipe"],
          encoding: "utf8",
        });
      } finally {
        closeSync(output);
      }
    };
    expect(into(0o644).stderr).toContain("CAN BE READ BY OTHERS: chmod 600");
    const { status, stderr } = into(0o600);
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringContaining("BY OTHERS") });
  });

  test("with --json prints an object, and nothing beside it", async () => {
    const file = await tokensFile();
    const made = await callnumber(["token", "create", "--role", "read", "--all-namespaces", "--json"], {
      env: { CALLNUMBER_TOKENS_FILE: file },
    });
    expect(JSON.parse(made.stdout)).toEqual({
      token: expect.stringMatching(TOKEN),
      id: expect.stringMatching(/^[0-9a-f]{8}$/),
      role: "read",
      namespaces: "all",
      createdAtMs: expect.any(Number),
      tokensFile: file,
    });
    expect(made.stderr).toBe("");
  });

  test("of several processes at once loses no token", async () => {
    const file = await tokensFile();
    const made = await Promise.all(Array.from({ length: 8 }, () => create(file)));
    expect(made.map(({ code }) => code)).toEqual(Array(8).fill(0));
    expect(new Set(made.map(({ stdout }) => stdout)).size).toBe(8);
    expect((await readFile(file, "utf8")).trimEnd().split("\n")).toHaveLength(8);
  });

  test("takes the file from the environment, but never what the token may do", async () => {
    const file = await tokensFile();
    const env = { CALLNUMBER_TOKENS_FILE: file, CALLNUMBER_NAMESPACE: "lists", CALLNUMBER_ALL_NAMESPACES: "true" };
    const create = ["token", "create", "--role", "lease"];
    expect(await callnumber(create, { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--all-namespaces"),
    });
    for (const given of [["--namespace", "main"], ["--all-namespaces"]]) {
      expect((await callnumber([...create, ...given], { env })).code).toBe(0);
    }
    const listed = await callnumber(["token", "--json"], { env });
    const reaches = (JSON.parse(listed.stdout) as { namespaces: unknown }[]).map(({ namespaces }) => namespaces);
    expect(reaches).toEqual([["main"], "all"]);
  });
});

describe("list and revoke", () => {
  test("show all but the hash, and take one away by its id", async () => {
    const file = await tokensFile();
    const tokens = [await create(file, "--note", "first"), await create(file, "--note", "second")];
    const ids = (await readFile(file, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: string }).id);
    const listed = await callnumber(["token", "--tokens-file", file]);
    expect(listed.stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^ID +ROLE +NAMESPACES +CREATED AT +NOTE$/),
      expect.stringMatching(`^${ids[0]} +lease +main +\\S+Z +first$`),
      expect.stringMatching(`^${ids[1]} +lease +main +\\S+Z +second$`),
    ]);
    const revoked = await callnumber(["token", "revoke", ids[0] as string, "--tokens-file", file]);
    expect(revoked).toMatchObject({ code: 0, stdout: expect.stringMatching(`Revoked token ${ids[0]}.*SIGHUP`) });
    const left = await callnumber(["token", "list", "--tokens-file", file, "--json"]);
    expect(JSON.parse(left.stdout)).toEqual([
      { id: ids[1], role: "lease", namespaces: ["main"], createdAtMs: expect.any(Number), note: "second" },
    ]);
    const last = await callnumber(["token", "revoke", ids[1] as string, "--tokens-file", file, "--json"]);
    expect(JSON.parse(last.stdout)).toEqual({ revoked: ids[1], tokensFile: file });
    const none = await callnumber(["token", "list", "--tokens-file", file]);
    expect(none.stdout).toBe("no tokens: nobody is let in\n");
    const all = [listed, revoked, left, last, none].map((one) => one.stdout + one.stderr).join("");
    for (const { stdout } of tokens) expect(all).not.toContain(stdout.trimEnd());
  });

  test("tell a namespace called all from all namespaces", async () => {
    const file = await tokensFile();
    for (const where of [["--namespace", "all"], ["--all-namespaces"]]) {
      await callnumber(["token", "create", "--tokens-file", file, "--role", "read", ...where]);
    }
    const { stdout } = await callnumber(["token", "list", "--tokens-file", file]);
    expect(stdout.match(/ read +(all|\(all namespaces\)) +2/g)).toEqual([
      expect.stringMatching(/ all +2$/),
      expect.stringMatching(/\(all namespaces\) +2$/),
    ]);
    const listed = await callnumber(["token", "list", "--tokens-file", file, "--json"]);
    expect(JSON.parse(listed.stdout)).toMatchObject([{ namespaces: ["all"] }, { namespaces: "all" }]);
  });

  test("of a file that others may read is refused with the command that mends it", async () => {
    const file = await tokensFile();
    await create(file);
    await chmod(file, 0o644);
    for (const verb of [["list"], ["revoke", "01234567"], ["create", "--role", "read", "--all-namespaces"]]) {
      expect(await callnumber(["token", ...verb, "--tokens-file", file])).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringMatching(`mode is 0644.*chmod 600 ${file} \\(tokens_file_invalid\\)`),
      });
    }
  });

  test("of a file with a wrong line say which, and not what stands there", async () => {
    const file = await tokensFile();
    const { stdout: token } = await create(file);
    await writeFile(file, (await readFile(file, "utf8")) + token);
    const listed = await callnumber(["token", "list", "--tokens-file", file, "--json"]);
    expect(JSON.parse(listed.stderr)).toEqual({
      code: "tokens_file_invalid",
      message: `${file}, line 2: it is no JSON`,
    });
  });
});

describe("a mistake", () => {
  const CN = `cn_${"a".repeat(43)}`;
  test.each([
    [["create", "--role", "lease", "--namespace", "main"], 2, /--tokens-file/],
    [["create", "--tokens-file", "FILE", "--namespace", "main"], 2, /--role lease \| read \| operator/],
    [
      ["create", "--tokens-file", "FILE", "--role", "admin", "--namespace", "main"],
      2,
      /a role is one of lease, read, operator/,
    ],
    [["create", "--tokens-file", "FILE", "--role", "lease"], 2, /--namespace NAME, or --all-namespaces/],
    [["create", "--tokens-file", "FILE", "--role", "lease", "--namespace", "Main"], 2, /1 to 63 characters a-z/],
    [
      ["create", "--tokens-file", "FILE", "--role", "lease", "--namespace", "a", "--all-namespaces"],
      2,
      /exclude each other/,
    ],
    [["create", "01234567", "--tokens-file", "FILE", "--role", "lease", "--namespace", "a"], 2, /takes no id/],
    [
      ["create", "--tokens-file", "FILE", "--role", "read", "--all-namespaces", "--note", "\u001b[2J"],
      2,
      /unprintable/,
    ],
    [["list", "--tokens-file", "FILE", "--role", "lease"], 2, /--role is for create/],
    [["list", "--tokens-file", "FILE"], 1, /is not there/],
    [["revoke", "--tokens-file", "FILE"], 2, /which token/],
    [["revoke", CN, "--tokens-file", "FILE"], 2, /which token/],
    [["revoke", "01234567", "--tokens-file", "FILE"], 1, /is not there/],
  ])("%j is told", async (parameters, code, message) => {
    const file = await tokensFile();
    const done = await callnumber(["token", ...parameters.map((text) => (text === "FILE" ? file : text))]);
    expect(done).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
    expect(done.stderr).not.toContain(CN);
    await expect(stat(file)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("in the id is told", async () => {
    const file = await tokensFile();
    await create(file);
    const before = await readFile(file);
    expect(await callnumber(["token", "revoke", "01234567", "--tokens-file", file])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("token_unknown"),
    });
    expect(await readFile(file)).toEqual(before);
  });
});
