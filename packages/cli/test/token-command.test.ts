/** `callnumber token` as an operator runs it: what it prints where, what it leaves in the file, and the mistakes. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { COMMAND, callnumber, folderForTest } from "../../../test/processes/command.js";
import { done, expectFailure, jsonLines } from "./commands-for-test.js";

const ID = /^[0-9a-f]{8}$/;

let file: string;

beforeEach(async () => {
  file = join(await folderForTest(), "tokens");
});

const LEASE = ["--role", "lease", "--namespace", "main"];
const create = (...more: readonly string[]) => done("token", "create", "--tokens-file", file, ...LEASE, ...more);
const linesInFile = async () => jsonLines<{ id: string }>(await readFile(file, "utf8"));

test("create prints the token alone on standard output, and the file keeps its hash only", async () => {
  const { stdout, stderr } = await create("lists", "--note", "importer 1");
  expect(stdout).toMatch(/^cn_[A-Za-z0-9_-]{43}\n$/);
  const line = {
    id: expect.stringMatching(ID),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    role: "lease",
    namespaces: ["lists", "main"],
    createdAtMs: expect.any(Number),
    note: "importer 1",
  };
  const lines = await linesInFile();
  expect(lines).toEqual([line]);
  expect(stderr).toContain(lines[0]?.id);
  expect(stderr).toContain("SIGHUP");
  expect(stderr).not.toContain(stdout.trimEnd());
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test("create warns when other users can read the file that standard output is", () => {
  const into = (mode: number) => {
    const output = openSync(`${file}.${mode}.token`, "w", mode);
    try {
      const words = [COMMAND, "token", "create", "--tokens-file", file, ...LEASE];
      return spawnSync(process.execPath, words, { stdio: ["ignore", output, "pipe"], encoding: "utf8" }).stderr;
    } finally {
      closeSync(output);
    }
  };
  expect(into(0o644)).toContain("Other users can read the file that the token goes to: chmod 600");
  expect(into(0o600)).toMatch(/^Made token (?!.*Other users)/s);
});

test("create with --json prints an object, and nothing on standard error", async () => {
  const { stdout, stderr } = await callnumber(["token", "create", "--role", "read", "--all-namespaces", "--json"], {
    env: { CALLNUMBER_TOKENS_FILE: file },
  });
  expect(JSON.parse(stdout)).toEqual({
    token: expect.stringMatching(/^cn_[A-Za-z0-9_-]{43}$/),
    id: expect.stringMatching(ID),
    role: "read",
    namespaces: "all",
    createdAtMs: expect.any(Number),
    tokensFile: file,
  });
  expect(stderr).toBe("");
});

test("create reads the file from the environment, but never what the token may do", async () => {
  const env = { CALLNUMBER_TOKENS_FILE: file, CALLNUMBER_NAMESPACE: "lists", CALLNUMBER_ALL_NAMESPACES: "true" };
  const words = ["token", "create", "--role", "lease"];
  await expectFailure(words, 2, "--all-namespaces", env);
  for (const given of [["--namespace", "main"], ["--all-namespaces"]]) {
    expect(await callnumber([...words, ...given], { env })).toMatchObject({ code: 0 });
  }
  const { stdout } = await callnumber(["token", "--json"], { env });
  expect(JSON.parse(stdout)).toMatchObject([{ namespaces: ["main"] }, { namespaces: "all" }]);
});

test("list shows all but the hash, and revoke removes one token by its id", async () => {
  const tokens = [await create("--note", "first"), await create("--note", "second")];
  const [first, second] = (await linesInFile()).map(({ id }) => id) as [string, string];
  const at = ["--tokens-file", file];
  const listed = await done("token", ...at);
  expect(listed.stdout.trimEnd().split("\n")).toEqual([
    expect.stringMatching(/^ID +ROLE +NAMESPACES +CREATED AT +NOTE$/),
    expect.stringMatching(`^${first} +lease +main +\\S+Z +first$`),
    expect.stringMatching(`^${second} +lease +main +\\S+Z +second$`),
  ]);
  const revoked = await done("token", "revoke", first, ...at);
  expect(revoked.stdout).toMatch(new RegExp(`Revoked token ${first}.*SIGHUP`));
  const left = await done("token", "list", ...at, "--json");
  expect(JSON.parse(left.stdout)).toEqual([
    { id: second, role: "lease", namespaces: ["main"], createdAtMs: expect.any(Number), note: "second" },
  ]);
  await expectFailure(["token", "revoke", first, ...at], 1, "token_unknown");
  const last = await done("token", "revoke", second, ...at, "--json");
  expect(JSON.parse(last.stdout)).toEqual({ revoked: second, tokensFile: file });
  const none = await done("token", "list", ...at);
  expect(none.stdout).toBe("no tokens: every request is rejected\n");
  const printed = [listed, revoked, left, last, none].map((one) => one.stdout + one.stderr).join("");
  for (const { stdout } of tokens) expect(printed).not.toContain(stdout.trimEnd());
});

test("list shows a namespace called all differently from all namespaces", async () => {
  for (const where of [["--namespace", "all"], ["--all-namespaces"]]) {
    await done("token", "create", "--tokens-file", file, "--role", "read", ...where);
  }
  const { stdout } = await done("token", "list", "--tokens-file", file);
  expect(stdout).toMatch(/ read +all +2.*\n.* read +\(all namespaces\) +2/);
  const listed = await done("token", "list", "--tokens-file", file, "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject([{ namespaces: ["all"] }, { namespaces: "all" }]);
});

const TOKEN = `cn_${"a".repeat(43)}`;
const ONLY_LEASE = ["--role", "lease"];

test.each<[words: string[], code: number, message: RegExp]>([
  [["create", ...LEASE], 2, /--tokens-file/],
  [["create", "--tokens-file", "FILE", "--namespace", "main"], 2, /--role/],
  [["create", "--tokens-file", "FILE", "--role", "admin", "--namespace", "main"], 2, /one of lease, read, operator/],
  [["create", "--tokens-file", "FILE", ...ONLY_LEASE], 2, /--namespace NAME, or --all-namespaces/],
  [["create", "--tokens-file", "FILE", ...ONLY_LEASE, "--namespace", "Main"], 2, /1 to 63 characters a-z/],
  [["create", "--tokens-file", "FILE", ...LEASE, "--all-namespaces"], 2, /cannot be used with option/],
  [["create", TOKEN, "--tokens-file", "FILE", ...ONLY_LEASE, "--all-namespaces"], 2, /takes no arguments, not 1/],
  [["create", "--tokens-file", "FILE", ...LEASE, "--note", "\u001b[2J"], 2, /unprintable/],
  [["list", "--tokens-file", "FILE", ...ONLY_LEASE], 2, /token list has no option --role/],
  [["list", "--tokens-file", "FILE"], 1, /is not there/],
  [["revoke", "--tokens-file", "FILE"], 2, /token revoke needs the argument ID/],
  [["revoke", TOKEN, "--tokens-file", "FILE"], 2, /which token/],
  [["revoke", "01234567", "--tokens-file", "FILE"], 1, /is not there/],
  [[TOKEN, "--tokens-file", "FILE"], 2, /takes no arguments, not 1/],
])("token %j fails with %i, prints no token and makes no file", async (words, code, message) => {
  const { stderr } = await expectFailure(
    ["token", ...words.map((word) => (word === "FILE" ? file : word))],
    code,
    message,
  );
  expect(stderr).not.toContain(TOKEN);
  await expect(stat(file)).rejects.toMatchObject({ code: "ENOENT" });
});
