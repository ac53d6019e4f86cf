/** `run`: commands in the process of another program, several at a time, which leave that program as it was. */
import process from "node:process";
import { PassThrough, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { callnumber, callnumberProcess, serve, startCommand } from "../../../test/processes/command.js";
import { run } from "../dist/run.js";
import { NOWHERE } from "./commands-for-test.js";

/** Command lines with standard input and exit code. */
const ENDINGS: readonly (readonly [words: readonly string[], input: string, code: number])[] = [
  [["encode", "0", "99", "345"], "", 0],
  [[], "", 0],
  [["decode", "-"], "2VznWE2i\nnonsense\n", 1],
  [["status", "--check", "--coordinator", NOWHERE], "", 3],
  [["nonsense"], "", 2],
];

test("a command prints and exits the same in this process and in one of its own", async () => {
  for (const [words, input, code] of ENDINGS) {
    const here = await callnumber(words, { input });
    expect([words, here.code]).toEqual([words, code]);
    expect(here).toEqual(await callnumberProcess(words, { input }));
  }
});

test("run changes neither streams, exit code nor listeners of the process, and does not end it", async () => {
  const exit = vi.spyOn(process, "exit");
  const writes = [vi.spyOn(process.stdout, "write"), vi.spyOn(process.stderr, "write")];
  onTestFinished(() => void vi.restoreAllMocks());
  const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)]);
  const before = [process.exitCode, process.title, listeners()];
  for (const [words, input] of ENDINGS) await callnumber(words, { input });
  const { url, stop } = await serve("memory:");
  expect((await callnumber(["next", "--coordinator", url])).code).toBe(0);
  expect(await stop()).toBe(0);
  expect([process.exitCode, process.title, listeners()]).toEqual(before);
  for (const spied of [exit, ...writes]) expect(spied).not.toHaveBeenCalled();
});

test("run reads settings from the given environment and not from that of the process", async () => {
  process.env["CALLNUMBER_NAMESPACE"] = "No Namespace";
  onTestFinished(() => void delete process.env["CALLNUMBER_NAMESPACE"]);
  expect(await callnumber(["status"], { env: { CALLNUMBER_COORDINATOR: NOWHERE } })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(NOWHERE),
  });
  expect(await callnumber(["status"], { env: { CALLNUMBER_NAMESPACE: "No Namespace" } })).toMatchObject({ code: 2 });
});

test("concurrent commands keep their output, environment and exit codes apart", async () => {
  const { url, output } = await serve("memory:");
  const ports = [1, 2, 3, 4];
  const failed = ports.map((port) =>
    callnumber(["status"], { env: { CALLNUMBER_COORDINATOR: `http://[::1]:${port}` } }),
  );
  const [next, piped, ...others] = await Promise.all([
    callnumber(["next"], { env: { CALLNUMBER_COORDINATOR: url } }),
    callnumber(["decode", "-"], { input: "2VznWE2i\n" }),
    ...failed,
  ]);
  expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\w{8}\n$/), stderr: "" });
  expect(piped).toEqual({ code: 0, stdout: "0,99,345\n", stderr: "" });
  for (const [index, { code, stdout, stderr }] of others.entries()) {
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr.match(/\[::1\]:\d/g)).toEqual([`[::1]:${ports[index]}`]);
  }
  expect(output().stdout).not.toContain("2VznWE2i");
});

test("a command that is stopped writes nothing after run has resolved", async () => {
  const generating = startCommand(["schemes", "generate", "--scheme", "uuid", "-n", "100000000"]);
  await expect.poll(() => generating.output().stdout).not.toBe("");
  expect(await generating.stop("SIGINT")).toBe(130);
  const { length } = generating.output().stdout;
  await delay(100);
  expect(generating.output().stdout).toHaveLength(length);
});

test("a command ends with 0 when its reader leaves and with 1 when the disk is full, although its input continues", async () => {
  for (const [code, exitCode] of [
    ["EPIPE", 0],
    ["ENOSPC", 1],
  ] as const) {
    let writeCount = 0;
    const stdout = new Writable({
      write(_chunk, _encoding, done) {
        writeCount++;
        done(Object.assign(new Error(code), { code }));
      },
    });
    stdout.on("error", () => {});
    const stdin = new PassThrough();
    stdin.write("0,99,345\n");
    const stderr = new PassThrough();
    expect(await run(["encode", "-"], { stdin, stdout, stderr, env: {} })).toBe(exitCode);
    const closed = new Promise((resolve) => stdin.once("close", resolve));
    stdin.write("0,99,345\n");
    await closed;
    expect(writeCount).toBe(1);
  }
});
