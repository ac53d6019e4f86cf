/**
 * One call of the command: its streams, environment, signals and exit code. Several can run in one process; each finds its own here.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type EventEmitter, once } from "node:events";
import { createRequire } from "node:module";
import type { Readable, Writable } from "node:stream";
import type { WriteStream } from "node:tty";
import type { CommandContext } from "@callnumber/protocol/api";

/** Of this package. */
export const RELEASE = (createRequire(import.meta.url)("../package.json") as { version: string }).version;

export interface CommandIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Emits signals by their names, and `exit` when a process ends. Default: nothing is emitted. */
  readonly signals?: Pick<EventEmitter, "on">;
  /** Ends the process at once. Only for the one command of a process. */
  readonly exit?: (exitCode: number) => void;
  /** The terminals that the command was started on, as descriptors of the process. Default: none. */
  readonly terminals?: readonly number[];
}

/** `columns`: of a terminal. `fd`: where the stream is a file of the process. */
type Output = Writable & Partial<Pick<WriteStream, "isTTY" | "columns"> & { readonly fd: number }>;

const current = new AsyncLocalStorage<Invocation>();
/** The one command of a process: on Node 20 an AsyncLocalStorage slows down every promise, and so every request of `serve`. */
let only: Invocation | undefined;

class Invocation {
  readonly io: CommandIo;
  exitCode = 0;
  /** With `--json`: standard error has failures, each as JSON on a line, and nothing for people. */
  asJson = false;
  /** Fills in the commands that are printed. */
  context: CommandContext | undefined;
  /** A command warns once of a token in plain text, whatever the number of requests. */
  hasWarnedOfPlainToken = false;
  #hasEnded = false;
  #atEnd: (() => void)[] = [];
  readonly #leave: (exitCode: number) => void;

  constructor(io: CommandIo, leave: (exitCode: number) => void) {
    this.io = io;
    this.#leave = leave;
    io.signals?.on("exit", () => this.end());
  }

  /** Listens to the end of the process: a signal that comes while a command stops must not cut the stop short. */
  onSignal(name: string, listener: () => void): void {
    this.io.signals?.on(name, () => within(this, listener));
  }

  /** Calls `act` when the command ends, however it ends. */
  onEnd(act: () => void): void {
    this.#atEnd.push(act);
  }

  /** Writes to standard output, and waits while its reader is behind. @throws Error once the command has ended. */
  async write(bytes: string | Uint8Array): Promise<void> {
    if (this.#hasEnded) throw new Error("the command has ended");
    if (!this.io.stdout.write(bytes)) await once(this.io.stdout, "drain");
  }

  /** Ends at once. */
  leave(exitCode: number): void {
    this.io.exit?.(exitCode);
    this.#leave(exitCode);
  }

  end(): void {
    this.#hasEnded = true;
    for (const act of this.#atEnd.splice(0)) act();
  }
}

/** Returns the command that is running. @throws Error outside of a command. */
export function invocation(): Invocation {
  const found = current.getStore() ?? only;
  if (found === undefined) throw new Error("no command is running");
  return found;
}

/** Runs a command. Resolves to its exit code, when its output is written. @throws what `act` throws. */
export async function invoke(io: CommandIo, act: () => Promise<void>): Promise<number> {
  let leave: (exitCode: number) => void = () => {};
  const left = new Promise<number>((resolve) => {
    leave = resolve;
  });
  const called = new Invocation(io, leave);
  if (io.exit !== undefined) only = called;
  const finish = async () => {
    await within(called, act);
    await Promise.all([io.stdout, io.stderr].map(written));
    return called.exitCode;
  };
  try {
    return await Promise.race([finish(), left]);
  } finally {
    called.end();
  }
}

function within<T>(called: Invocation, act: () => T): T {
  return called === only ? act() : current.run(called, act);
}

async function written(stream: Output): Promise<void> {
  if (stream.writableLength > 0 && stream.errored === null) await new Promise((resolve) => stream.write("", resolve));
}

/** From the user's name to the last @: a password may contain anything. Also of a URL without its scheme, where a message quotes one. */
const LOGIN = /((?:\/\/|['"])[^:@/'"]*:).*(?=@)/s;
const PASSWORD_PARAMETER = /([?&][A-Za-z]*password=)[^&\s]*/gi;
/** Typed as an argument, which no command takes. */
const TOKEN = /cn_[\w-]{43}/g;

/**
 * Replaces the passwords of URLs, and tokens, in a text by `***`: for every message and log. Other secrets come from files and the environment,
 * and appear nowhere.
 */
export function redactSecrets(text: string): string {
  return text.replace(LOGIN, "$1***").replace(PASSWORD_PARAMETER, "$1***").replace(TOKEN, "cn_***");
}
