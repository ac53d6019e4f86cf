/**
 * Passwords and tokens: every command is given some, rightly and wrongly, in every way there is, and none prints one. Files that hold
 * one are not used when other users may read or change them.
 */
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  callnumber,
  callnumberProcess,
  type Finished,
  folderForTest,
  serveProcess,
  serveProcessWith,
} from "../../../test/processes/command.js";
import { type RespServer, startEchoingRedis } from "../../../test/redis/resp-server.js";
import { sharedRedis, usersUnavailable } from "../../../test/redis/test-redis.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { newToken } from "../../coordinator/src/tokens/tokens-file.js";
import { done, expectFailure, NOWHERE } from "./commands-for-test.js";

const WRONG = "geheim-und-falsch-0123456789";

type Env = Readonly<Record<string, string>>;

let folder: string;

beforeEach(async ({ skip }) => {
  // Without users a URL of that Redis has no password.
  skip(usersUnavailable() !== undefined, usersUnavailable());
  folder = await folderForTest();
});

describe("a password in a URL", () => {
  /** The words each command needs to come as far as it can; those with `coordinator` query one, the others open a store. */
  const COMMANDS: Readonly<Record<string, { readonly words?: string; readonly uses?: "coordinator" | "nothing" }>> = {
    serve: { words: "--namespace none-of-that-name --port 0" },
    init: { words: "--namespace main" },
    next: { uses: "coordinator" },
    encode: { words: "0 1 1", uses: "nothing" },
    decode: { words: "2VznWE2i", uses: "nothing" },
    explain: { words: "store_locked", uses: "nothing" },
    conformance: { words: "--rules token -- false", uses: "nothing" },
    complete: { words: "zsh", uses: "nothing" },
    inspect: { words: "2VznWE2i", uses: "coordinator" },
    runs: { uses: "coordinator" },
    export: { uses: "coordinator" },
    status: { uses: "coordinator" },
    recover: {},
    "advance-version": { words: "--force-early" },
    doctor: {},
    backup: { words: "/nonexistent/backup" },
    retention: {},
    move: {},
    schemes: { words: "parse 2VznWE2i", uses: "nothing" },
    token: { words: "list --tokens-file /nonexistent/tokens", uses: "nothing" },
  };
  /** One with a store, with two, with a coordinator, with neither: what all commands share is tried with these alone. */
  const ONE_OF_EACH_KIND = new Set(["serve", "move", "inspect", "decode", "schemes"]);

  let echoing: RespServer;

  beforeAll(async () => {
    echoing = await startEchoingRedis();
  });
  afterAll(() => echoing.close());

  test("the table has every command", async () => {
    const { stdout } = await done("--help");
    const listed = [...stdout.matchAll(/^ {2}([a-z-]+)(?: |$)/gm)].map(([, name]) => name as string);
    expect(listed.filter((name) => name !== "help").sort()).toEqual(Object.keys(COMMANDS).sort());
  });

  test.each(Object.entries(COMMANDS))("%s prints no password of any URL", async (name, { words = "", uses }) => {
    const { operatorUrl } = sharedRedis();
    const { password } = new URL(operatorUrl);
    const wrongUrl = operatorUrl.replace(password, WRONG);
    const running: Promise<Finished>[] = [];
    const run = (more: readonly string[], env: Env = {}) =>
      void running.push(callnumber([name, ...words.split(" ").filter(Boolean), ...more], { env }));
    const isMove = name === "move";
    const isSample = ONE_OF_EACH_KIND.has(name);
    const typed = (url: string) => ["--store", url, ...(isMove ? ["--to", url] : [])];
    if (uses === undefined) {
      const { port } = echoing;
      run(typed(operatorUrl));
      run(["--json", ...typed(operatorUrl)]);
      run(typed(wrongUrl));
      run(["--json", ...(isMove ? ["--to", wrongUrl] : [])], { CALLNUMBER_STORE: wrongUrl });
      run(["--json", ...typed(`redis://me:${WRONG}@127.0.0.1:${port}`)]);
      if (isSample) {
        const [open, file] = ["open-url", "store-url"].map((base) => join(folder, base)) as [string, string];
        run(["--store-file", replaceFile(file, `${wrongUrl}\n`), ...typed(wrongUrl).slice(2)]);
        run(["--store-file", replaceFile(open, wrongUrl, 0o644), ...typed(wrongUrl).slice(2)]);
        if (isMove) run(["--store", wrongUrl, "--to-file", file]);
        for (const [index, url] of malformedUrls(WRONG).entries()) {
          run(index % 2 === 0 ? typed(url) : ["--json", `--store=${url}`, ...(isMove ? [`--to=${url}`] : [])]);
        }
        run(typed(`redis-cluster://me:${WRONG}@127.0.0.1:${port}`));
        run(typed(`redis-sentinel://127.0.0.1:${port}/m?sentinelUsername=s&sentinelPassword=${WRONG}`));
      }
    }
    if (uses === "coordinator") {
      run(["--coordinator", `http://me:${WRONG}@127.0.0.1:1`]);
      run([`--coordinator=me:${WRONG}@127.0.0.1:1`, "--json"]);
      const forms = ["http://me:", "http://me:1/", "http//me:", "ftp://me:", "http://me:1#", "http://me:x/"];
      for (const before of isSample ? forms : forms.slice(0, 1)) {
        run([], { CALLNUMBER_COORDINATOR: `${before}${WRONG}@127.0.0.1:1` });
      }
    }
    // As an unknown argument. These two accept any text as data.
    if (name !== "decode" && name !== "schemes") run([wrongUrl]);
    if (isSample) {
      run(["--sotre", wrongUrl]);
      run([`--json=${wrongUrl}`]);
    }
    run([], { CALLNUMBER_STORE: `x:${WRONG}@y`, CALLNUMBER_STORE_FILE: "/nonexistent/store-url" });
    for (const { stdout, stderr } of await Promise.all(running)) {
      // A message may cut what it repeats.
      for (const secret of [password, WRONG]) expect(stdout + stderr).not.toContain(secret.slice(0, 12));
    }
  });

  /** URLs that are rejected for another part than the password. */
  function malformedUrls(password: string): readonly string[] {
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

  test("a running coordinator shows no password: log, console, metrics, process list", async () => {
    const { operatorUrl } = sharedRedis();
    const { password } = new URL(operatorUrl);
    await done("init", "--store", operatorUrl);
    const { url, child, output, stop } = await serveProcess(operatorUrl, "--log-level", "debug");
    const shown = [readFileSync(`/proc/${child.pid}/cmdline`, "latin1")];
    expect(shown[0]).toMatch(/serve.*redis:\/\/operator:\*\*\*@/);
    await done("next", "--coordinator", url);
    const status = "/v1/namespaces/main/status";
    for (const path of ["/v1/namespaces", status, "/metrics", "/v1/settings", "/openapi.json", "/healthz", "/nope"]) {
      shown.push(await (await fetch(url + path)).text());
    }
    expect(shown.join("")).toContain(`"store":"redis://operator@`);
    for (const more of [[], ["--json"]]) {
      const env = { CALLNUMBER_STORE: operatorUrl };
      const doctor = await callnumber(["doctor", "--coordinator", url, ...more], { env });
      expect(doctor.stdout).toContain("command line");
      shown.push(doctor.stdout, doctor.stderr);
    }
    expect(await stop()).toBe(0);
    shown.push(output().stdout, output().stderr);
    for (const text of shown) expect(text).not.toContain(password);
    expect(output().stderr.match(/a password or token on the command line/g)).toHaveLength(1);
  });

  test("a command does not warn of a password that is in the environment", async () => {
    const env = { CALLNUMBER_STORE: sharedRedis().operatorUrl };
    const { stdout, stderr } = await callnumber(["init"], { env });
    expect(stdout + stderr).not.toContain("a password or token on the command line");
  });
});

describe("--store-file", () => {
  test("--store-file replaces --store, and the command line takes precedence over the environment", async () => {
    const file = replaceFile(join(folder, "store-url"), `sqlite:${folder}/of-the-file.db\n`);
    const url = `sqlite:${folder}/typed.db`;
    const init = (words: readonly string[], env: Env) => callnumber(["init", ...words], { env });
    expect((await init(["--store-file", file], { CALLNUMBER_STORE: url })).stdout).toContain("of-the-file.db");
    expect((await init(["--store", url], { CALLNUMBER_STORE_FILE: file })).stdout).toContain("typed.db");
    await expectFailure(["init", "--store", url, "--store-file", file], 2, "give one of them");
    await expectFailure(["init"], 2, "give one of them", { CALLNUMBER_STORE: url, CALLNUMBER_STORE_FILE: file });
  });

  test("--to-file of move has the URL of the new store", async () => {
    const file = replaceFile(join(folder, "new-url"), `sqlite:${folder}/new.db\n`);
    const from = ["--store", `sqlite:${folder}/old.db`];
    await done("init", ...from);
    const { stdout } = await done("move", ...from, "--to-file", file, "--json");
    expect(stdout).toContain(`"to": "sqlite:${folder}/new.db"`);
    const both = ["move", ...from, "--to-file", file, "--to", "sqlite:x"];
    await expectFailure(both, 2, /--to and --to-file .*give one of them/);
  });

  test.each(["\n", "redis://h\nredis://i\n"])("a store file with %j is rejected", async (text) => {
    const file = replaceFile(join(folder, "store-url"), text);
    await expectFailure(["doctor", "--store-file", file], 2, "must hold one line");
  });
});

describe("a file with a secret", () => {
  const SERVE = ["serve", "--store", "memory:", "--port", "0"];
  const TOKEN = `cn_${"A".repeat(43)}`;
  const certificate = () => writeTlsFiles(folder, newAuthority().issue());
  const tokenFile = () => replaceFile(join(folder, "me.token"), `${TOKEN}\n`);

  /** `make`: makes it, for its owner alone. `accepted`: the message when the file is used, as something else is wrong. */
  test.each<[what: string, make: () => string, words: (file: string) => readonly string[], accepted: RegExp]>([
    [
      "a token of status",
      tokenFile,
      (file) => ["status", "--coordinator", NOWHERE, "--token-file", file],
      /coordinator_unreachable/,
    ],
    [
      "a token of next",
      tokenFile,
      (file) => ["next", "--coordinator", NOWHERE, "--token-file", file],
      /no coordinator answers|coordinator_unreachable/,
    ],
    [
      "a tokens file",
      () => replaceFile(join(folder, "tokens"), "{}\n"),
      (file) => [...SERVE, "--tokens-file", file],
      /line 1/,
    ],
    [
      "a store's URL",
      () => replaceFile(join(folder, "store"), "neither:this"),
      (file) => ["doctor", "--store-file", file],
      /is not a kind of store/,
    ],
    [
      "a TLS key",
      () => replaceFile(certificate().key, "no key"),
      (file) => [...SERVE, "--tls-key", file, "--tls-certificate", file.replace(/key$/, "crt")],
      /can't be used/,
    ],
    [
      "a key for Redis",
      () => replaceFile(join(folder, "redis.key"), "no key"),
      (file) => ["doctor", "--store", `rediss://127.0.0.1:1?certificate=${certificate().certificate}&key=${file}`],
      /store_unavailable/,
    ],
  ])("%s is used only when no other user may read or change it", async (_, make, words, accepted) => {
    // tokens-file.test.ts lists every mode that the rule allows.
    for (const mode of [0o604, 0o660, 0o600, 0o640]) {
      const file = make();
      chmodSync(file, mode);
      const { code, stdout, stderr } = await callnumber([...words(file)]);
      if (mode === 0o600 || mode === 0o640) {
        expect(stderr).toMatch(accepted);
        expect(stderr).not.toContain("its mode is");
        continue;
      }
      expect(code).not.toBe(0);
      expect(stderr).toContain(`its mode is 0${mode.toString(8)}`);
      expect(stderr).toContain(`chmod 600 ${file}`);
      expect(stdout + stderr).not.toContain(TOKEN);
    }
  });
});

describe("a token over plain HTTP", () => {
  /** Of no machine (RFC 6890). */
  const ELSEWHERE = "http://240.0.0.1:7300";
  const WARNING = /^callnumber: the token goes to http:\/\/240\.0\.0\.1:7300 in plain text.*$/gm;
  const env = { CALLNUMBER_TOKEN: "cn_secret" };

  test.each(["status --json", "export", "next"])("%s warns once, on standard error", async (words) => {
    const { stdout, stderr } = await callnumber([...words.split(" "), "--coordinator", ELSEWHERE], { env });
    expect(stderr.match(WARNING)).toHaveLength(1);
    expect(stdout + stderr).not.toContain("cn_secret");
    expect(stdout).not.toContain("plain text");
  });

  test.each<[string, string, Env]>([
    ["without a token", ELSEWHERE, {}],
    ["to this machine by its address", NOWHERE, env],
    ["to this machine by its other address", "http://[::1]:1", env],
    ["to this machine by its name", "http://localhost:1", env],
    ["with TLS", "https://240.0.0.1:7300", env],
  ])("status warns of nothing %s", async (_, coordinator, given) => {
    const { code, stderr } = await callnumber(["status", "--coordinator", coordinator], { env: given });
    expect(code).toBe(1);
    expect(stderr).not.toContain("plain text");
  });
});

describe("debug output of libraries", () => {
  /** With what shows that the variable has an effect; undefined where nothing is printed. */
  const VARIABLES: readonly [string, string, RegExp | undefined][] = [
    ["DEBUG", "*", undefined],
    ["DEBUG", "ioredis:*", undefined],
    ["DEBUG", " other:* ioredis:redis -nothing ", undefined],
    ["NODE_DEBUG", "*", /^NET \d+: /m],
  ];

  test.each(VARIABLES)("%s=%s prints no password of Redis", async (name, value, printed) => {
    const { operatorUrl } = sharedRedis();
    const env = { CALLNUMBER_STORE: operatorUrl, [name]: value };
    const { code, stdout, stderr } = await callnumberProcess(["doctor"], { env });
    expect(code, stdout).toBeLessThan(2);
    expect(stdout).toContain("redis://operator@");
    if (printed !== undefined) expect(stderr).toMatch(printed);
    expect(stdout + stderr).not.toContain(new URL(operatorUrl).password);
  });

  test.each(VARIABLES.filter(([, value]) => value === "*"))(
    "%s=%s prints no token, neither of the client nor of the coordinator",
    async (name, value, printed) => {
      const tokens = join(folder, "tokens");
      const made = await done("token", "create", "--tokens-file", tokens, "--role", "read", "--all-namespaces");
      const env = { [name]: value };
      const running = await serveProcessWith({ env }, "memory:", "--tokens-file", tokens);
      const statusWith = (token: string) => {
        const file = replaceFile(join(folder, "me.token"), `${token}\n`);
        return callnumberProcess(["status", "--coordinator", running.url, "--token-file", file], { env });
      };
      const [valid, unknown] = [made.stdout.trim(), newToken()];
      const finished = [await statusWith(valid), await statusWith(unknown)];
      expect(finished.map(({ code }) => code)).toEqual([0, 1]);
      await running.stop();
      for (const { stdout, stderr } of [...finished, running.output()]) {
        if (printed !== undefined) expect(stdout + stderr).toMatch(printed);
        for (const secret of [valid, unknown]) expect(stdout + stderr).not.toContain(secret.slice(3));
      }
    },
  );
});
