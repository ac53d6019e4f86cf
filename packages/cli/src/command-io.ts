/**
 * The streams, environment, signals and exit code of a command. Several commands can run in one process; each finds its own here.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type EventEmitter, once } from "node:events";
import { createRequire } from "node:module";
import type { Readable, Writable } from "node:stream";
import type { WriteStream } from "node:tty";
import type { CommandContext } from "@callnumber/protocol/operator";

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

/** One call of a command. */
class Invocation {
  readonly io: CommandIo;
  exitCode = 0;
  /** Fills in the commands that are printed. */
  context: CommandContext | undefined;
  /** A command warns once of a token in plain text, whatever the number of requests. */
  hasWarnedOfPlainToken = false;
  #hasEnded = false;
  readonly #atEnd = new Set<() => void>();
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
    this.#atEnd.add(act);
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
    for (const act of this.#atEnd) act();
    this.#atEnd.clear();
  }
}

/** Returns the command that is running; undefined outside of any. */
export function invocation(): Invocation | undefined {
  return current.getStore() ?? only;
}

/** @throws Error outside of a command. */
export function running(): Invocation {
  const found = invocation();
  if (found === undefined) throw new Error("no command is running");
  return found;
}

export function commandIo(): CommandIo {
  return running().io;
}

/** Runs a command. Resolves to its exit code, when its output is written. @throws what `act` throws. */
export async function invoked(io: CommandIo, act: () => Promise<void>): Promise<number> {
  let leave: (exitCode: number) => void = () => {};
  const left = new Promise<number>((resolve) => {
    leave = resolve;
  });
  const one = new Invocation(io, leave);
  if (io.exit !== undefined) only = one;
  const finish = async () => {
    await within(one, act);
    await Promise.all([io.stdout, io.stderr].map(written));
    return one.exitCode;
  };
  try {
    return await Promise.race([finish(), left]);
  } finally {
    one.end();
  }
}

function within<T>(one: Invocation, act: () => T): T {
  return one === only ? act() : current.run(one, act);
}

async function written(stream: Output): Promise<void> {
  if (stream.writableLength > 0 && stream.errored === null) await new Promise((resolve) => stream.write("", resolve));
}
