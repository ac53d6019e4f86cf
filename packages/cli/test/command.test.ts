/** The `callnumber` command as a new user meets it: what it prints, what it exits with, and the mistakes people make. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  callnumber,
  folderForTest,
  REPOSITORY,
  serve,
  serveOnTerminal,
  serveProcess,
  shell,
} from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";

const NOBODY = "http://127.0.0.1:1";

/** What selects a store, a coordinator, a namespace, a directory or a token has the same meaning in every command. */
const SHARED_VARIABLES = [
  "CALLNUMBER_COORDINATOR",
  "CALLNUMBER_NAMESPACE",
  "CALLNUMBER_STORE",
  "CALLNUMBER_STORE_FILE",
  "CALLNUMBER_TOKEN",
  "CALLNUMBER_TOKENS_FILE",
  "CALLNUMBER_TOKEN_FILE",
  "CALLNUMBER_CHECKPOINT_DIR",
];
const SERVE_VARIABLES = [
  "CALLNUMBER_IGNORE_FINDINGS",
  "CALLNUMBER_ALLOW_HOST",
  "CALLNUMBER_ALLOW_NETWORK_FILE_SYSTEM",
  "CALLNUMBER_MAX_CONNECTIONS",
  "CALLNUMBER_HOLDER_BURST_RUNS",
  "CALLNUMBER_HOLDER_RUNS_PER_SECOND",
  "CALLNUMBER_HOST",
  "CALLNUMBER_MAX_CONCURRENT_LEASES",
  "CALLNUMBER_LEDGER_DIR",
  "CALLNUMBER_LISTEN_WITHOUT_TLS",
  "CALLNUMBER_LISTEN_WITHOUT_TOKENS",
  "CALLNUMBER_LOG_LEVEL",
  "CALLNUMBER_COORDINATOR_NAME",
  "CALLNUMBER_PORT",
  "CALLNUMBER_PUBLIC_INSPECT",
  "CALLNUMBER_TLS_CERTIFICATE",
  "CALLNUMBER_TLS_CLIENT_CA",
  "CALLNUMBER_TLS_KEY",
  "CALLNUMBER_TOKEN_BURST_RUNS",
  "CALLNUMBER_TOKEN_RUNS_PER_SECOND",
];

