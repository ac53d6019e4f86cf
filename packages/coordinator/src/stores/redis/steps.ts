/**
 * The steps of the guard on Redis: one connection, one batch at a time. Steps that arrive while a batch is in flight wait, and are
 * sent together: every step, adjacent leases in one script, then WAIT for the quorum, then a check that the server is still the same,
 * all in one round trip. Nothing here is sent twice.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { setImmediate as endOfTurn } from "node:timers/promises";
import { type Bounds, quorumOf } from "../../guard/bounds.js";
import { isRefusal, refused } from "../../guard/refusals.js";
import { freshNonce } from "../../guard/verify-outcome.js";
import type { CheckAnswer, Outcome, StepCommand } from "../store.js";
import { type RedisCommand, RedisConnection } from "./connection.js";
import { unexpectedReply } from "./errors.js";
import { stringsIn, wholeIn } from "./replies.js";
import { asideKeysOf, type NamespaceKeys } from "./scripts.js";
import { callsOf, parametersOf, type StepCall, type StepReply, stepRepliesIn } from "./step-calls.js";

export interface RedisStepsOptions {
  readonly connection: RedisConnection;
  readonly bounds: Bounds;
  /** The coordinator's clock, in milliseconds. */
  readonly now: () => number;
  /** How long the other nodes may take to acknowledge a step, ms. */
  readonly quorumTimeoutMs: number;
}

interface QueuedStep {
  readonly namespace: string;
  readonly keys: NamespaceKeys;
  readonly command: StepCommand;
  readonly nodeCount: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

type Call = StepCall<QueuedStep>;

/** The replies that concern a call; each may be an error reply. */
interface CallReplies {
  readonly steps: unknown;
  /** Of WAIT; 0 when no acknowledgement is needed. */
  readonly acknowledged: unknown;
  readonly check: unknown;
  readonly checkNonce: string;
}

/** A larger batch would block the server for other clients. */
const BATCH_STEPS_MAX = 256;

export class RedisSteps {
  readonly #options: RedisStepsOptions;
  #queue: QueuedStep[] = [];
  #isSending = false;

  constructor(options: RedisStepsOptions) {
    this.#options = options;
  }

  /** `nodeCount` as far as it is known: it decides how many acknowledgements to wait for. */
  step(namespace: string, keys: NamespaceKeys, command: StepCommand, nodeCount: number): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ namespace, keys, command, nodeCount, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#queue.length > 0) {
      // Steps of the same event-loop iteration are sent together.
      await endOfTurn();
      await this.#sendBatch(this.#queue.splice(0, BATCH_STEPS_MAX));
    }
    this.#isSending = false;
  }

  async #sendBatch(batch: readonly QueuedStep[]): Promise<void> {
    const { connection, quorumTimeoutMs } = this.#options;
    const calls = callsOf(batch);
    const quorum = Math.max(...batch.map(({ nodeCount }) => quorumOf(nodeCount)));
    const wait: RedisCommand[] = quorum > 0 ? [["wait", quorum, quorumTimeoutMs]] : [];
    // With nonces of their own: no step's reply is taken for a check, nor one namespace's check for another's.
    const keysOf = new Map(calls.map(([{ namespace, keys }]) => [namespace, keys]));
    const checks = Array.from(keysOf, ([namespace, keys]) => ({ namespace, keys, nonce: freshNonce() }));
    const checkCommands = checks.map(({ keys, nonce }) => RedisConnection.evalsha("check", [keys.record], [nonce]));
    const commands = () => [...calls.map((call) => this.#commandOf(call)), ...wait, ...checkCommands];
    let replies: readonly unknown[];
    try {
      replies = await connection.pipeline(commands, { namespace: batch[0]?.namespace ?? "" });
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const acknowledged = quorum > 0 ? replies[calls.length] : 0;
    const checkReplies = replies.slice(calls.length + wait.length);
    for (const [index, call] of calls.entries()) {
      const checkIndex = checks.findIndex(({ namespace }) => namespace === call[0].namespace);
      const checkNonce = checks[checkIndex]?.nonce ?? "";
      try {
        this.#settle(call, { steps: replies[index], acknowledged, check: checkReplies[checkIndex], checkNonce });
      } catch (error) {
        // A bug of ours: no caller may wait forever. Promises that are settled already stay so.
        for (const { reject } of call) reject(error);
      }
    }
  }

  #commandOf(call: Call): RedisCommand {
    const { bounds, now } = this.#options;
    const [{ keys, command }] = call;
    return RedisConnection.evalsha(
      command.step,
      [keys.record, keys.ledger, keys.holders, ...(command.step === "recover" ? asideKeysOf(keys, command.nonce) : [])],
      parametersOf(call, now(), bounds),
    );
  }

  #settle(call: Call, replies: CallReplies): void {
    const stepReplies = this.#stepReplies(call, replies.steps);
    if (stepReplies instanceof Error) {
      for (const { reject } of call) reject(stepReplies);
      return;
    }
    // A refusal needs no check: nothing of it is used.
    const check = stepReplies.every(isRefusal) ? undefined : this.#check(call, replies);
    const acknowledgedCount = Number(replies.acknowledged);
    for (const [index, { namespace, command, resolve, reject }] of call.entries()) {
      const reply = stepReplies[index] as StepReply;
      if (isRefusal(reply)) reject(refused(reply.word, reply.detail, namespace));
      else if (check === undefined || check instanceof Error) reject(check);
      // One check serves all steps of a batch on a namespace.
      else resolve({ ...reply, acknowledgedCount, check: { ...check, nonce: command.nonce } });
    }
  }

  /** The reply to each step of a call, or the error for all of them. */
  #stepReplies(call: Call, reply: unknown): readonly StepReply[] | Error {
    const { connection } = this.#options;
    if (reply instanceof Error) return connection.errorFor(reply, contextOf(call));
    const replies = stepRepliesIn(reply, call);
    if (replies !== undefined) return replies;
    connection.reconnect();
    return unexpectedReply(connection.server);
  }

  /** The state of the server after the steps of a call, or why nothing counts that they have done. */
  #check(call: Call, { acknowledged, check: reply, checkNonce }: CallReplies): CheckAnswer | Error {
    const { connection } = this.#options;
    const errorReply = [acknowledged, reply].find((part) => part instanceof Error);
    if (errorReply !== undefined) return connection.errorFor(errorReply, contextOf(call));
    const check = checkIn(reply);
    const isCount = typeof acknowledged === "number" && acknowledged >= 0;
    if (check?.nonce === checkNonce && isCount) return check;
    connection.reconnect();
    return unexpectedReply(connection.server);
  }
}

/** A script that refuses a call as a whole returns the nonce of the first step. */
function contextOf([{ namespace, command }]: Call): { readonly namespace: string; readonly nonce: string } {
  return { namespace, nonce: command.nonce };
}

/** Undefined for what is no reply of lua/check.lua. A generation that can't be read is "-": NaN here, and equal to none. */
function checkIn(reply: unknown): CheckAnswer | undefined {
  const [nonce, role, epoch, generation] = stringsIn(reply) ?? [];
  if (nonce === undefined || role === undefined || epoch === undefined) return undefined;
  return { nonce, role, epoch, generation: wholeIn(generation) ?? Number.NaN };
}
