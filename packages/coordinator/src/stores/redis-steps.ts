/**
 * The steps of the guard on Redis: one connection, one batch at a time. What is asked while a batch is under way waits and
 * goes together: every step, then WAIT for the quorum, then a look whether the server is still who it was, all in one round
 * trip. Nothing here is sent twice.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { randomBytes } from "node:crypto";
import type { Bounds } from "../guard/bounds.js";
import { quorumOf } from "../guard/quorum.js";
import type { CheckAnswer, Outcome, RecordAfter, StepCommand } from "../store.js";
import { holderJsonOf } from "./ledger-entry.js";
import { RedisConnection, type Words } from "./redis-connection.js";
import { strayAnswer } from "./redis-errors.js";
import type { NamespaceKeys } from "./redis-ledger.js";

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
    // Callers of the same turn go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#sendBatch(this.#waiting.splice(0, BATCH_STEPS_MAX));
    this.#isSending = false;
  }

  async #sendBatch(batch: readonly Waiting[]): Promise<void> {
    const { connection, quorumTimeoutMs } = this.#options;
    const quorum = Math.max(...batch.map(({ nodeCount }) => quorumOf(nodeCount)));
    const namespaces = [...new Map(batch.map((waiting) => [waiting.namespace, waiting])).values()];
    const wait: Words[] = quorum > 0 ? [["wait", quorum, quorumTimeoutMs]] : [];
    // Of their own, so that no answer of a step is taken for a look, nor one namespace's look for another's.
    const checkNonces = namespaces.map(() => randomBytes(12).toString("base64url"));
    const checks = namespaces.map(({ keys }, index) =>
      RedisConnection.evalsha("check", [keys.record], [checkNonces[index] as string]),
    );
    const words = () => [...batch.map((waiting) => this.#wordsOf(waiting)), ...wait, ...checks];
    let answers: readonly unknown[];
    try {
      answers = await connection.together(words, { namespace: batch[0]?.namespace ?? "" });
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const acknowledged = quorum > 0 ? answers[batch.length] : 0;
    const checkedAt = batch.length + wait.length;
    batch.forEach((waiting, index) => {
      const { namespace, resolve, reject } = waiting;
      const checkIndex = namespaces.findIndex((one) => one.namespace === namespace);
      const checked = { answer: answers[checkedAt + checkIndex], nonce: checkNonces[checkIndex] as string };
      try {
        resolve(this.#outcomeOf(waiting, answers[index], acknowledged, checked));
      } catch (error) {
        reject(error);
      }
    });
  }

  #wordsOf({ namespace, keys, command }: Waiting): Words {
    const { bounds, now } = this.#options;
    const { storeId, nonce, isSilenceAccepted } = command;
    const common = [namespace, nonce, storeId, now(), bounds.epsMs, bounds.gapMs, isSilenceAccepted ? 1 : 0];
    const parameters = [...common, ...ownParametersOf(command)];
    return RedisConnection.evalsha(command.step, [keys.record, keys.ledger, keys.holders], parameters);
  }

  #outcomeOf(
    { namespace, command }: Waiting,
    answer: unknown,
    acknowledged: unknown,
    checked: { readonly answer: unknown; readonly nonce: string },
  ): Outcome {
    const { connection } = this.#options;
    const context = { namespace, nonce: command.nonce };
    for (const part of [answer, acknowledged, checked.answer]) {
      if (part instanceof Error) throw connection.refusalIn(part, context);
    }
    const { after, runCount } = afterIn(answer);
    const check = checkIn(checked.answer);
    if (after.nonce !== command.nonce || check.nonce !== checked.nonce) {
      connection.breakOff();
      throw strayAnswer(connection.server);
    }
    return {
      after,
      runCount,
      acknowledgedCount: Number(acknowledged),
      // One look serves all steps of a batch on a namespace.
      check: { ...check, nonce: command.nonce },
    };
  }
}

/** From the eighth parameter on, as the script of each step names them. */
function ownParametersOf(command: StepCommand): readonly (string | number)[] {
  switch (command.step) {
    case "lease":
      return [
        command.floor,
        command.generationMin,
        command.runCount,
        command.held,
        holderJsonOf(command),
        command.leaseNonce,
      ];
    case "touch":
      return [command.floor, command.generationMin];
    case "claim":
      return [command.generation, command.generationMin];
    case "confirm":
      return [command.generation, command.floor];
    case "seal":
      return [command.floor, command.generationMin, command.seal];
    case "resume":
      return [command.secret, command.mark, command.generation, command.nodeCount ?? 0];
    case "recover":
      return [command.floor, command.generationMin, command.nodeCount ?? 0, command.receiptKey];
    case "init":
      return [command.nodeCount, command.receiptKey];
  }
}

function afterIn(answer: unknown): { readonly after: RecordAfter; readonly runCount: number } {
  const [nonce, storeId, version, mark, changedAtMs, epoch, generation, nodeCount, runCount] = answer as string[];
  return {
    after: {
      nonce: nonce ?? "",
      storeId: storeId ?? "",
      version: Number(version),
      highWaterMark: Number(mark),
      changedAtMs: Number(changedAtMs),
      epoch: epoch ?? "",
      generation: Number(generation),
      nodeCount: Number(nodeCount),
    },
    runCount: Number(runCount),
  };
}

function checkIn(answer: unknown): CheckAnswer {
  const [nonce = "", role = "", epoch = "", generation = ""] = answer as string[];
  return { nonce, role, epoch, generation: Number(generation) };
}
