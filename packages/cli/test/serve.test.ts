/** `callnumber serve`: what it starts, what it prints, which store it makes, and how it stops. */
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect, Server } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { readTlsMaterial, SILENT_LOG } from "@callnumber/coordinator";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  COMMAND,
  callnumber,
  folderForTest,
  serve,
  serveProcess,
  shell,
  shellLine,
  startOnTerminal,
} from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { writeTlsFiles } from "../../../test/tls/files.js";
import { reloadTlsOnHangUp } from "../src/serve/tls.js";
import { beInCommand, done, embeddedStore, expectFailure, jsonLines, jsonOf } from "./commands-for-test.js";

const eventsIn = (log: string) => jsonLines(log).map(({ msg }) => msg);

describe("serve on the embedded store", () => {
  test("serve, next, runs, inspect and status work together", async () => {
    const path = join(await folderForTest(), "deeper", "store.db");
    const coordinator = await serve(`sqlite:${path}`, "--create");
    expect(coordinator.output().stderr).toMatch(
      /new store.*store id {3}\S+\.1\.\d+\.2\n.*first run {2}1\n.*If an archive already holds/s,
    );
    const to = ["--coordinator", coordinator.url];
    const made = (await done("next", "-n", "3", ...to)).stdout.trim().split("\n");
    expect(await done("decode", ...made)).toMatchObject({ stdout: "0,1,0\n0,1,1\n0,1,2\n" });
    expect(await jsonOf("next", ...to)).toMatchObject({
      storeId: expect.stringMatching(/^[0-9a-f-]{36}\.1\.\d+\.2$/),
      callNumbers: [expect.any(String)],
    });
    expect((await done("runs", ...to)).stdout).toMatch(/RUNS +LEASED AT.*\n1 .*callnumber-coordinator.*unreported\n$/s);
    expect((await done("status", ...to)).stdout).toMatch(
      /high-water mark +run 1, last lease at .*\n.*guard +active since .*; 1 data node\n +headroom +65,\d{3} runs/s,
    );
    const inspected = await done("inspect", made[2] as string, ...to);
    expect(inspected.stdout).toMatch(
      /run 1 was leased to callnumber-coordinator .*; made for callnumber-next \(\S+\) from/,
    );
    const none = await callnumber(["inspect", "2VznWE2i", "nonsense!", "--json", ...to]);
    expect(none.code).toBe(1);
    expect(JSON.parse(none.stdout)).toMatchObject([{ verdict: "never_leased" }, { verdict: "malformed" }]);
    expect(await coordinator.stop()).toBe(0);
    const { stdout, stderr } = coordinator.output();
    expect(stderr).toContain("SIGTERM: finishing requests in flight");
    const events = eventsIn(stdout).filter((event) => ["init", "start", "lease", "stop"].includes(event));
    expect(events).toEqual(["init", "start", "lease", "stop"]);

    const again = await serve(`sqlite:${path}`);
    expect(again.output().stderr).not.toContain("new store");
    const after = await done("next", "--coordinator", again.url);
    // Where nothing vouches for the file, a start may be a rollback: the runs go on above the run ceiling, and not at 3.
    const [, run] = (await done("decode", after.stdout.trim())).stdout.split(",");
    expect(Number(run)).toBeGreaterThan(1);
    const { stdout: ledger } = await done("runs", "1", "--coordinator", again.url);
    expect(ledger).toMatch(/closed.*used up to 3/s);
  });

  test("serve without --create makes no store, and prints where it looked", async () => {
    const folder = await folderForTest();
    const { stderr } = await expectFailure(["serve", "--port", "0"], 1, "store_not_found", { XDG_STATE_HOME: folder });
    expect(stderr).toContain(join(folder, "callnumber", "store.db"));
    expect(stderr).toContain("--create");
    expect(await readdir(folder)).toEqual([]);
  });

  test("serve on a terminal makes a new store, unless --no-create forbids it", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const store = await embeddedStore();
    const words = ["serve", "--port", "0", "--store", store];
    const rejected = startOnTerminal(120, ...words, "--no-create");
    await rejected.ended();
    expect(rejected.output().stdout).toContain("store_not_found");
    const made = startOnTerminal(120, ...words);
    await expect.poll(() => made.output().stdout).toContain("listening on");
    expect(made.output().stdout).toContain("This is a new store");
    made.typeCtrlC();
    expect(await made.ended()).toBe(0);
  });

  test("serve fails on a store that is in use, whatever else uses the port", async () => {
    const store = await embeddedStore();
    const { url } = await serve(store, "--create");
    for (const port of ["0", new URL(url).port])
      await expectFailure(["serve", "--store", store, "--port", port], 1, "store_locked");
  });

  test("serve asks for its port once, and closes its store when another program has the port", async () => {
    const store = await embeddedStore();
    // A first try would show nothing: another program may take the port after it.
    const listening = vi.spyOn(Server.prototype, "listen");
    onTestFinished(() => listening.mockRestore());
    const { url } = await serve("memory:");
    expect(listening).toHaveBeenCalledTimes(1);
    const inUse = /port \d+ on 127\.0\.0\.1 is in use.*--port.*port_in_use/s;
    const words = ["serve", "--store", store, "--create", "--log-level", "silent", "--port", new URL(url).port];
    await expectFailure(words, 1, inUse);
    expect((await serve(store)).output().stderr).toMatch(/^namespaces: main$/m);
  });

  test("serve fails for a named namespace that does not exist", async () => {
    const store = await embeddedStore();
    await done("init", "--store", store);
    const words = ["serve", "--store", store, "--port", "0", "--namespace", "lists", "--log-level", "silent"];
    await expectFailure(words, 1, /`callnumber init --store \S+ --namespace lists`/);
  });

  test("serve leases from the intact namespace, and from a damaged one after stop, recover and start", async () => {
    const store = await embeddedStore();
    await done("init", "--store", store);
    const lists = ["--namespace", "lists"];
    const { storeId } = await jsonOf<{ storeId: string }>("init", ...lists, "--store", store);
    const database = new DatabaseSync(store.slice("sqlite:".length));
    database.exec("UPDATE namespaces SET c = '7' WHERE name = 'lists'");
    database.close();
    // The named one is reported as the others are.
    const running = await serve(store, ...lists);
    const { stderr } = running.output();
    expect(stderr).toMatch(/^namespaces: main$/m);
    expect(stderr).toMatch(
      /^namespace lists does not lease \(store_corrupt\): .*Stop this coordinator, repair .*start it again$/m,
    );
    await done("next", "--coordinator", running.url);
    await expectFailure(["status", ...lists, "--coordinator", running.url], 1, "store_corrupt");
    const apply = ["recover", ...lists, "--store", store, "--store-id", storeId, "--apply"];
    await expectFailure(apply, 1, "Stop it first, or ask the coordinator over HTTP");
    await running.stop();
    expect((await done(...apply)).stdout).toContain("Start the coordinator");
    const after = await serve(store);
    expect(after.output().stderr).toMatch(/^namespaces: lists, main$|^namespaces: main, lists$/m);
  });
});

