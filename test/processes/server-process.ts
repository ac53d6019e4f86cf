/** Servers of a test's own. None outlives the process that started it, however that one ends. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

const ASK_EVERY_MS = 10;
/** A safety net for a server that runs and never answers: its log then shows more than the time limit of a test. */
const START_LIMIT_MS = 300_000;
const LOG_TAIL_CHARS = 2_000;
/** Every other signal that a test would send ends a server. */
const SIGNALS_IT_OUTLIVES: ReadonlySet<NodeJS.Signals> = new Set(["SIGSTOP", "SIGCONT"]);

const HOST = "127.0.0.1";
/** Below the ports that Linux and macOS give to outgoing connections, or one of those could take a killed server's port before it is started again. */
const PORT_FIRST = 10_000;
const PORT_LAST = 32_000;
const PORT_TRIES = 20;

export interface Command {
  readonly program: string;
  readonly words: readonly string[];
  /** Words before the program that run it in another network. */
  readonly runIn?: readonly string[] | undefined;
  readonly environment?: NodeJS.ProcessEnv;
  /** The user that runs it, where that is another one. */
  readonly asUser?: { readonly uid: number; readonly gid: number };
}

export interface RunningServer {
  readonly pid: number;
  /** All that it has written to its standard output and error. */
  readonly log: () => string;
  /** Resolves when the process is gone, or, for SIGSTOP and SIGCONT, once the signal is sent. Default: SIGKILL. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts a server; resolves when `isUp` does. As long as that rejects, it is called again.
 * @throws Error with the end of the log when the server ends before that, or never answers.
 */
export async function launch(
  command: Command,
  isUp: (server: RunningServer) => Promise<unknown>,
): Promise<RunningServer> {
  const child = start(command);
  await once(child, "spawn");
  child.stdin?.end();
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => (log += piece));
  const [ended, closed] = [once(child, "exit"), once(child, "close")];
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  killAtExit(child);
  const server: RunningServer = {
    pid: child.pid as number,
    log: () => log,
    async kill(signal = "SIGKILL") {
      child.kill(signal);
      if (!SIGNALS_IT_OUTLIVES.has(signal)) await ended;
    },
  };
  const givenUpAt = Date.now() + START_LIMIT_MS;
  while (!hasEnded() && Date.now() < givenUpAt) {
    const answered = await isUp(server).then(
      () => true,
      () => false,
    );
    if (answered && !hasEnded()) return server;
    await Promise.race([delay(ASK_EVERY_MS), ended]);
  }
  const fate = hasEnded() ? "ended before it answered" : `gave no answer in ${START_LIMIT_MS} ms`;
  await server.kill();
  await closed;
  throw new Error(`${command.program} ${fate}. The end of its log:\n${log.slice(-LOG_TAIL_CHARS)}`);
}

/** Runs a program to its end with `input`. @throws Error with what it wrote to its standard error when it fails. */
export async function outputOf(command: Command, input = ""): Promise<string> {
  const child = start(command);
  // A program that ends before it has read everything breaks the pipe, and explains why itself.
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

function start({ program, words, runIn = [], environment, asUser }: Command): ChildProcess {
  // Entering another network changes credentials, and with them the kernel forgets whose death to die: so that word comes after.
  const [first = program, ...rest] = [...runIn, ...diesWithParent(), program, ...words];
  return spawn(first, rest, { env: { ...process.env, ...environment }, ...asUser });
}

/**
 * Words before a command that make Linux kill it as soon as this process is gone, however it went.
 * An exit handler is not enough: vitest ends its workers by a signal, and a crash runs no handlers.
 */
export function diesWithParent(): readonly string[] {
  parentDeathPrefix ??=
    spawnSync("setpriv", ["--pdeathsig", "KILL", "true"]).status === 0 ? ["setpriv", "--pdeathsig", "KILL"] : [];
  return parentDeathPrefix;
}
let parentDeathPrefix: readonly string[] | undefined;

/** Where the kernel does not do it (see `diesWithParent`), an orderly exit of this process does. */
function killAtExit(child: ChildProcess): void {
  if (alive.size === 0) process.once("exit", killAll);
  alive.add(child);
  child.once("exit", () => {
    alive.delete(child);
    if (alive.size === 0) process.off("exit", killAll);
  });
}
const alive = new Set<ChildProcess>();
const killAll = () => {
  for (const child of alive) child.kill("SIGKILL");
};

/** A port on 127.0.0.1 that no program listens on now, and that no outgoing connection is given. */
export async function freePort(): Promise<number> {
  for (let attempt = 1; attempt <= PORT_TRIES; attempt++) {
    const port = PORT_FIRST + Math.floor(Math.random() * (PORT_LAST - PORT_FIRST));
    const probe = createServer().listen(port, HOST);
    const isFree = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    probe.close();
    if (isFree) return port;
  }
  throw new Error(`no free port on ${HOST} between ${PORT_FIRST} and ${PORT_LAST} after ${PORT_TRIES} tries`);
}