describe("help", () => {
  test("without arguments shows how to begin", async () => {
    const { code, stdout } = await callnumber([]);
    expect(code).toBe(0);
    const everyday = ["serve", "next", "inspect", "encode", "decode", "runs", "status", "init"];
    for (const word of [...everyday, "recover", "To try it:"]) expect(stdout).toContain(word);
  });

  test("of every command lists its environment variables, which are all settings", async () => {
    const { stdout } = await callnumber([]);
    const commandsIn = (help: string) =>
      [...help.matchAll(/^ {2}([a-z-]+) .*\[options\]/gm)].map(([, name]) => name as string);
    const commands = commandsIn(stdout);
    const ofSchemes = commandsIn((await callnumber(["schemes", "--help"])).stdout);
    expect([commands.length, ofSchemes.length]).toEqual([16, 5]);
    const found = new Set<string>();
    for (const command of [...commands, ...ofSchemes.map((name) => `schemes ${name}`)]) {
      const help = await callnumber([...command.split(" "), "--help"]);
      expect([command, help.code]).toEqual([command, 0]);
      expect(help.stdout).toContain("--json");
      const variables = help.stdout.match(/CALLNUMBER_[A-Z_]+/g) ?? [];
      for (const variable of variables) found.add(variable);
      if (command !== "serve") expect(SHARED_VARIABLES).toEqual(expect.arrayContaining(variables));
    }
    expect([...found].sort()).toEqual([...SHARED_VARIABLES, ...SERVE_VARIABLES].sort());
  });

  test("--version is the release of the package", async () => {
    const { version } = JSON.parse(readFileSync(join(REPOSITORY, "packages/cli/package.json"), "utf8")) as {
      version: string;
    };
    for (const flag of ["--version", "-V"])
      expect(await callnumber([flag])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });
});

describe("offline", () => {
  test("encode and decode are each other's inverse", async () => {
    expect(await callnumber(["encode", "0", "99", "345"])).toEqual({ code: 0, stdout: "2VznWE2i\n", stderr: "" });
    expect(await callnumber(["decode", "2VznWE2i", "dxlGgaI3"])).toEqual({
      code: 0,
      stdout: "0,99,345\n7,1073741823,16383\n",
      stderr: "",
    });
    const { stdout } = await callnumber(["decode", "2VznWE2i", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ callNumber: "2VznWE2i", version: 0, run: 99, sequence: 345 });
  });

  test("pipes take all reference vectors both ways, whatever the line ends", async () => {
    const rows = readFileSync(join(REPOSITORY, "packages/protocol/test-vectors/v0.csv"), "utf8")
      .trim()
      .split("\n")
      .slice(1);
    const fields = rows.map((row) => row.slice(0, row.lastIndexOf(",")));
    const numbers = rows.map((row) => row.slice(row.lastIndexOf(",") + 1));
    expect(await callnumber(["encode", "-"], { input: fields.join("\r\n") })).toEqual({
      code: 0,
      stdout: `${numbers.join("\n")}\n`,
      stderr: "",
    });
    expect(await callnumber(["decode", "-"], { input: `${numbers.join("\n")}\n` })).toEqual({
      code: 0,
      stdout: `${fields.join("\n")}\n`,
      stderr: "",
    });
  });

  test("a bad line is named, the rest goes on, and the exit code is 1", async () => {
    const decoded = await callnumber(["decode", "-"], { input: "2VznWE2i\nzzzzzzzz\n\n03KOE60u\n" });
    expect(decoded).toMatchObject({ code: 1, stdout: "0,99,345\n0,8452,11827\n" });
    expect(decoded.stderr).toMatch(/^line 2: .*dxlGgaI3\nline 3: .*0 characters.*\n$/);
    const encoded = await callnumber(["encode", "-"], {
      input: "0,99,345\n0,99\n0,99,16384\n8,0,0\n0,1,2x\n0,8452,11827",
    });
    expect(encoded).toMatchObject({ code: 1, stdout: "2VznWE2i\n03KOE60u\n" });
    expect(encoded.stderr.split("\n").map((line) => line.slice(0, 7))).toEqual([
      "line 2:",
      "line 3:",
      "line 4:",
      "line 5:",
      "",
    ]);
  });

  test.each([
    [["encode", "0", "99"], 2, "three numbers"],
    [["encode", "0", "99", "16384"], 2, '"16384"'],
    [["encode", "0", "1e3", "0"], 2, '"1e3"'],
    [["decode", "2VznWE2"], 1, "7 characters"],
    [["decode"], 2, "missing required argument"],
    [["decod", "2VznWE2i"], 2, "Did you mean decode?"],
    [["decode", "--jsno", "2VznWE2i"], 2, "Did you mean --json?"],
  ])("%j exits with %i and says %j", async (parameters, code, said) => {
    const finished = await callnumber(parameters);
    expect(finished).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(said) });
  });
});

