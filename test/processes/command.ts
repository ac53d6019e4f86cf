/** Runs the `callnumber` command as a user does: as a process of its own, with a home of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { removeWithMarkers } from "../markers-of-stores.js";

export const REPOSITORY = join(import.meta.dirname, "..", "..");
export const COMMAND = join(REPOSITORY, "packages", "coordinator", "bin", "callnumber.js");

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A folder that is removed when the test ends, with all that stores in it have left. */
export async function folderForTest(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  onTestFinished(() => removeWithMarkers(folder));
  return folder;
}

/** Runs the command to its end. */
export async function callnumber(
  parameters: readonly string[],
  { input = "", env = {} }: RunOptions = {},
): Promise<Finished> {
  const child = start(parameters, env);
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output() };
}

/** Runs a line of the shell, in which `$CALLNUMBER` is the command. */
export async function shell(line: string): Promise<Finished> {
  const child = spawn("bash", ["-o", "pipefail", "-c", line], {
    env: { ...process.env, CALLNUMBER: `${process.execPath} ${COMMAND}` },
  });
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output() };
}

/** Runs `serve` with a terminal, until it listens or ends. Resolves to what stood on the terminal. Needs the program `script`. */
export async function serveOnTerminal(...parameters: readonly string[]): Promise<string> {
  const line = [process.execPath, COMMAND, "serve", "--port", "0", ...parameters].join(" ");
  const child = spawn("script", ["-qefc", line, "/dev/null"], { stdio: ["ignore", "pipe", "pipe"] });
  const output = collect(child);
  const ended = once(child, "close");
  while (child.exitCode === null && !output().stdout.includes("listening on")) {
    await Promise.race([ended, once(child.stdout, "data")]);
  }
  // The terminal hangs up, and `serve` with it.
  child.kill("SIGTERM");
  await ended;
  return output().stdout;
}

export interface RunningCommand {
  readonly output: () => { stdout: string; stderr: string };
  /** Sends the signal and resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a command that goes on until it is stopped. It ends with the test. */
export function startCommand(
  parameters: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningCommand {
  const child = start(parameters, env);
  child.stdin?.end();
  const output = collect(child);
  const ended = once(child, "close") as Promise<[number | null]>;
  const stop = async (signal: NodeJS.Signals = "SIGINT") => {
    child.kill(signal);
    return (await ended)[0];
  };
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) await stop("SIGKILL");
  });
  return { output, stop };
}

/** Starts a command with a terminal of so many columns, on which Ctrl-C can be typed. Needs the program `script`. */
export function startOnTerminal(columns: number, ...parameters: readonly string[]) {
  const line = `stty cols ${columns} rows 30; exec ${[process.execPath, COMMAND, ...parameters].join(" ")}`;
  // Whoever runs the tests may want no colours in their report.
  const { NO_COLOR: _, FORCE_COLOR: __, ...env } = process.env;
  const child = spawn("script", ["-qefc", line, "/dev/null"], { env: { ...env, TERM: "xterm" } });
  const output = collect(child);
  const ended = once(child, "close") as Promise<[number | null]>;
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
  });
  return {
    output,
    ended: async () => (await ended)[0],
    typeCtrlC: () => void child.stdin.write("\u0003"),
  };
}

export interface RunningCoordinator {
  readonly url: string;
  readonly child: ChildProcess;
  readonly output: () => { stdout: string; stderr: string };
  /** Sends the signal and resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts `callnumber serve` on a free port and waits until it listens. It ends with the test. */
export async function serve(store: string, ...more: readonly string[]): Promise<RunningCoordinator> {
  return await serveWith({}, store, ...more);
}

/** As `serve`, with more in its environment. */
export async function serveWith(
  env: Readonly<Record<string, string>>,
  store: string,
  ...more: readonly string[]
): Promise<RunningCoordinator> {
  const child = start(["serve", "--store", store, "--port", "0", ...more], env);
  child.stdin?.end();
  const output = collect(child);
  const ended = once(child, "close") as Promise<[number | null]>;
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    return (await ended)[0];
  };
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) await stop("SIGKILL");
  });
  for (;;) {
    const [, url] = /listening on (https?:\/\/\S+?),? /.exec(output().stderr) ?? [];
    if (url !== undefined) return { url, child, output, stop };
    const hasEnded = await Promise.race([
      ended.then(() => true),
      once(child.stderr as NodeJS.ReadableStream, "data").then(() => false),
    ]);
    if (hasEnded) throw new Error(`callnumber serve ended: ${output().stderr}`);
  }
}

function start(parameters: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  // Settings of whoever runs the tests must not reach the command.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_"));
  return spawn(process.execPath, [COMMAND, ...parameters], { env: { ...Object.fromEntries(inherited), ...env } });
}

function collect(child: ChildProcess): () => { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (chunk: string) => {
      output[name] += chunk;
    });
  }
  return () => output;
}