test("serve on Redis needs init, and two coordinators share the namespace", async () => {
  const store = sharedRedis().storeUrl;
  await expectFailure(["serve", "--store", store, "--port", "0"], 1, /callnumber init.*namespace_not_found/s);
  expect((await done("init", "--store", store)).stdout).toContain("store id");
  const first = await serve(store);
  const second = await serve(store);
  for (const { url } of [first, second, first]) await done("next", "--coordinator", url);
  expect(await jsonOf("status", "--coordinator", second.url)).toMatchObject({ highWaterMark: 2 });
  expect(await first.stop("SIGINT")).toBe(0);
});

test("serve reports a misuse and not the port when the port is in use too", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  for (const [words, code, reported] of [
    [["--store", "mysql://x"], 2, "is not a kind of store"],
    [["--store", "sqlite:store.db", "--create", "--checkpoint-dir", "."], 2, "the store's own folder"],
    [["--store", "memory:", "--tls-certificate", "/none", "--tls-key", "/none"], 2, "ENOENT"],
    [["--store", "memory:", "--tokens-file", "/none"], 1, "tokens_file_invalid"],
    [["--store", "memory:", "--log-level", "silent"], 1, "port_in_use"],
  ] as const) {
    await expectFailure(["serve", "--port", String(port), ...words], code, reported);
  }
});

