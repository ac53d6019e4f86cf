/**
 * A database server of a test's own, spoken to through the client program that comes with it: what a test sends is what a person
 * would type, and every value comes back as text. Knows nothing of which server it is.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { killAtExit } from "./dies-with-run.js";

const ASK_EVERY_MS = 50;
/** A safety net for a server that runs and never answers: its log then says more than the time limit of a test. */
const START_LIMIT_MS = 300_000;
const LOG_TAIL_CHARS = 2_000;

export interface SqlServer {
  readonly version: string;
  /**
   * Runs statements in a database, one after the other, until one fails. Resolves to the rows of all of them, each a list of its
   * columns as text; NULL is the word `NULL`.
   * @throws Error with what the server said of the statement that failed. Those before it have run.
   */
  run(sql: string, database?: string): Promise<string[][]>;
  /** Kills the server, and removes its folder. */
  dispose(): Promise<void>;
}

export interface Command {
  readonly program: string;
  readonly words: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** Who runs it, where that is someone else. */
  readonly asUser?: { readonly uid: number; readonly gid: number };
}

/** Runs a program to its end with `input`. @throws Error with what it complained of when it fails. */
export async function outputOf(command: Command, input = ""): Promise<string> {
  const child = start(command);
  // A program that ends before it has read everything breaks the pipe, and says why in its own words.
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  const pieces: { out: Buffer[]; err: Buffer[] } = { out: [], err: [] };
  child.stdout?.on("data", (piece: Buffer) => pieces.out.push(piece));
  child.stderr?.on("data", (piece: Buffer) => pieces.err.push(piece));
  const [code] = (await once(child, "close")) as [number | null];
  const complaint = Buffer.concat(pieces.err).toString().trim();
  if (code !== 0) throw new Error(complaint || `${command.program} ended with ${code}`);
  return Buffer.concat(pieces.out).toString();
}

/** Rows as the client programs print them here: a line each, columns between tabs. */
export function rowsIn(output: string): string[][] {
  return output === ""
    ? []
    : output
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => line.split("\t"));
}

export interface RunningServer {
  /** Resolves when the process is gone. Default: SIGKILL. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts the server; resolves when `isUp` does. @throws Error with the end of its log when it ends before that, or never answers. */
export async function launch(command: Command, isUp: () => Promise<unknown>): Promise<RunningServer> {
  const child = start(command);
  await once(child, "spawn");
  child.stdin?.end();
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (piece: Buffer) => (log = (log + piece).slice(-LOG_TAIL_CHARS)));
  }
  const ended = once(child, "close");
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  killAtExit(child);
  const kill = async (signal: NodeJS.Signals = "SIGKILL") => {
    child.kill(signal);
    await ended;
  };
  const givenUpAt = Date.now() + START_LIMIT_MS;
  while (!hasEnded() && Date.now() < givenUpAt) {
    const answered = await isUp().then(
      () => true,
      () => false,
    );
    if (answered && !hasEnded()) return { kill };
    await Promise.race([delay(ASK_EVERY_MS), ended]);
  }
  const fate = hasEnded() ? "ended before it answered" : `gave no answer in ${START_LIMIT_MS} ms`;
  await kill();
  throw new Error(`${command.program} ${fate}. The end of its log:\n${log}`);
}

function start({ program, words, environment, asUser }: Command): ChildProcess {
  return spawn(program, words, { env: { ...process.env, ...environment }, ...asUser });
}
