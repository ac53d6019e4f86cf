/** A password in a store's URL: every command is given one, rightly and wrongly, in every way there is, and none prints it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callnumber, type Finished, folderForTest, serveProcess } from "../../../test/processes/command.js";
import { type RespServer, startEchoingRedis } from "../../../test/redis/resp-server.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { replaceFile } from "../../../test/tls/files.js";

const WRONG = "geheim-und-falsch-0123456789";

/** What each command needs behind it to come as far as it can; those with `coordinator` ask one, the others open a store. */
const COMMANDS: Readonly<
  Record<string, { readonly words: readonly string[]; readonly asks?: "coordinator" | "nothing" }>
> = {
  serve: { words: ["--namespace", "none-of-that-name", "--port", "0"] },
  init: { words: ["--namespace", "main"] },
  next: { words: [], asks: "coordinator" },
  encode: { words: ["0", "1", "1"], asks: "nothing" },
  decode: { words: ["2VznWE2i"], asks: "nothing" },
  inspect: { words: ["2VznWE2i"], asks: "coordinator" },
  runs: { words: [], asks: "coordinator" },
  export: { words: [], asks: "coordinator" },
  status: { words: [], asks: "coordinator" },
  recover: { words: [] },
  "advance-version": { words: ["--force-early"] },
  doctor: { words: [] },
  backup: { words: ["/nonexistent/backup"] },
  retention: { words: [] },
  move: { words: [] },
  schemes: { words: ["parse", "2VznWE2i"], asks: "nothing" },
  token: { words: ["list", "--tokens-file", "/nonexistent/tokens"], asks: "nothing" },
};

/** One of each kind: with a store, with a coordinator, with neither. */
const ONE_OF_EACH_KIND = new Set(["serve", "move", "inspect", "decode", "schemes"]);

let echoing: RespServer;

beforeAll(async () => {
  echoing = await startEchoingRedis();
});
afterAll(() => echoing.close());

test("the table names every command", async () => {
  const { stdout } = await callnumber(["--help"]);
  const listed = [...stdout.matchAll(/^ {2}([a-z-]+)(?: |$)/gm)].map(([, name]) => name);
  const known = Object.keys(COMMANDS);
  expect(listed.filter((name) => name !== "help" && !known.includes(name as string))).toEqual([]);
  expect(known.filter((name) => !listed.includes(name))).toEqual([]);
});

describe.each(Object.entries(COMMANDS))("callnumber %s", (name, { words, asks }) => {
  test("shows no password, whatever it is given and however", async () => {
    const { operatorUrl } = sharedRedis();
    const { password } = new URL(operatorUrl);
    const folder = await folderForTest();
    const wrongUrl = operatorUrl.replace(password, WRONG);
    const running: Promise<Finished>[] = [];
    const run = (more: readonly string[], env: Readonly<Record<string, string>> = {}) =>
      void running.push(callnumber([name, ...words, ...more], { env }));
    const isMove = name === "move";
    const typed = (url: string) => ["--store", url, ...(isMove ? ["--to", url] : [])];
    if (asks === undefined) {
      run(typed(operatorUrl));
      run(["--json", ...typed(operatorUrl)]);
      run(typed(wrongUrl));
      run(["--json", ...(isMove ? ["--to", wrongUrl] : [])], { CALLNUMBER_STORE: wrongUrl });
      const { port } = echoing;
      run(["--json", ...typed(`redis://me:${WRONG}@127.0.0.1:${port}`)]);
      // Files are read, and what can't be read as an address is judged, by one function for all of them; a move has two addresses.
      if (ONE_OF_EACH_KIND.has(name)) {
        const [open, file] = ["open-url", "store-url"].map((base) => join(folder, base)) as [string, string];
        run(["--store-file", replaceFile(file, `${wrongUrl}\n`), ...typed(wrongUrl).slice(2)]);
        run(["--store-file", replaceFile(open, wrongUrl, 0o644), ...typed(wrongUrl).slice(2)]);
        if (isMove) run(["--store", wrongUrl, "--to-file", file]);
        for (const [index, spoilt] of spoiltForms(WRONG).entries()) {
          const words = typed(spoilt);
          run(index % 2 === 0 ? words : ["--json", ...joined(words)]);
        }
        run(typed(`redis-cluster://me:${WRONG}@127.0.0.1:${port}`));
        run(typed(`redis-sentinel://127.0.0.1:${port}/m?sentinelUsername=s&sentinelPassword=${WRONG}`));
      }
    }
    if (asks === "coordinator") {
      run(["--coordinator", `http://me:${WRONG}@127.0.0.1:1`]);
      run([`--coordinator=me:${WRONG}@127.0.0.1:1`, "--json"]);
      // Judged by one function for all of them, too.
      const forms = ["http://me:", "http://me:1/", "http//me:", "ftp://me:", "http://me:1#", "http://me:x/"];
      for (const before of ONE_OF_EACH_KIND.has(name) ? forms : forms.slice(0, 1)) {
        run([], { CALLNUMBER_COORDINATOR: `${before}${WRONG}@127.0.0.1:1` });
      }
    }
    // Where it has no place at all: an unknown argument is reported by one function for all of them. These two take any text as data.
    if (name !== "decode" && name !== "schemes") run([wrongUrl]);
    if (ONE_OF_EACH_KIND.has(name)) {
      run(["--sotre", wrongUrl]);
      run([`--json=${wrongUrl}`]);
    }
    run([], { CALLNUMBER_STORE: `x:${WRONG}@y`, CALLNUMBER_STORE_FILE: "/nonexistent/store-url" });
    const finished = await Promise.all(running);
    for (const { stdout, stderr } of finished) {
      // Whoever repeats one may cut it.
      for (const secret of [password, WRONG]) expect(stdout + stderr).not.toContain(secret.slice(0, 12));
    }
  });
});

