/** The `callnumber` command as a new user meets it: its help, its exit codes, and the mistakes people make. */
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { callnumber, folderForTest, REPOSITORY, serve, shell } from "../../../test/processes/command.js";
import { done, embeddedStore, expectFailure, httpServer, jsonOf, NOWHERE } from "./commands-for-test.js";

test("the command without arguments shows how to begin", async () => {
  const { stdout } = await done();
  const everyday = ["serve", "next", "inspect", "encode", "decode", "runs", "status", "init"];
  for (const word of [...everyday, "recover", "To try it:"]) expect(stdout).toContain(word);
});

test.each(["--version", "-V"])("%s prints the release of the package", async (flag) => {
  const { version } = JSON.parse(readFileSync(join(REPOSITORY, "packages/cli/package.json"), "utf8"));
  expect(await callnumber([flag])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test.each<[words: string[], env: Record<string, string>, code: number, message: RegExp]>([
  [["encode", "0", "99"], {}, 2, /three numbers/],
  [["encode", "0", "99", "16384"], {}, 2, /"16384"/],
  [["encode", "0", "1e3", "0"], {}, 2, /"1e3"/],
  [["decode", "2VznWE2"], {}, 1, /7 characters/],
  [["decode"], {}, 2, /decode needs the argument CALLNUMBER/],
  [["decod", "2VznWE2i"], {}, 2, /Did you mean decode\?/],
  [["decode", "--jsno", "2VznWE2i"], {}, 2, /Did you mean --json\?/],
  [
    ["status", "--coordinator", NOWHERE],
    {},
    1,
    /no coordinator answers at http:\/\/127\.0\.0\.1:1 .*with the options that it had.*coordinator_unreachable/s,
  ],
  [["inspect", "2VznWE2i"], { CALLNUMBER_COORDINATOR: NOWHERE }, 1, /127\.0\.0\.1:1/],
  [["status", "--all-namespaces"], { CALLNUMBER_COORDINATOR: NOWHERE }, 1, /127\.0\.0\.1:1/],
  [["next", "--coordinator", "localhost:7300"], {}, 2, /--coordinator.*localhost:7300.*http:\/\/127\.0\.0\.1:7300/s],
  [["serve"], { CALLNUMBER_PORT: "99999" }, 2, /CALLNUMBER_PORT "99999" must be .* 65535/],
  [["serve", "--store", "mysql://x"], {}, 2, /"mysql:" is not a kind of store.*sqlite:PATH/s],
  [["serve", "--store", "store.db"], {}, 2, /no kind in front/],
  [
    ["serve", "--port", "0", "--store", "redis://127.0.0.1:1"],
    {},
    1,
    /Redis at 127\.0\.0\.1:1 can't be reached.*ECONNREFUSED/,
  ],
  [["serve", "--host", "0.0.0.0"], {}, 2, /--listen-without-tokens/],
  [["serve", "--host", "0.0.0.0", "--listen-without-tokens"], {}, 2, /--tls-certificate.*--listen-without-tls/],
  [
    [
      "serve",
      "--store",
      "memory:",
      "--log-level",
      "silent",
      "--host",
      "192.0.2.1",
      "--listen-without-tokens",
      "--listen-without-tls",
    ],
    {},
    2,
    /no such address.*--host/,
  ],
  [
    ["serve", "--store", "memory:", "--ledger-dir", "/nonexistent/ledger"],
    {},
    2,
    /--ledger-dir .*ENOENT.*mount its disk/,
  ],
  [["serve", "--store", "memory:", "--ledger-dir", "/dev/null"], {}, 2, /--ledger-dir .*ENOTDIR/],
  [["serve", "--tokens-file", "x", "--listen-without-tokens"], {}, 2, /exclude each other/],
  [["serve", "--tokens-file", "x", "--allow-host", "a"], {}, 2, /--allow-host is for/],
  [["serve", "--allow-host", "a:80"], {}, 2, /must be names of hosts/],
  [["serve", "--allow-host", "a,,b"], {}, 2, /must be names of hosts/],
  [["serve", "--tls-key", "/nonexistent/key"], {}, 2, /both --tls-certificate and --tls-key/],
  [["serve"], { CALLNUMBER_TLS_CLIENT_CA: "/nonexistent/ca" }, 2, /both --tls-certificate and --tls-key/],
  [
    ["serve", "--tls-certificate", "/none", "--tls-key", "/none"],
    {},
    2,
    /TLS certificate \/none can't be read: ENOENT/,
  ],
  [["serve", "--port", "0", "--store", "sqlite:/nonexistent/x"], {}, 1, /store_not_found/],
  [["serve", "--port", "0", "--store", "sqlite:/nonexistent/x"], { CALLNUMBER_CREATE: "true" }, 1, /store_not_found/],
  [["serve", "--create", "maybe"], {}, 2, /serve takes no arguments, not 1/],
  [["serve"], { CALLNUMBER_PUBLIC_INSPECT: "maybe" }, 2, /CALLNUMBER_PUBLIC_INSPECT "maybe" must be true or false/],
  [
    ["serve", "--host", "0.0.0.0", "--listen-without-tokens", "--no-listen-without-tls"],
    { CALLNUMBER_LISTEN_WITHOUT_TLS: "true" },
    2,
    /nothing would be encrypted/,
  ],
  [["serve", "--log-level", "loud"], {}, 2, /--log-level.*loud.*debug/s],
  [["serve", "--store", "sqlite:~/store.db"], {}, 2, /the shell leaves "~"/],
  [["serve", "--store", "sqlite://host/store.db"], {}, 2, /three slashes/],
  [["serve", "--store", "redis://u:p%zz@127.0.0.1"], {}, 2, /password holds a %.*%25/],
  [["serve", "--store", "memory:", "--namespace", "lists", "--host", "0.0.0.0"], {}, 2, /--listen-without-tokens/],
  [["move", "--store", "sqlite:/nonexistent/x"], { CALLNUMBER_TO: "redis://127.0.0.1:1" }, 2, /Pass --to URL/],
  [["init", "--store", "memory:"], {}, 2, /memory store ends with its process/],
  [["init", "--first-run", "0"], {}, 2, /--first-run.*from 1 to 1073741823/s],
  [["init", "--rate", "17"], {}, 2, /--rate.*from 1 to 16/s],
  [["init", "--nodes", "0"], {}, 2, /--nodes.*from 1 to 99/s],
  [["init", "--namespace", "Main"], {}, 2, /--namespace.*Main.*a-z/s],
  [["recover", "--store", "memory:"], {}, 2, /memory store ends with its process/],
  [["advance-version", "--store", "memory:"], {}, 2, /memory store ends with its process/],
  [["runs", "--from", "yesterday"], {}, 2, /--from.*yesterday.*2026-11-21/s],
  [["runs", "--label", "archive"], {}, 2, /--label.*archive.*name=value/s],
  [["runs", "--state", "lost"], {}, 2, /--state.*lost.*discarded, skipped, unreported/s],
  [["runs", "one"], {}, 2, /^callnumber: RUN "one": a run is a whole number/],
  [["runs", "1", "--limit", "5"], {}, 2, /run 1 is one run: --limit is for a list/],
  [["status", "--all-namespaces", "--check"], {}, 2, /--all-namespaces.*--check/s],
  [["next", "-n", "0"], {}, 2, /--count "0" must be .* 1048576/],
])("%j %j exits with %i and prints what to do", async (words, env, code, message) => {
  const { stderr } = await expectFailure(words, code, message, env);
  expect(stderr).not.toMatch(/\n {4}at /);
  // Two messages of the coordinator's package list what is possible.
  if (/the store's URL can't be used|there is no store at/.test(stderr)) return;
  for (const line of stderr.split("\n")) expect(line.length, line).toBeLessThanOrEqual(200);
});

test("a program that is no coordinator is reported as such", async () => {
  const url = await httpServer((_, response) =>
    response.writeHead(404, { "content-type": "text/html" }).end("<html>not here</html>"),
  );
  await expectFailure(["status", "--coordinator", url], 1, "not as a coordinator");
  await expectFailure(["next", "--coordinator", url], 1, "not as a coordinator");
});

test("a command exits with 0 when its reader leaves early", async () => {
  const { url } = await serve("memory:");
  for (const command of [`next -n 200000 --coordinator ${url}`, "encode -"]) {
    const { code, stdout, stderr } = await shell(
      `callnumber ${command} < <(yes 0,99,345 | head -n 100000) | head -n 2`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^\S{8}\n\S{8}\n$/);
  }
});

test("recover and move change nothing when only the environment confirms them", async () => {
  const folder = await folderForTest();
  const store = ["--store", `sqlite:${join(folder, "store.db")}`];
  const env = { CALLNUMBER_APPLY: "true", CALLNUMBER_YES: "true", CALLNUMBER_MIN_RUN: "1000000000" };
  await done("init", ...store);
  const { found, floors } = await jsonOf("recover", ...store);
  const target = `sqlite:${join(folder, "moved.db")}`;
  for (const command of [
    ["recover", ...store],
    ["move", ...store, "--to", target],
  ]) {
    const { code, stdout } = await callnumber(command, { env });
    expect([code, stdout]).toEqual([0, expect.stringContaining("Nothing was changed")]);
  }
  const after = JSON.parse((await callnumber(["recover", ...store, "--json"], { env })).stdout);
  expect(after).toMatchObject({ found, floors });
  expect(await readdir(folder)).not.toContain("moved.db");
});

test.each([
  [["runs", "--json", "abc"], 2, "misuse"],
  [["status", "--json", "--coordinator", "x"], 2, "misuse"],
  [["encode", "--json", "1"], 2, "misuse"],
  [["status", "--json", "--coordinator", NOWHERE], 1, "coordinator_unreachable"],
])("%j fails with JSON", async (words, exitCode, code) => {
  const { stderr } = await expectFailure(words, exitCode, "");
  expect(JSON.parse(stderr)).toEqual({ code, message: expect.any(String) });
});

test("the default store does not depend on the working directory, nor on a relative XDG_STATE_HOME", async () => {
  const home = await folderForTest();
  const path = join(home, ".local", "state", "callnumber", "store.db");
  await expectFailure(["init"], 1, path, { HOME: home, XDG_STATE_HOME: "relative" });
});

test("init begins at the run it is given, and makes a namespace once", async () => {
  const store = await embeddedStore();
  const lists = ["init", "--store", store, "--namespace", "lists"];
  expect((await done(...lists, "--first-run", "200000")).stdout).toContain("first run  200000");
  await expectFailure(lists, 1, "namespace_exists");
  const moved = ["init", "--store", store, "--namespace", "moved", "--first-run", "1/65548"];
  expect((await done(...moved)).stdout).toContain("Runs below 1/65548 are never leased here");
  const { url } = await serve(store);
  await done("next", "--namespace", "lists", "--coordinator", url);
  const first = (await done("next", "--namespace", "moved", "--coordinator", url)).stdout.trim();
  expect(decodeCallNumber(first)).toMatchObject({ version: 1, run: 65548 });
  await expectFailure(["next", "--coordinator", url], 1, /`callnumber init --store sqlite:\S+ --namespace main`/);
  await expectFailure(["init", "--store", store], 1, "store_locked");
});

test("a token that was typed as an argument is printed nowhere, and a warning is", async () => {
  const token = `cn_${"Ab1-_".repeat(9).slice(0, 43)}`;
  const mistyped = [[token], ["status", token], ["status", `--token=${token}`], ["next", "--namespace", token]];
  for (const words of [...mistyped, ["serve", "--port", token], ["token", "revoke", token, "--tokens-file", "none"]]) {
    const { code, stdout, stderr } = await callnumber(words);
    expect(code, words.join(" ")).toBe(2);
    expect(stdout + stderr).not.toContain(token.slice(3, 11));
    expect(stderr).toContain("token on the command line is visible");
    const asJson = await callnumber([...words, "--json"]);
    expect(asJson.stdout + asJson.stderr).not.toContain(token.slice(3, 11));
  }
});
