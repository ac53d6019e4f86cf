/** SIGHUP to `callnumber serve`: sent for by hand it ends nothing, and a terminal that closes ends it in order. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { COMMAND, callnumber, folderForTest, serve, shellLine } from "../../../test/processes/command.js";

const namesIn = (log: string): string[] =>
  log
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => (JSON.parse(line) as { msg: string }).msg);

test("without files to read again it is told of and ends nothing, however often", async () => {
  const coordinator = await serve("memory:");
  const told = () => namesIn(coordinator.output().stdout).filter((name) => name === "sighup_ignored").length;
  for (const count of [1, 2]) {
    coordinator.send("SIGHUP");
    await expect.poll(told).toBe(count);
  }
  expect(coordinator.output().stderr).toContain("SIGHUP: there is neither a tokens file nor a certificate");
  expect((await fetch(`${coordinator.url}/readyz`)).status).toBe(200);
  expect(await coordinator.stop()).toBe(0);
  expect(namesIn(coordinator.output().stdout).at(-1)).toBe("stop");
});

/** Runs `serve` with a terminal as its standard input, and closes that when it listens. Resolves to its log and its words at its end. */
async function closedTerminal(...parameters: readonly string[]): Promise<{ log: string; words: string }> {
  const folder = await folderForTest();
  const [log, words] = [join(folder, "log"), join(folder, "words")];
  const line = shellLine(process.execPath, COMMAND, "serve", "--store", "memory:", "--port", "0", ...parameters);
  // The fourth file is open as long as anybody of them lives: whoever closes a terminal is not told when its programs end.
  const terminal = spawn("script", ["-qefc", `exec ${line} > ${log} 2> ${words}`, "/dev/null"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...process.env, SHELL: "/bin/sh" },
  });
  onTestFinished(() => void terminal.kill("SIGKILL"));
  const lives = (terminal.stdio[3] as Readable).resume();
  const text = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : "");
  await expect.poll(() => text(words)).toContain("the console:");
  terminal.kill("SIGKILL");
  await once(lives, "close");
  return { log: text(log), words: text(words) };
}

test("a terminal that closes ends it in order", async () => {
  const { log, words } = await closedTerminal();
  expect(namesIn(log).at(-1)).toBe("stop");
  expect(words.trimEnd().split("\n").at(-1)).toBe("SIGHUP: finishing what is under way");
});

test("a terminal that closes ends it in order also where SIGHUP asks for the tokens to be read again", async () => {
  const tokens = join(await folderForTest(), "tokens");
  await callnumber(["token", "create", "--tokens-file", tokens, "--role", "read", "--all-namespaces"]);
  const { log, words } = await closedTerminal("--tokens-file", tokens);
  expect(namesIn(log)).toContain("stop");
  expect(words).toContain("SIGHUP: finishing what is under way");
  expect(words).not.toContain("Assertion");
});