/** Each flag and its value as one word. */
function joined(words: readonly string[]): string[] {
  return words.flatMap((word, at) => (at % 2 === 0 ? [`${word}=${words[at + 1]}`] : []));
}

/** Addresses that are refused because of something beside the password. */
function spoiltForms(password: string): readonly string[] {
  return [
    `redis://me:${password}@127.0.0.1:1`,
    `redis://me:${password}@127.0.0.1/x`,
    `redis://me:${password}@127.0.0.1?foo=1`,
    `redis://me:${password}%zz@127.0.0.1`,
    `redis://me:${password}/more@127.0.0.1`,
    `rediss://me:${password}@127.0.0.1:1?ca=/nonexistent/ca`,
    `redis-sentinel://127.0.0.1:1/m?sentinelUsername=s&sentinelPassword=${password}`,
    `redis-cluster://me:${password}@127.0.0.1:1,127.0.0.1:2`,
    `redis-sentinel://127.0.0.1:1/m/${password}`,
    `postgres://me:${password}@127.0.0.1`,
    `me:${password}@127.0.0.1`,
  ];
}

describe("a coordinator", () => {
  test("shows the password of its store nowhere while it runs: log, console, metrics, process list", async () => {
    const { operatorUrl } = sharedRedis();
    const { password } = new URL(operatorUrl);
    expect(await callnumber(["init", "--store", operatorUrl])).toMatchObject({ code: 0 });
    const { url, child, output, stop } = await serveProcess(operatorUrl, "--log-level", "debug");
    const shown = [readFileSync(`/proc/${child.pid}/cmdline`, "latin1")];
    expect(shown[0]).toContain("serve");
    expect(shown[0]).toContain("redis://operator:***@");
    expect((await callnumber(["next", "--coordinator", url])).code).toBe(0);
    for (const path of [
      "/v1/namespaces",
      "/v1/namespaces/main/status",
      "/metrics",
      "/v1/settings",
      "/openapi.json",
      "/healthz",
      "/nope",
    ]) {
      shown.push(await (await fetch(url + path)).text());
    }
    expect(shown.join("")).toContain(`"store":"redis://operator@`);
    for (const more of [[], ["--json"]]) {
      const doctor = await callnumber(["doctor", "--coordinator", url, ...more], {
        env: { CALLNUMBER_STORE: operatorUrl },
      });
      expect(doctor.stdout).toContain("command line");
      shown.push(doctor.stdout, doctor.stderr);
    }
    expect(await stop()).toBe(0);
    shown.push(output().stdout, output().stderr);
    for (const text of shown) expect(text).not.toContain(password);
    expect(output().stderr.match(/a password on the command line/g)).toHaveLength(1);
  });

  test("says nothing of passwords where none was typed", async () => {
    const { operatorUrl } = sharedRedis();
    const { stdout, stderr } = await callnumber(["init"], { env: { CALLNUMBER_STORE: operatorUrl } });
    expect(stdout + stderr).not.toContain("a password on the command line");
  });
});

describe("--store-file", () => {
  test("stands in for --store, and what is typed stands above what the environment says", async () => {
    const folder = await folderForTest();
    const file = replaceFile(join(folder, "store-url"), `sqlite:${folder}/of-the-file.db\n`);
    const typed = `sqlite:${folder}/typed.db`;
    const made = async (parameters: readonly string[], env: Readonly<Record<string, string>>) =>
      callnumber(["init", ...parameters], { env });
    expect(await made(["--store-file", file], { CALLNUMBER_STORE: typed })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("of-the-file.db"),
    });
    expect(await made(["--store", typed], { CALLNUMBER_STORE_FILE: file })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("typed.db"),
    });
    for (const [parameters, env] of [
      [["--store", typed, "--store-file", file], {}],
      [[], { CALLNUMBER_STORE: typed, CALLNUMBER_STORE_FILE: file }],
    ] as const) {
      expect(await made(parameters, env)).toMatchObject({ code: 2, stderr: expect.stringMatching(/give one of them/) });
    }
  });

  test("of the new store is --to-file of move", async () => {
    const folder = await folderForTest();
    const file = replaceFile(join(folder, "new-url"), `sqlite:${folder}/new.db\n`);
    const from = ["--store", `sqlite:${folder}/old.db`];
    await callnumber(["init", ...from]);
    expect(await callnumber(["move", ...from, "--to-file", file, "--json"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"to": "sqlite:${folder}/new.db"`),
    });
    expect(await callnumber(["move", ...from, "--to-file", file, "--to", "sqlite:x"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--to and --to-file .*give one of them/),
    });
  });

  test.each([
    ["that others may read", "memory:\n", 0o604, /mode is 0604; .*chmod 600/],
    ["that is empty", "\n", 0o600, /must hold one line/],
    ["with more than the URL", "redis://h\nredis://i\n", 0o600, /must hold one line/],
  ])("%s is refused", async (_, text, mode, reason) => {
    const file = replaceFile(join(await folderForTest(), "store-url"), text, mode);
    const { code, stderr } = await callnumber(["doctor", "--store-file", file]);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(reason) });
  });
});