describe("with a coordinator on the embedded store", () => {
  test("the first hour: serve, next, runs, run, inspect, status, stop", async () => {
    const path = join(await folderForTest(), "deeper", "store.db");
    const coordinator = await serve(`sqlite:${path}`, "--create");
    expect(coordinator.output().stderr).toMatch(
      /NEW STORE.*store id {3}\S+\.1\.\d+\.2\n.*first run {2}1\n.*If an archive already holds/s,
    );
    const to = ["--coordinator", coordinator.url];

    const made = (await callnumber(["next", "-n", "3", ...to])).stdout.trim().split("\n");
    expect(made).toHaveLength(3);
    expect(await callnumber(["decode", ...made])).toMatchObject({ stdout: "0,1,0\n0,1,1\n0,1,2\n" });
    const asJson = await callnumber(["next", "--json", ...to]);
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      storeId: expect.stringMatching(/^[0-9a-f-]{36}\.1\.\d+\.2$/),
      callNumbers: [expect.any(String)],
    });

    expect((await callnumber(["runs", ...to])).stdout).toMatch(
      /RUNS +LEASED AT.*\n2 .*callnumber-next.*closed at 2\/0\n1 .*closed at 1\/2\n$/s,
    );
    expect((await callnumber(["runs", "1", ...to])).stdout).toContain("used up to 2");
    expect((await callnumber(["status", ...to])).stdout).toMatch(
      /high-water mark +run 2, last lease at .*\n.*guard +active since .*; generation \d+, 1 data node\n +room +65,\d{3} runs/s,
    );

    const inspected = await callnumber(["inspect", made[2] as string, ...to]);
    expect(inspected).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("reported: run 1 was leased to callnumber-next"),
    });
    const none = await callnumber(["inspect", "2VznWE2i", "nonsense!", "--json", ...to]);
    expect(none.code).toBe(1);
    expect((JSON.parse(none.stdout) as { verdict: string }[]).map(({ verdict }) => verdict)).toEqual([
      "never_leased",
      "malformed",
    ]);

    expect(await coordinator.stop()).toBe(0);
    expect(coordinator.output().stderr).toContain("SIGTERM: finishing what is under way");
    const events = coordinator
      .output()
      .stdout.trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(events.filter((event) => ["init", "start", "lease", "stop"].includes(event))).toEqual([
      "init",
      "start",
      "lease",
      "lease",
      "stop",
    ]);

    const again = await serve(`sqlite:${path}`);
    expect(again.output().stderr).not.toContain("NEW STORE");
    const after = await callnumber(["next", "--coordinator", again.url]);
    // Where nothing vouches for the file, a start is a doubt: the runs go on above the clock line, and not at 3.
    const decoded = /^0,(\d+),0\n$/.exec((await callnumber(["decode", after.stdout.trim()])).stdout);
    expect(Number(decoded?.[1])).toBeGreaterThan(2);
  });

  test("serve makes no new store by itself, and says where it looked", async () => {
    const folder = await folderForTest();
    const { code, stderr } = await callnumber(["serve", "--port", "0"], { env: { XDG_STATE_HOME: folder } });
    expect(code).toBe(1);
    expect(stderr).toContain(join(folder, "callnumber", "store.db"));
    expect(stderr).toContain("--create");
    expect(stderr).toContain("store_not_found");
    expect(await readdir(folder)).toEqual([]);
  });

  test("on a terminal a new store is made and announced, unless that was refused", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const path = join(await folderForTest(), "store.db");
    expect(await serveOnTerminal("--store", `sqlite:${path}`, "--no-create")).toContain("store_not_found");
    expect(await serveOnTerminal("--store", `sqlite:${path}`)).toContain("THIS IS A NEW STORE");
  });

  test("the default store does not depend on the working folder; a relative XDG_STATE_HOME is ignored", async () => {
    const home = await folderForTest();
    const { stdout } = await callnumber(["serve", "--help"], { env: { HOME: home, XDG_STATE_HOME: "relative" } });
    expect(stdout.replace(/\s+/g, "")).toContain(`sqlite:${join(home, ".local", "state", "callnumber", "store.db")}`);
  });

  test("a second coordinator on the same store, or on the same port, is told what is wrong", async () => {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    const { url } = await serve(store, "--create");
    const second = await callnumber(["serve", "--store", store, "--port", "0"]);
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining("store_locked") });
    const folder = await folderForTest();
    const other = `sqlite:${join(folder, "store.db")}`;
    const samePort = await callnumber(["serve", "--store", other, "--create", "--port", new URL(url).port]);
    expect(samePort).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/port \d+ on 127\.0\.0\.1 is taken.*--port.*port_in_use/s),
    });
    expect(await readdir(folder)).toEqual([]);
  });

  test("init begins where it is told, refuses to begin twice, and waits for the coordinator to stop", async () => {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    const made = await callnumber(["init", "--store", store, "--namespace", "lists", "--first-run", "200000"]);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining("first run  200000") });
    expect(await callnumber(["init", "--store", store, "--namespace", "lists"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("namespace_exists"),
    });
    const { url } = await serve(store);
    expect((await callnumber(["next", "--namespace", "lists", "--coordinator", url])).code).toBe(0);
    expect(await callnumber(["next", "--coordinator", url])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/`callnumber init --store sqlite:\S+ --namespace main`/),
    });
    expect(await callnumber(["init", "--store", store])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("store_locked"),
    });
  });

  test("stops at once at the second wish", async () => {
    const { stop, child, url, output } = await serveProcess("memory:");
    // A request that never ends keeps the first wish waiting. One before it, on the same line, tells that both have arrived.
    const half = connect(Number(new URL(url).port), "127.0.0.1");
    half.on("error", () => {});
    half.write(
      "GET /v1/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n" +
        "POST /v1/namespaces/main/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    );
    await once(half, "data");
    child.kill("SIGINT");
    while (!output().stderr.includes("finishing what is under way")) await once(child.stderr as Readable, "data");
    expect(child.exitCode).toBeNull();
    expect(await stop("SIGINT")).toBe(130);
    half.destroy();
  });
});

