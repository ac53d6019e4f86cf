/** Runs the `callnumber` command as it is built: in the process of the test, or as a process of its own, as a user does. */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { shellWord } from "@callnumber/protocol/api";
import { onTestFinished } from "vitest";
import { run } from "../../packages/cli/dist/run.js";
import { removeWithMarkers } from "../markers-of-stores.js";

export const REPOSITORY = join(import.meta.dirname, "..", "..");
export const COMMAND = join(REPOSITORY, "packages", "cli", "bin", "callnumber.js");
/** With `callnumber`, and the Node that runs the tests. */
export const PATH_WITH_COMMAND = [
  join(REPOSITORY, "node_modules", ".bin"),
  dirname(process.execPath),
  process.env["PATH"],
].join(delimiter);

/** What a pipe hands over at once. */
const PIECE_BYTES = 65_536;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Undefined: without the variable. */
type Env = Readonly<Record<string, string | undefined>>;

export interface RunOptions {
  readonly input?: string;
  readonly env?: Env;
}

/** A folder that is removed when the test ends, with all that stores in it have left. */
export async function folderForTest(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  onTestFinished(() => removeWithMarkers(folder));
  return folder;
}

/** Runs the command to its end, in this process. */
export function callnumber(parameters: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return finished(startHere(parameters, options));
}

/** As `callnumber`, in a process of its own: for what the system does to a process, or reads when one starts. */
export function callnumberProcess(parameters: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const { input, env = {} } = options;
  return finished(started(spawnCommand(parameters, env), input));
}

/** Runs a line of the shell, in which `callnumber` is the command. */
export function shell(line: string): Promise<Finished> {
  const env = { ...process.env, PATH: PATH_WITH_COMMAND };
  return finished(started(spawn("bash", ["-o", "pipefail", "-c", line], { env })));
}

async function finished({ output, ended }: Started): Promise<Finished> {
  return { code: await ended, ...output() };
}

