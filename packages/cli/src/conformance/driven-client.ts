/** A client under test: a process that gets commands as lines on standard input, and answers on standard output. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { isCallNumber } from "@callnumber/protocol/codec";
import { batchesOf } from "../input.js";

/** The client breaks a rule. The message says how. */
export class BrokenRule extends Error {}

/** It generated a number of a run that no response had: it encodes wrongly, or makes numbers up. */
export class WrongNumber extends BrokenRule {}

/** What the process answered: the lines before the last one, and its reason if that one began with `error`. */
export interface Answered {
  readonly callNumbers: readonly string[];
  readonly error?: string;
  readonly isUnsupported?: true;
}

/** A program that has not answered by then hangs: no result depends on how fast it is. */
const HANG_MS = 180_000;
const ERROR_LENGTH_MAX = 300;
/** So many numbers more than a command asked for show that a program does not count. Further ones would fill the memory. */
const EXTRA_COUNT_MAX = 8;

export class DrivenClient {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncGenerator<readonly string[]>;
  /** Resolves to why it could not start, if it could not. */
  readonly #closed: Promise<unknown>;
  readonly #hangMs: number;
  #errors = "";

  constructor([program = "", ...words]: readonly string[], env: NodeJS.ProcessEnv, hangMs = HANG_MS) {
    this.#child = spawn(program, words, { env, stdio: "pipe" });
    this.#closed = once(this.#child, "close").catch((error: unknown) => error);
    this.#hangMs = hangMs;
    this.#child.stdin.on("error", () => {}); // It has ended: the missing answer says so.
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERROR_LENGTH_MAX);
    });
    this.#lines = batchesOf(this.#child.stdout.setEncoding("utf8"), "the client's standard output");
  }

  /**
   * Sends `next N`, `fork N` or `close`. An "ok" to `next N` comes with N numbers.
   * @throws BrokenRule when the process ends or hangs before it has answered, or prints something else, or more than it was asked for.
   */
  ask(command: string): Promise<Answered> {
    this.#child.stdin.write(`${command}\n`);
    return this.#inTime(this.#answerTo(command), `no answer to "${command}"`);
  }

  /** kill -9. Does not wait for what it has started. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
    await this.#closed;
  }

  /** Ends its standard input, and waits until it has ended. @throws BrokenRule when it does not. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    this.#child.stdout.resume();
    await this.#inTime(this.#closed, "did not end after its input");
  }

  async #answerTo(command: string): Promise<Answered> {
    const [name, count = "0"] = command.split(" ");
    const wanted = Number(count) * (name === "fork" ? 2 : 1);
    const callNumbers: string[] = [];
    for (;;) {
      const lines = [...(await this.#nextLines(command))];
      const [, answer, reason] = /^(ok|unsupported|error) ?(.*)/.exec(lines.at(-1) ?? "") ?? [];
      if (answer !== undefined) lines.pop();
      const other = lines.find((line) => !isCallNumber(line));
      if (other !== undefined) {
        throw new BrokenRule(`${JSON.stringify(other.slice(0, 80))} is not a call number, ok, error or unsupported`);
      }
      callNumbers.push(...lines);
      const { length } = callNumbers;
      if (length > wanted + EXTRA_COUNT_MAX) throw new BrokenRule(`"${command}" generated more than ${wanted} numbers`);
      if (answer === undefined) continue;
      if (answer === "error") return { callNumbers, error: String(reason) };
      // Or a rule that takes numbers until a call fails would never end.
      if (name === "next" && length !== wanted) {
        throw new BrokenRule(`"${command}" generated ${length} numbers, then answered "${answer}"`);
      }
      return answer === "ok" ? { callNumbers } : { callNumbers, isUnsupported: true };
    }
  }

  async #nextLines(command: string): Promise<readonly string[]> {
    const next = await this.#lines.next().catch((error: unknown) => {
      throw error instanceof RangeError ? new BrokenRule(error.message) : error;
    });
    if (next.done !== true) return next.value;
    const closed = await this.#closed;
    if (closed instanceof Error) throw new RangeError(`the client can't be started: ${closed.message}`);
    const end = this.#child.exitCode ?? this.#child.signalCode;
    const errors = this.#errors.trim();
    const reason = `the client ended (${end}) instead of an answer to "${command}"`;
    throw new BrokenRule(errors === "" ? reason : `${reason}: ${errors}`);
  }

  /** One limit for all that it awaits. @throws BrokenRule after it, beginning with `failure`. */
  async #inTime<Value>(awaited: Promise<Value>, failure: string): Promise<Value> {
    const hang = new AbortController();
    const hung = delay(this.#hangMs, undefined, { signal: hang.signal, ref: false }).then(() => {
      throw new BrokenRule(`${failure} within ${this.#hangMs / 1_000} s`);
    });
    try {
      return await Promise.race([awaited, hung]);
    } finally {
      hang.abort();
    }
  }
}
