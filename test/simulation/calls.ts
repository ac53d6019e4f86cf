/**
 * What a server does with the calls of coordinators, as the Redis adapter makes them: a read, or a change, of which the script writes only
 * where what it rests on still holds; with other nodes then WAIT for the quorum, and a look at who the server is now.
 */
import {
  type Applied,
  type Change,
  checksumOf,
  type Expected,
  type NamespaceState,
  type Observed,
  quorumOf,
  recordToWrite,
  type StepCommand,
} from "./product.js";
import type { Server } from "./server.js";
import type { World } from "./world.js";

/** The response to a call. */
export interface Answer {
  /** Of the call that it is for; undefined where there is none. */
  readonly nonce?: number;
  readonly applied?: Applied;
  /** The answer to a read, and to a change that was not made. */
  readonly found?: Observed;
  /** What INCR gave to the control, which makes a request with every lease; undefined when it was rejected. */
  readonly counter?: number | undefined;
}

/** The connection broke: not known whether a change was made. */
export const LOST: Answer = {};

interface Changing {
  readonly expected: Expected;
  readonly change: Change;
  /** The steps that it is for. */
  readonly commands: readonly StepCommand[];
}

export interface Call {
  readonly nonce: number;
  /** Undefined for a read. */
  readonly changing: Changing | undefined;
  /** Whether a step is decided on the answer: clocks are compared. */
  readonly isOfStep: boolean;
  /** Where it comes from. */
  readonly place: number;
  /** By how much the coordinator's clock was wrong when it sent the call. */
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
    const { time, limits, group } = this.#world;
    const { changing, nonce } = call;
    if (!server.isUp || !limits.mayMeet(server, call)) return call.reply(LOST);
    const found = server.found(time.nowMs);
    if (changing === undefined) return call.reply({ nonce, found });
    const record = this.#recordToWrite(found, changing);
    const isLease = changing.change.leases.length > 0;
    const counter = this.#count(server, isLease);
    if (record === undefined) {
      group.spread(server);
      return call.reply({ nonce, found, counter });
    }
    server.execute(record, isLease);
    group.spread(server);
    this.#finish(server, call, record, counter);
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
    for (const { call } of this.#take((one) => one.server === server)) call.reply(LOST);
  }

  #recordToWrite(found: Observed, { expected, change }: Changing): NamespaceState | undefined {
    const { tally, rules } = this.#world;
    const { apply = recordToWrite, believesEdits = false } = rules.variant;
    const record = apply(found, expected, change);
    const { fields, record: type } = found.keys;
    // Only `recover` makes a damaged record again.
    const isEdited = type === "hash" && fields["k"] !== checksumOf(fields);
    if (record !== undefined && isEdited && !change.acceptsCopy && !believesEdits)
      tally.overwrite(`mark ${fields["c"]}, generation ${fields["g"]}, phase ${fields["p"]}`);
    return record;
  }

  /** WAIT, and the look at the server; one node waits for nothing. */
  #finish(server: Server, call: Call, record: NamespaceState, counter: number | undefined): void {
    const { variant } = this.#world.rules;
    const { offset } = server;
    const { nonce } = call;
    const { highWaterMark, changedAtMs, nodeCount, epoch, generation } = record;
    const done = { highWaterMark, changedAtMs, movedAside: [] };
    const quorum = quorumOf(nodeCount);
    if (quorum === 0) {
      return call.reply({ nonce, counter, applied: { ...done, acknowledgedCount: 0, check: undefined } });
    }
    const finish = (acknowledgedCount: number) => {
      const seen = {
        role: server.role,
        epoch: server.epoch,
        generation: Number(server.contents.record?.["g"] ?? Number.NaN),
      };
      const check = variant.pretendsSameServer === true ? { role: "master", epoch, generation } : seen;
      call.reply({ nonce, counter, applied: { ...done, acknowledgedCount, check } });
    };
    if (variant.pretendsQuorum) return finish(quorum);
    if (server.acknowledgedCount(offset) >= quorum) return finish(server.acknowledgedCount(offset));
    this.#wait({ call, server, offset, quorum, finish });
  }

  /** The control makes a request with every lease: INCR, in the same server at the same moment, with nothing that guards it. */
  #count(server: Server, isLease: boolean): number | undefined {
    if (!isLease || server.role !== "master") return undefined;
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
