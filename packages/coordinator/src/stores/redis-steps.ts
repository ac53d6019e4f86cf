/**
 * The steps of the guard on Redis: one connection, one batch at a time. What is asked while a batch is under way waits and
 * goes together: every step, leases that stand beside each other in one script, then WAIT for the quorum, then a look whether the
 * server is still who it was, all in one round trip. Nothing here is sent twice.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { randomBytes } from "node:crypto";
import { setImmediate as endOfTurn } from "node:timers/promises";
import type { Bounds } from "../guard/bounds.js";
import { quorumOf } from "../guard/bounds.js";
import { isRefusal, refused } from "../guard/refusals.js";
import type { CheckAnswer, Outcome, StepCommand } from "../store.js";
import { wholeIn, wordsIn } from "./redis-answer.js";
import { answersIn, callsOf, parametersOf, type StepAnswer } from "./redis-calls.js";
import { RedisConnection, type Words } from "./redis-connection.js";
import { strayAnswer } from "./redis-errors.js";
import { asideKeysOf, type NamespaceKeys } from "./redis-ledger.js";

export interface RedisStepsOptions {
  readonly connection: RedisConnection;
  readonly bounds: Bounds;
  /** The coordinator's clock, in milliseconds. */
  readonly now: () => number;
  /** How long the other nodes may take to acknowledge a step, ms. */
  readonly quorumTimeoutMs: number;
}

interface Waiting {
  readonly namespace: string;
  readonly keys: NamespaceKeys;
  readonly command: StepCommand;
  readonly nodeCount: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** More would make one batch block the server for longer than others like. */
const BATCH_STEPS_MAX = 256;

export class RedisSteps {
  readonly #options: RedisStepsOptions;
  #waiting: Waiting[] = [];
  #isSending = false;

  constructor(options: RedisStepsOptions) {
    this.#options = options;
  }

  /** `nodeCount` as far as it is known: it says how many acknowledgements to wait for. */
  step(namespace: string, keys: NamespaceKeys, command: StepCommand, nodeCount: number): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ namespace, keys, command, nodeCount, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      // Callers of the same turn go together.
      await endOfTurn();
      await this.#sendBatch(this.#waiting.splice(0, BATCH_STEPS_MAX));
    }
    this.#isSending = false;
  }

  async #sendBatch(batch: readonly Waiting[]): Promise<void> {
    const { connection, quorumTimeoutMs } = this.#options;
    const calls = callsOf(batch);
    const quorum = Math.max(...batch.map(({ nodeCount }) => quorumOf(nodeCount)));
    const wait: Words[] = quorum > 0 ? [["wait", quorum, quorumTimeoutMs]] : [];
    // Of their own, so that no answer of a step is taken for a look, nor one namespace's look for another's.
    const keysOf = new Map(calls.map(([{ namespace, keys }]) => [namespace, keys]));
    const looks = Array.from(keysOf, ([namespace, keys]) => ({ namespace, keys, nonce: freshNonce() }));
    const checks = looks.map(({ keys, nonce }) => RedisConnection.evalsha("check", [keys.record], [nonce]));
    const words = () => [...calls.map((call) => this.#wordsOf(call)), ...wait, ...checks];
    let answers: readonly unknown[];
    try {
      answers = await connection.together(words, { namespace: batch[0]?.namespace ?? "" });
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const acknowledged = quorum > 0 ? answers[calls.length] : 0;
    const checkedAt = calls.length + wait.length;
    const checkOf = new Map(
      looks.map(({ namespace, nonce }, index) => [namespace, { answer: answers[checkedAt + index], nonce }]),
    );
    for (const [index, call] of calls.entries()) {
      const checked = checkOf.get(call[0].namespace) as Checked;
      try {
        this.#settleAll(call, { answer: answers[index], acknowledged, checked });
      } catch (error) {
        // A fault of our own: nobody waits for ever. What is settled already stays so.
        for (const { reject } of call) reject(error);
      }
    }
  }

  #wordsOf(call: Call): Words {
    const { bounds, now } = this.#options;
    const [{ keys, command }] = call;
    return RedisConnection.evalsha(
      command.step,
      [keys.record, keys.ledger, keys.holders, ...(command.step === "recover" ? asideKeysOf(keys, command.nonce) : [])],
      parametersOf(call, now(), bounds),
    );
  }

  #settleAll(call: Call, found: Found): void {
    const answers = this.#answersIn(call, found.answer);
    if (answers instanceof Error) {
      for (const { reject } of call) reject(answers);
      return;
    }
    // What is refused needs no look behind it: nothing of it is used.
    const look = answers.every(isRefusal) ? undefined : this.#lookBehind(call, found);
    const acknowledgedCount = Number(found.acknowledged);
    for (const [index, { namespace, command, resolve, reject }] of call.entries()) {
      const answer = answers[index] as StepAnswer;
      if (isRefusal(answer)) reject(refused(answer.word, answer.detail, namespace));
      else if (look === undefined || look instanceof Error) reject(look);
      // One look serves all steps of a batch on a namespace.
      else {
        const { role, epoch, generation } = look;
        resolve({ ...answer, acknowledgedCount, check: { nonce: command.nonce, role, epoch, generation } });
      }
    }
  }

  /** What was answered to each step of a call, or the error for all of them. */
  #answersIn(call: Call, answer: unknown): readonly StepAnswer[] | Error {
    const { connection } = this.#options;
    if (answer instanceof Error) return connection.refusalIn(answer, contextOf(call));
    const answers = answersIn(answer, call);
    if (answers !== undefined) return answers;
    connection.breakOff();
    return strayAnswer(connection.server);
  }

  /** What the look behind a call's steps saw, or why nothing counts that they have done. */
  #lookBehind(call: Call, { acknowledged, checked }: Found): CheckAnswer | Error {
    const { connection } = this.#options;
    const part = [acknowledged, checked.answer].find((one) => one instanceof Error);
    if (part !== undefined) return connection.refusalIn(part, contextOf(call));
    const look = checkIn(checked.answer);
    const isCount = typeof acknowledged === "number" && acknowledged >= 0;
    if (look?.nonce === checked.nonce && isCount) return look;
    connection.breakOff();
    return strayAnswer(connection.server);
  }
}

/** A script that refuses a call as a whole tells the nonce of the first. */
function contextOf([{ namespace, command }]: Call): { readonly namespace: string; readonly nonce: string } {
  return { namespace, nonce: command.nonce };
}

type Call = readonly [Waiting, ...Waiting[]];

interface Checked {
  readonly answer: unknown;
  readonly nonce: string;
}

/** What came back for a call. */
interface Found {
  readonly answer: unknown;
  readonly acknowledged: unknown;
  readonly checked: Checked;
}

function freshNonce(): string {
  return randomBytes(12).toString("base64url");
}

/** Undefined for what is no answer of lua/check.lua. A generation that can't be read is a "-", and equal to none. */
function checkIn(answer: unknown): CheckAnswer | undefined {
  const [nonce, role, epoch, generation] = wordsIn(answer) ?? [];
  if (nonce === undefined || role === undefined || epoch === undefined) return undefined;
  return { nonce, role, epoch, generation: wholeIn(generation) ?? Number.NaN };
}