test("serve stops at once on a second signal", async () => {
  const { stop, child, url, output } = await serveProcess("memory:");
  // A request that never ends delays the stop. The response to the one before it, on the same connection, shows that both have arrived.
  const half = connect(Number(new URL(url).port), "127.0.0.1");
  half.on("error", () => {});
  half.write(
    "GET /v1/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n" +
      "POST /v1/namespaces/main/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
  );
  await once(half, "data");
  child.kill("SIGINT");
  while (!output().stderr.includes("finishing requests in flight")) await once(child.stderr as Readable, "data");
  expect(child.exitCode).toBeNull();
  expect(await stop("SIGINT")).toBe(130);
  half.destroy();
});

describe("SIGHUP", () => {
  test("SIGHUP without files to reload is logged and stops nothing, however often", async () => {
    const coordinator = await serve("memory:");
    const ignored = () => eventsIn(coordinator.output().stdout).filter((event) => event === "sighup_ignored").length;
    for (const count of [1, 2]) {
      coordinator.send("SIGHUP");
      await expect.poll(ignored).toBe(count);
    }
    expect(coordinator.output().stderr).toContain("SIGHUP: there is neither a tokens file nor a certificate");
    expect((await fetch(`${coordinator.url}/readyz`)).status).toBe(200);
    expect(await coordinator.stop()).toBe(0);
    expect(eventsIn(coordinator.output().stdout).at(-1)).toBe("stop");
  });

  test("SIGHUP has a listener also while a server with TLS stops: it must not cut the stop short", async () => {
    const { certificate, key } = writeTlsFiles(await folderForTest(), newAuthority().issue());
    const paths = { certificate, key, clientCa: undefined };
    const signals = new EventEmitter();
    beInCommand(signals);
    reloadTlsOnHangUp(paths, readTlsMaterial(paths, Date.now()), () => {}, SILENT_LOG)();
    expect(signals.listenerCount("SIGHUP")).toBe(1);
  });

  /** Runs `serve` with a terminal as its standard input, and closes that when it listens. Resolves to its log and messages at its end. */
  async function closedTerminal(...more: readonly string[]): Promise<{ log: string; messages: string }> {
    const folder = await folderForTest();
    const [log, messages] = [join(folder, "log"), join(folder, "messages")];
    const line = shellLine(process.execPath, COMMAND, "serve", "--store", "memory:", "--port", "0", ...more);
    // The fourth file is open as long as any of the processes runs: closing a terminal does not wait for its programs.
    const terminal = spawn("script", ["-qefc", `exec ${line} > ${log} 2> ${messages}`, "/dev/null"], {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
      env: { ...process.env, SHELL: "/bin/sh" },
    });
    onTestFinished(() => void terminal.kill("SIGKILL"));
    const open = (terminal.stdio[3] as Readable).resume();
    const text = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : "");
    await expect.poll(() => text(messages)).toContain("the console:");
    terminal.kill("SIGKILL");
    await once(open, "close");
    return { log: text(log), messages: text(messages) };
  }

  test.each([false, true])(
    "a terminal that closes stops serve in order (with a tokens file: %j)",
    async (hasTokens) => {
      const tokens = join(await folderForTest(), "tokens");
      await done("token", "create", "--tokens-file", tokens, "--role", "read", "--all-namespaces");
      const { log, messages } = await closedTerminal(...(hasTokens ? ["--tokens-file", tokens] : []));
      expect(eventsIn(log)).toContain("stop");
      expect(messages).toContain("SIGHUP: finishing requests in flight");
      expect(messages).not.toContain("Assertion");
    },
  );
});
