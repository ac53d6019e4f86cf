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
  readonly checkNonce: string | undefined;
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
      const batch = this.#queue.splice(0, BATCH_STEPS_MAX);
      await this.#sendBatch(batch).catch((error: unknown) => rejectAll(batch, error));
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
    const replies = await connection.pipeline(commands, batch[0]?.namespace ?? "");
    const acknowledged = quorum > 0 ? replies[calls.length] : 0;
    const checkReplies = replies.slice(calls.length + wait.length);
    for (const [index, call] of calls.entries()) {
      const at = checks.findIndex(({ namespace }) => namespace === call[0].namespace);
      const check = { check: checkReplies[at], checkNonce: checks[at]?.nonce };
      try {
        this.#settle(call, { steps: replies[index], acknowledged, ...check });
      } catch (error) {
        rejectAll(call, error);
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

  /** @throws CoordinatorError for all steps of the call. */
  #settle(call: Call, replies: CallReplies): void {
    const stepReplies = this.#stepReplies(call, replies.steps);
    // A refusal needs no check: nothing of it is used.
    const check = stepReplies.every(isRefusal) ? undefined : this.#check(call, replies);
    const acknowledgedCount = Number(replies.acknowledged);
    for (const [index, { namespace, command, resolve, reject }] of call.entries()) {
      const reply = stepReplies[index] as StepReply;
      if (isRefusal(reply)) reject(refused(reply.code, reply.detail, namespace));
      else if (check === undefined || check instanceof Error) reject(check);
      // One check serves all steps of a batch on a namespace.
      else resolve({ ...reply, acknowledgedCount, check: { ...check, nonce: command.nonce } });
    }
  }

  /** The reply to each step of a call. @throws CoordinatorError for all of them. */
  #stepReplies(call: Call, reply: unknown): readonly StepReply[] {
    if (reply instanceof Error) throw this.#errorFor(reply, call);
    const replies = stepRepliesIn(reply, call);
    if (replies === undefined) throw this.#options.connection.unexpectedReply();
    return replies;
  }

  /** The state of the server after the steps of a call, or why nothing counts that they have done. */
  #check(call: Call, { acknowledged, check: reply, checkNonce }: CallReplies): CheckAnswer | Error {
    if (acknowledged instanceof Error) return this.#errorFor(acknowledged, call);
    if (reply instanceof Error) return this.#errorFor(reply, call);
    const check = checkIn(reply);
    const isCount = typeof acknowledged === "number" && acknowledged >= 0;
    if (check !== undefined && check.nonce === checkNonce && isCount) return check;
    return this.#options.connection.unexpectedReply();
  }

  /** A script that refuses a call as a whole returns the nonce of the first step. */
  #errorFor(reply: Error, [{ namespace, command }]: Call): Error {
    return this.#options.connection.errorFor(reply, namespace, command.nonce);
  }
}

/** Also for a bug of ours: no caller may wait forever. Promises that are settled already stay so. */
function rejectAll(steps: readonly QueuedStep[], error: unknown): void {
  for (const { reject } of steps) reject(error);
}

/** Undefined for what is no reply of lua/check.lua. A generation that can't be read is "-": NaN here, and equal to none. */
function checkIn(reply: unknown): CheckAnswer | undefined {
  const [nonce, role, epoch, generation] = stringsIn(reply) ?? [];
  if (nonce === undefined || role === undefined || epoch === undefined) return undefined;
  return { nonce, role, epoch, generation: wholeIn(generation) ?? Number.NaN };
}
