/** A client under test: a process that gets commands as lines on standard input, and answers on standard output. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { isCallNumber } from "@callnumber/protocol/codec";
import { batchesOf } from "../input.js";

/** The client breaks a rule. The message says how. */
export class BrokenRule extends Error {}

/** It made a number of a run that no response had: it encodes wrongly, or makes numbers up. */
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

export class DrivenClient {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncGenerator<readonly string[]>;
  /** Resolves to why it could not start, if it could not. */
  readonly #closed: Promise<unknown>;
  #errors = "";

  constructor([program = "", ...words]: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(program, words, { env, stdio: "pipe" });
    this.#closed = once(this.#child, "close").catch((error: unknown) => error);
    this.#child.stdin.on("error", () => {}); // It has ended: the missing answer says so.
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERROR_LENGTH_MAX);
    });
    this.#lines = batchesOf(this.#child.stdout.setEncoding("utf8"), "the client's standard output");
  }

  /** @throws BrokenRule when the process ends or hangs before it has answered, or prints something else. */
  async ask(command: string): Promise<Answered> {
    this.#child.stdin.write(`${command}\n`);
    const callNumbers: string[] = [];
    for (;;) {
      const lines = [...(await this.#nextLines(command))];
      const [, answer, reason] = /^(ok|unsupported|error) ?(.*)/.exec(lines.at(-1) ?? "") ?? [];
      if (answer !== undefined) lines.pop();
      const other = lines.find((line) => !isCallNumber(line));
      if (other !== undefined) {
        throw new BrokenRule(`${JSON.stringify(other.slice(0, 80))} is no call number, ok, error or unsupported`);
      }
      callNumbers.push(...lines);
      if (answer === undefined) continue;
      if (answer === "error") return { callNumbers, error: String(reason) };
      return answer === "ok" ? { callNumbers } : { callNumbers, isUnsupported: true };
    }
  }

  /** kill -9. Does not wait for what it has started. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
    await this.#closed;
  }

  /** Ends its standard input, and waits until it has ended. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    this.#child.stdout.resume();
    await this.#closed;
  }

  async #nextLines(command: string): Promise<readonly string[]> {
    const hang = new AbortController();
    const hung = delay(HANG_MS, undefined, { signal: hang.signal, ref: false }).catch(() => {});
    const next = await Promise.race([this.#lines.next(), hung]);
    hang.abort();
    if (next === undefined) throw new BrokenRule(`no answer to "${command}" within ${HANG_MS / 60_000} min`);
    if (next.done !== true) return next.value;
    const closed = await this.#closed;
    if (closed instanceof Error) throw new RangeError(`the client can't be started: ${closed.message}`);
    const end = this.#child.exitCode ?? this.#child.signalCode;
    const errors = this.#errors.trim();
    const reason = `the client ended (${end}) instead of an answer to "${command}"`;
    throw new BrokenRule(errors === "" ? reason : `${reason}: ${errors}`);
  }
}
