/** The output of `callnumber serve` as a process: a log that can't be written, and a terminal. */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@callnumber/client";
import { expect, onTestFinished, test } from "vitest";
import { COMMAND, folderForTest, startOnTerminal } from "../../../test/processes/command.js";
import { newStoreId } from "../../coordinator/src/guard/store-id.js";
import { thisMachine } from "../../coordinator/src/stores/sqlite/machine.js";
import { SqliteStore } from "../../coordinator/src/stores/sqlite/store.js";
import { stepOn } from "../../coordinator/test/steps-for-test.js";
import { done, jsonLines } from "./commands-for-test.js";

const LEASE_COUNT = 300;

/** Runs `serve` with its standard output there, until it listens. `before`: what the shell does first. */
async function serveInto(path: string, before = ":") {
  const line = `${before}; exec "$0" "$@" >> "${path}"`;
  const serve = [process.execPath, COMMAND, "serve", "--store", "memory:", "--port", "0"];
  const child = spawn("sh", ["-c", line, ...serve], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit") as Promise<[number | null]>;
  let messages = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    messages += text;
  });
  const url = () => /listening on (http:\S+),/.exec(messages)?.[1];
  await expect.poll(url).toBeDefined();
  const stop = async () => {
    child.kill("SIGTERM");
    return (await ended)[0];
  };
  return { url: url() as string, pid: child.pid as number, messages: () => messages, stop };
}

async function leaseOften(coordinator: string): Promise<void> {
  for (let count = 0; count < LEASE_COUNT; count++) {
    await using client = createClient({ coordinator, holder: { name: "importer", labels: { fill: "x".repeat(60) } } });
    await client.take(1);
  }
}

test("a log on a full disk stops no lease, is reported, and is complete once there is room", async () => {
  const path = join(await folderForTest(), "log");
  const firstRuns = () =>
    jsonLines<{ msg: string; firstRun: number }>(readFileSync(path, "utf8"))
      .filter(({ msg }) => msg === "lease")
      .map(({ firstRun }) => firstRun);
  // A soft limit, so that it can be lifted again from outside.
  const { url, pid, messages, stop } = await serveInto(path, "ulimit -S -f 8");
  await leaseOften(url);
  expect(messages()).toMatch(/Can't write the log.*EFBIG/);
  // Clients lease ahead: the coordinator knows how many leases there were.
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const leaseCount = Number(/^callnumber_leases_total\{.*\} (\d+)$/m.exec(metrics)?.[1]);
  expect(leaseCount).toBeGreaterThanOrEqual(LEASE_COUNT);
  expect(firstRuns().length).toBeLessThan(leaseCount);
  expect(spawnSync("prlimit", ["--pid", String(pid), "--fsize=unlimited"]).status).toBe(0);
  await expect.poll(messages).toContain("The log is written again. Lines dropped since the start: 0");
  expect([firstRuns().length, new Set(firstRuns()).size]).toEqual([leaseCount, leaseCount]);
  expect(await stop()).toBe(0);
  expect(readFileSync(path, "utf8")).toMatch(/"msg":"stop"\}\n$/);
});

test("a log reader that stalls delays neither leases nor SIGTERM", async () => {
  const path = join(await folderForTest(), "pipe");
  expect(spawnSync("mkfifo", [path]).status).toBe(0);
  // Held open for reading, and not read.
  const file = openSync(path, "r+");
  onTestFinished(() => closeSync(file));
  const { url, messages, stop } = await serveInto(path);
  await leaseOften(url);
  expect(await stop()).toBe(0);
  expect(messages()).toContain("The last lines of the log were not written: its reader stalls");
});

const HOUR_MS = 3_600_000;

/** An embedded store with namespace main that was written `idleMs` ago. */
async function idleStore(path: string, idleMs: number): Promise<void> {
  const now = () => Date.now() - idleMs;
  // Its clock is behind, and no clock was set.
  const { clockOffsetMs } = thisMachine();
  const store = new SqliteStore({ path, create: true, now, machine: { clockOffsetMs } });
  const initialized = stepOn(store, "main", {
    step: "init",
    storeId: newStoreId({ firstRun: 1, initializedAtMs: now(), rate: 2 }),
    isSilenceAccepted: false,
    nodeCount: 1,
    proofKey: randomBytes(32).toString("hex"),
  });
  await initialized.finally(() => store.close());
}

test("a store that was idle recovers with one line on the terminal, and raises no alarm", async () => {
  const folder = await folderForTest();
  const path = join(folder, "store.db");
  await idleStore(path, 2 * HOUR_MS);
  const checkpoint = ["--checkpoint-dir", join(folder, "checkpoint")];
  const serving = startOnTerminal(120, "serve", "--port", "0", "--store", `sqlite:${path}`, ...checkpoint);
  const shown = () => serving.output().stdout;
  await expect.poll(shown).toMatch(/^Idle for 2 h: skipped [\d,]+ runs, leasing in \d s\r?$/m);
  await expect.poll(shown).toContain("listening on ");
  const [, url] = /listening on (http:\S+?),/.exec(shown()) ?? [];
  const to = ["--coordinator", url as string];
  await done("next", "-n", "3", ...to);
  const status = await done("status", ...to);
  expect(status.stdout).toMatch(/^ {2}last hour +1 run, /m);
  expect(status.stdout).toMatch(/^ {2}last recovery +Idle for 2 h: skipped [\d,]+ runs \(20/m);
  expect(status.stdout).toMatch(/^ {2}alarms +none$/m);
  await done("status", "--check", ...to);
  serving.typeCtrlC();
  await serving.ended();
  expect(shown()).not.toMatch(/\{"|[Ww]arning|alarm/);
});