describe("with a coordinator on Redis", () => {
  const storeUrl = () => sharedRedis().storeUrl;

  test("nothing begins by itself: serve names the command, init makes the namespace, serve goes on where it stood", async () => {
    const store = storeUrl();
    expect(await callnumber(["serve", "--store", store, "--port", "0"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/callnumber init.*namespace_not_found/s),
    });
    expect(await callnumber(["init", "--store", store])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("store id"),
    });
    const first = await serve(store);
    const second = await serve(store);
    for (const { url } of [first, second, first]) {
      expect((await callnumber(["next", "--coordinator", url])).code).toBe(0);
    }
    expect((await callnumber(["status", "--json", "--coordinator", second.url])).stdout).toContain(
      '"highWaterMark": 3',
    );
    expect(await first.stop("SIGINT")).toBe(0);
  });
});

describe("mistakes", () => {
  test.each<[string[], Record<string, string>, number, RegExp]>([
    [
      ["status", "--coordinator", NOBODY],
      {},
      1,
      /no coordinator answers at http:\/\/127\.0\.0\.1:1 .*callnumber serve.*coordinator_unreachable/s,
    ],
    [["inspect", "2VznWE2i"], { CALLNUMBER_COORDINATOR: NOBODY }, 1, /127\.0\.0\.1:1/],
    [["next", "--coordinator", "localhost:7300"], {}, 2, /--coordinator.*localhost:7300.*http:\/\/127\.0\.0\.1:7300/s],
    [["serve"], { CALLNUMBER_PORT: "99999" }, 2, /--port.*'99999'.*CALLNUMBER_PORT.*65535/s],
    [["serve", "--store", "postgres://x"], {}, 2, /"postgres:" is no kind of store.*sqlite:PATH/s],
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
      ["serve", "--host", "192.0.2.1", "--listen-without-tokens", "--listen-without-tls"],
      {},
      2,
      /no such address.*--host/,
    ],
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
    [["serve", "--create", "maybe"], {}, 2, /too many arguments/],
    [["serve"], { CALLNUMBER_PUBLIC_INSPECT: "maybe" }, 2, /'maybe'.*CALLNUMBER_PUBLIC_INSPECT.*true or false/s],
    [
      ["serve", "--host", "0.0.0.0", "--listen-without-tokens", "--no-listen-without-tls"],
      { CALLNUMBER_LISTEN_WITHOUT_TLS: "true" },
      2,
      /nothing would be encrypted/,
    ],
    [["move", "--store", "sqlite:/nonexistent/x"], { CALLNUMBER_TO: "redis://127.0.0.1:1" }, 2, /Pass --to URL/],
    [["serve", "--log-level", "loud"], {}, 2, /--log-level.*loud.*debug/s],
    [["init"], { XDG_STATE_HOME: "/nonexistent/state" }, 1, /store_not_found/],
    [["serve", "--store", "sqlite:~/store.db"], {}, 2, /the shell leaves "~"/],
    [["serve", "--store", "sqlite://host/store.db"], {}, 2, /three slashes/],
    [["serve", "--store", "redis://u:p%zz@127.0.0.1"], {}, 2, /password holds a %.*%25/],
    [["serve", "--store", "memory:", "--namespace", "lists", "--host", "0.0.0.0"], {}, 2, /--listen-without-tokens/],
    [["init", "--store", "memory:"], {}, 2, /memory store ends with its process/],
    [["init", "--first-run", "0"], {}, 2, /--first-run.*from 1 to 1073741823/s],
    [["init", "--rate", "17"], {}, 2, /--rate.*from 1 to 16/s],
    [["init", "--nodes", "0"], {}, 2, /--nodes.*from 1 to 99/s],
    [["recover", "--store", "memory:"], {}, 2, /memory store ends with its process/],
    [["init", "--namespace", "Main"], {}, 2, /--namespace.*Main.*a-z/s],
    [["runs", "--from", "yesterday"], {}, 2, /--from.*yesterday.*2026-11-21/s],
    [["runs", "--label", "archive"], {}, 2, /--label.*archive.*name=value/s],
    [["runs", "--state", "lost"], {}, 2, /--state.*lost.*discarded, unreported/s],
    [["runs", "--follow", "--to", "2026-11-21"], {}, 2, /--follow.*--to/s],
    [["export", "--format", "xml"], {}, 2, /--format.*xml.*ndjson, csv/s],
    [["status", "--check", "--watch"], {}, 2, /--check.*--watch/s],
    [["runs", "one"], {}, 2, /'one'.*whole number/s],
    [["runs", "1", "--limit", "5"], {}, 2, /run 1 is one run: --limit is for a list/],
    [["runs", "1", "--follow"], {}, 2, /run 1 is one run: --follow is for a list/],
    [["status", "--all-namespaces", "--check"], {}, 2, /--all-namespaces.*--check/s],
    [["init", "--label", "archive"], {}, 2, /--label/],
    [["init", "--label", "Archive=x"], {}, 2, /--label/],
    [["next", "-n", "0"], {}, 2, /--count.*'0'.*1048576/s],
  ])("%j %j exits with %i and says what to do", async (parameters, env, code, said) => {
    const finished = await callnumber(parameters, { env });
    expect(finished).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(said) });
    expect(finished.stderr).not.toMatch(/\n {4}at /);
  });

  test("another program at the address is told from a coordinator", async () => {
    const other = createServer((_, response) =>
      response.writeHead(404, { "content-type": "text/html" }).end("<html>not here</html>"),
    );
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    expect(await callnumber(["status", "--coordinator", address])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("not as a coordinator"),
    });
    expect(await callnumber(["next", "--coordinator", address])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("URL of a coordinator"),
    });
    other.close();
  });

  test("a password in the coordinator's address is refused, and not shown", async () => {
    for (const command of ["status", "next"]) {
      const { code, stderr } = await callnumber([command, "--coordinator", "http://user:geheim@127.0.0.1:1"]);
      expect(code).toBe(2);
      expect(stderr).not.toContain("geheim");
    }
  });

  test("a reader that leaves early is no failure", async () => {
    const { url } = await serve("memory:");
    for (const command of [`next -n 200000 --coordinator ${url}`, "encode -"]) {
      const { code, stdout, stderr } = await shell(
        `callnumber ${command} < <(yes 0,99,345 | head -n 100000) | head -n 2`,
      );
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/^\S{8}\n\S{8}\n$/);
    }
  });

  test("serve that is asked for a namespace by name wants to find it", async () => {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    await callnumber(["init", "--store", store]);
    const refused = await callnumber(["serve", "--store", store, "--port", "0", "--namespace", "lists"]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/`callnumber init --store \S+ --namespace lists`/),
    });
  });

  test("serve reports the misuse and not the port when the port is in use too", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    for (const [parameters, code, reported] of [
      [["--store", "postgres://x"], 2, "is no kind of store"],
      [["--store", "sqlite:store.db", "--create", "--checkpoint-dir", "."], 2, "the store's own folder"],
      [["--store", "memory:", "--tls-certificate", "/none", "--tls-key", "/none"], 2, "ENOENT"],
      [["--store", "memory:", "--tokens-file", "/none"], 1, "tokens_file_invalid"],
      [["--store", "memory:"], 1, "port_in_use"],
    ] as const) {
      const refused = await callnumber(["serve", "--port", String(port), ...parameters]);
      expect(refused).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(reported) });
    }
  });

  test("recover and move change nothing when only the environment confirms them", async () => {
    const folder = await folderForTest();
    const store = ["--store", `sqlite:${join(folder, "store.db")}`];
    const target = join(folder, "moved.db");
    const env = { CALLNUMBER_APPLY: "true", CALLNUMBER_YES: "true", CALLNUMBER_MIN_RUN: "1000000000" };
    await callnumber(["init", ...store]);
    const before = JSON.parse((await callnumber(["recover", ...store, "--json"])).stdout);
    for (const command of [
      ["recover", ...store],
      ["move", ...store, "--to", `sqlite:${target}`],
    ]) {
      expect(await callnumber(command, { env })).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("Nothing was changed"),
      });
    }
    const after = JSON.parse((await callnumber(["recover", ...store, "--json"], { env })).stdout);
    expect(after).toMatchObject({ found: before.found, floors: before.floors });
    expect(await readdir(folder)).not.toContain("moved.db");
  });

  test("with --json misuse is JSON too", async () => {
    for (const parameters of [
      ["runs", "--json", "abc"],
      ["status", "--json", "--coordinator", "x"],
      ["encode", "--json", "1"],
    ]) {
      const { code, stdout, stderr } = await callnumber(parameters);
      expect([code, stdout]).toEqual([2, ""]);
      expect(JSON.parse(stderr)).toMatchObject({ code: "misuse" });
    }
  });

  test("with --json a failure is JSON too", async () => {
    const { stderr } = await callnumber(["status", "--json", "--coordinator", NOBODY]);
    expect(JSON.parse(stderr)).toMatchObject({
      code: "coordinator_unreachable",
      message: expect.stringContaining(NOBODY),
    });
  });
});
