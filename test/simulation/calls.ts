/**
 * What a server does with the calls of coordinators, as the Redis adapter makes them: the script, then WAIT for the quorum, then a
 * look at who the server is now. The decisions are the product's own.
 */
import {
  decide,
  isRefusal,
  markIdOf,
  type Outcome,
  quorumOf,
  type Refusal,
  recordAfter,
  type StepCommand,
} from "./product.js";
import type { Server } from "./server.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

/** The response to a call. */
export interface Answer {
  readonly outcome?: Outcome;
  readonly refusal?: Refusal;
  /** The connection broke: not known whether the step was done. */
  readonly isLost?: boolean;
  /** What INCR gave to the control, which makes a request with every lease; undefined when it was rejected. */
  readonly counter?: number | undefined;
}

export interface Call {
  readonly command: StepCommand;
  /** Where it comes from. */
  readonly place: number;
  /** The coordinator's clock when it sent the call. */
  readonly stampMs: number;
  /** By how much that clock was wrong then. */
  readonly clockAheadMs: number;
  readonly reply: (answer: Answer) => void;
}

interface Waiting {
  readonly call: Call;
  readonly server: Server;
  readonly offset: number;
  readonly quorum: number;
  readonly finish: (acknowledgedCount: number) => void;
}

/** How long WAIT blocks, as in the product. */
const QUORUM_TIMEOUT_MS = 1_000;

export class Calls {
  readonly #world: World;
  #waiting: Waiting[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** A call has reached a server. */
  receive(server: Server, call: Call): void {
    const { time, limits, rules, group } = this.#world;
    const { variant } = rules;
    const { command, stampMs } = call;
    if (!server.isUp || !limits.mayMeet(server, call)) return call.reply({ isLost: true });
    const situation = {
      namespace: NAMESPACE,
      keys: server.keys(),
      server: server.found(time.nowMs),
      nowMs: stampMs,
      bounds: BOUNDS,
    };
    const decision = (variant.decide ?? decide)(situation, command);
    const counter = this.#count(server, command);
    if (isRefusal(decision)) {
      group.spread(server);
      return call.reply({ refusal: decision, counter });
    }
    const { record, runCount } = decision;
    server.execute(decision, command.step === "lease", markIdOf(record));
    group.spread(server);
    const after = recordAfter(record, command.nonce);
    const { offset } = server;
    const finish = (acknowledgedCount: number) => {
      const isTrusted = variant.pretendsSameServer === true;
      const check = {
        nonce: command.nonce,
        role: isTrusted ? "master" : server.role,
        epoch: isTrusted ? record.epoch : server.epoch,
        generation: isTrusted ? record.generation : Number(server.contents.record?.["g"] ?? "-"),
      };
      call.reply({ outcome: { after, runCount, acknowledgedCount, check }, counter });
    };
    const quorum = quorumOf(record.nodeCount);
    if (variant.pretendsQuorum) return finish(quorum);
    if (server.acknowledgedCount(offset) >= quorum) return finish(server.acknowledgedCount(offset));
    this.#wait({ call, server, offset, quorum, finish });
  }

  /** A replica has acknowledged more. */
  acknowledged(server: Server): void {
    for (const waiting of this.#take(
      (one) => one.server === server && server.acknowledgedCount(one.offset) >= one.quorum,
    )) {
      waiting.finish(server.acknowledgedCount(waiting.offset));
    }
  }

  /** The server ends, or hangs up on all who wait because it becomes a replica. */
  hangUp(server: Server): void {
    for (const { call } of this.#take((one) => one.server === server)) call.reply({ isLost: true });
  }

  /** The control makes a request with every lease: INCR, in the same server at the same moment, with nothing that guards it. */
  #count(server: Server, { step }: StepCommand): number | undefined {
    if (step !== "lease" || server.role !== "master") return undefined;
    const counter = server.contents.counter + 1;
    server.write({ ...server.contents, counter });
    return counter;
  }

  #wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#world.time.after(QUORUM_TIMEOUT_MS, () => {
      for (const { server, offset, finish } of this.#take((one) => one === waiting)) {
        finish(server.acknowledgedCount(offset));
      }
    });
  }

  #take(isMeant: (waiting: Waiting) => boolean): readonly Waiting[] {
    const taken = this.#waiting.filter(isMeant);
    if (taken.length > 0) this.#waiting = this.#waiting.filter((one) => !taken.includes(one));
    return taken;
  }
}