export function shellLine(...words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

export interface RunningCommand {
  readonly output: () => { stdout: string; stderr: string };
  /** A command in this process hears those signals only that it listens to. */
  send(signal: NodeJS.Signals): void;
  /** Sends the signal and resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a command in this process that goes on until it is stopped. It ends with the test. */
export function startCommand(parameters: readonly string[], env: Env = {}): RunningCommand {
  return untilTestEnds(startHere(parameters, { env }), "SIGINT");
}

/** As `startCommand`, in a process of its own. */
export function startProcess(parameters: readonly string[], env: Env = {}): RunningCommand {
  return untilTestEnds(started(spawnCommand(parameters, env)), "SIGINT", "SIGKILL");
}

/** Starts a command with a terminal of so many columns, on which Ctrl-C can be typed. Needs the program `script`. */
export function startOnTerminal(columns: number, ...parameters: readonly string[]) {
  return startProgramOnTerminal(columns, COMMAND, ...parameters);
}

/** As `startOnTerminal`, any program of Node. */
export function startProgramOnTerminal(columns: number, ...words: readonly string[]) {
  const line = `stty cols ${columns} rows 30; exec ${shellLine(process.execPath, ...words)}`;
  // The person who runs the tests may want no colors in the report.
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
    type: (text: string) => void child.stdin.write(text),
    typeCtrlC: () => void child.stdin.write("\u0003"),
  };
}

export interface RunningCoordinator extends RunningCommand {
  readonly url: string;
}

/** Starts `callnumber serve` in this process, on a free port, and waits until it listens. It ends with the test. */
export function serve(store: string, ...more: readonly string[]): Promise<RunningCoordinator> {
  return serveWith({}, store, ...more);
}

/** As `serve`, with more in its environment. */
export async function serveWith(env: Env, store: string, ...more: readonly string[]): Promise<RunningCoordinator> {
  const command = startHere(["serve", "--store", store, "--port", "0", ...more], { env });
  const running = untilTestEnds(command, "SIGTERM");
  return { url: await urlIn(command), ...running };
}

export interface ServingProcess extends RunningCoordinator {
  readonly child: ChildProcess;
}

/** As `serve`, in a process of its own. */
export async function serveProcess(store: string, ...more: readonly string[]): Promise<ServingProcess> {
  return await serveProcessWith({}, store, ...more);
}

export interface ProcessOptions {
  readonly env?: Env;
  /** Words before the program, which run it in another place. */
  readonly runIn?: readonly string[];
  /** The script of the command. Default: that of this repository. */
  readonly script?: string;
}

/** As `serveProcess`, with more in its environment or in another place. */
export async function serveProcessWith(
  { env = {}, runIn = [], script = COMMAND }: ProcessOptions,
  store: string,
  ...more: readonly string[]
): Promise<ServingProcess> {
  const child = spawnCommand(["serve", "--store", store, "--port", "0", ...more], env, runIn, script);
  const command = started(child);
  const running = untilTestEnds(command, "SIGTERM", "SIGKILL");
  return { url: await urlIn(command), child, ...running };
}

/** A command that has just been started. */
interface Started extends Pick<RunningCommand, "output" | "send"> {
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
  /** Resolves when it has written more. */
  wrote(): Promise<unknown>;
}

/** Stops it with the first signal where the test does so, and at the end of the test with the second one. */
function untilTestEnds(
  { output, send, ended }: Started,
  stopSignal: NodeJS.Signals,
  endSignal = stopSignal,
): RunningCommand {
  const stop = async (signal = stopSignal) => {
    send(signal);
    return await ended;
  };
  onTestFinished(async () => void (await stop(endSignal)));
  return { output, send, stop };
}

/** The URL that `serve` prints, as soon as it does. */
async function urlIn({ output, ended, wrote }: Started): Promise<string> {
  const isOver = ended.then(() => true);
  for (;;) {
    const [, url] = /listening on (https?:\/\/\S+?),? /.exec(output().stderr) ?? [];
    if (url !== undefined) return url;
    if (await Promise.race([isOver, wrote().then(() => false)])) {
      throw new Error(`callnumber serve ended: ${output().stderr}`);
    }
  }
}

/** As a pipe hands them over. */
function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** Runs a command in this process, without a terminal. */
function startHere(parameters: readonly string[], { input = "", env = {} }: RunOptions): Started {
  // After a stat of a pipe or a socket, realpath in Node 20 follows no link below a folder that it knows, and an import finds no package.
  statSync(REPOSITORY);
  const written = { stdout: "", stderr: "" };
  const events = new EventEmitter();
  const into = (name: "stdout" | "stderr") =>
    new Writable({
      decodeStrings: false,
      write(chunk: Buffer | string, _encoding, done) {
        written[name] += chunk.toString();
        events.emit("written");
        done();
      },
    });
  const ended = run(parameters, {
    stdin: Readable.from(pieces(Buffer.from(input)), { objectMode: false }),
    stdout: into("stdout"),
    stderr: into("stderr"),
    env: { ...inherited(), ...env },
    signals: events,
  });
  return {
    output: () => written,
    ended,
    send: (signal: NodeJS.Signals) => void events.emit(signal),
    wrote: () => once(events, "written"),
  };
}

function started(child: ChildProcess, input = ""): Started {
  // A process that ends before it has read everything breaks the pipe.
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  const closed = once(child, "close") as Promise<[number | null]>;
  return {
    output: collect(child),
    ended: closed.then(([code]) => code),
    send: (signal: NodeJS.Signals) => void child.kill(signal),
    wrote: () => once(child.stderr as NodeJS.ReadableStream, "data"),
  };
}

function spawnCommand(parameters: readonly string[], env: Env, runIn: readonly string[] = [], script = COMMAND) {
  const [program = process.execPath, ...words] = [...runIn, process.execPath, script, ...parameters];
  return spawn(program, words, { env: { ...inherited(), ...env } });
}

/** Settings of the person who runs the tests must not reach the command, nor may it ask the coordinator of that person. */
function inherited(): Readonly<Record<string, string | undefined>> {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_"));
  return { ...Object.fromEntries(others), CALLNUMBER_COORDINATOR: "http://127.0.0.1:1" };
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
