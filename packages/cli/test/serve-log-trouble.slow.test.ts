/** `callnumber serve` whose log can't be written, on a file that may not grow and to a reader that stalls: it leases, and it stops. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, createReadStream, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@callnumber/client";
import { expect, onTestFinished, test } from "vitest";
import { COMMAND, folderForTest } from "../../../test/processes/command.js";

const LEASE_COUNT = 300;

/** Runs it with its standard output there, until it listens. `before`: what the shell does first. */
async function serveInto(path: string, before = ":") {
  const line = `${before}; exec "$0" "$@" >> "${path}"`;
  const serve = [process.execPath, COMMAND, "serve", "--store", "memory:", "--port", "0"];
  const child = spawn("sh", ["-c", line, ...serve], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit") as Promise<[number | null]>;
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    words += text;
  });
  const url = () => /listening on (http:\S+),/.exec(words)?.[1];
  await expect.poll(url).toBeDefined();
  const stop = async () => {
    child.kill("SIGTERM");
    return (await ended)[0];
  };
  return { url: url() as string, pid: child.pid as number, words: () => words, stop };
}

async function leaseOften(coordinator: string): Promise<void> {
  for (let count = 0; count < LEASE_COUNT; count++) {
    await using client = createClient({ coordinator, holder: { name: "importer", labels: { fill: "x".repeat(60) } } });
    await client.take(1);
  }
}

function firstRunsIn(log: string): number[] {
  return log
    .split("\n")
    .filter((line) => line.endsWith('"msg":"lease"}'))
    .map((line) => (JSON.parse(line) as { firstRun: number }).firstRun);
}

/** Clients lease ahead: how many leases there were is for the coordinator to say. */
async function leaseCountAt(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^callnumber_leases_total\{.*\} (\d+)$/m.exec(metrics)?.[1]);
}

test("a log without room for more ends nothing; it is said, and all lines are written when there is room", async () => {
  const log = join(await folderForTest(), "log");
  // A soft limit, so that it can be lifted again from outside.
  const { url, pid, words, stop } = await serveInto(log, "ulimit -S -f 8");
  await leaseOften(url);
  expect(words()).toMatch(/Can't write the log.*EFBIG/);
  const leaseCount = await leaseCountAt(url);
  expect(leaseCount).toBeGreaterThanOrEqual(LEASE_COUNT);
  expect(firstRunsIn(readFileSync(log, "utf8")).length).toBeLessThan(leaseCount);
  expect(spawnSync("prlimit", ["--pid", String(pid), "--fsize=unlimited"]).status).toBe(0);
  await expect.poll(words).toContain("The log is written again. Lines dropped since the start: 0");
  const written = firstRunsIn(readFileSync(log, "utf8"));
  expect([written.length, new Set(written).size]).toEqual([leaseCount, leaseCount]);
  expect(await stop()).toBe(0);
  expect(readFileSync(log, "utf8")).toMatch(/"msg":"stop"\}\n$/);
});

async function pipeForTest(): Promise<{ path: string; file: number }> {
  const path = join(await folderForTest(), "pipe");
  expect(spawnSync("mkfifo", [path]).status).toBe(0);
  // Held open for reading, and not read.
  const file = openSync(path, "r+");
  return { path, file };
}

test("a reader that stalls keeps nobody waiting, neither leases nor SIGTERM", async () => {
  const { path, file } = await pipeForTest();
  onTestFinished(() => closeSync(file));
  const { url, words, stop } = await serveInto(path);
  await leaseOften(url);
  expect(await stop()).toBe(0);
  expect(words()).toContain("The last lines of the log were not written: its reader stalls");
});

test("a reader that goes on has every lease's line, and the last line", async () => {
  const { path, file } = await pipeForTest();
  const { url, stop } = await serveInto(path);
  await leaseOften(url);
  const leaseCount = await leaseCountAt(url);
  let log = "";
  const reader = createReadStream("", { fd: file, encoding: "utf8" }).on("data", (text) => {
    log += text;
  });
  onTestFinished(() => void reader.destroy());
  expect(await stop()).toBe(0);
  await expect.poll(() => log).toMatch(/"msg":"stop"\}\n$/);
  expect(firstRunsIn(log)).toHaveLength(leaseCount);
});
