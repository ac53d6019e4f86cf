/**
 * What the adversary may not do, because the guard does not claim to survive it. Each limit is one assumption of docs/guarantees.md, and no
 * wider; it can be lifted by name, and then the simulation finds the repeats that the assumption is about.
 *
 * The other assumptions need no limit, because of what the simulated world is made of: every data node counts in `init --nodes` and
 * `recover --nodes` (A2, A3); a group has one life, and what was on one of its disks comes back on another of them only (A4, R1); importers
 * pin the store id, and no operator makes a second store (A5, R4); the operator's directory keeps the checkpoint of a moved store (R7); who writes into the record by hand computes no checksum (A6); no importer is
 * resumed twice (R5).
 */

import type { Call } from "./calls.js";
import type { Host } from "./host.js";
import { type Checkpoint, isRefusal, ledgerIdOf, PHASES, readRecord } from "./product.js";
import type { Contents, Server } from "./server.js";
import { BOUNDS, type World } from "./world.js";

export const LIMITS = {
  "clocks-wrong-together":
    "A1, R2: the clocks of coordinator and store are not both wrong in the same direction by more than eps. A right clock whose " +
    "message is in flight for long is right.",
  "forgotten-rollback":
    "R3: in a store that was rolled back inside one server process, to a state younger than the gap, no coordinator acts that " +
    "remembers no more than what came back, until one who does has settled it. One that has lost its checkpoint may, unless the state " +
    "looks as if another coordinator had just written it.",
} as const;

export type LimitName = keyof typeof LIMITS;

/** In one life of a server, a state that was put back in place of a later one. */
interface Rollback {
  readonly epoch: string;
  /** The greatest run that was leased there. */
  readonly forgottenMark: number;
}

export class Limits {
  readonly #rollbacks = new Map<Server, Rollback>();
  /** Places of coordinators that were started without a checkpoint when no rollback looked attended, and none came since. */
  readonly #blank = new Set<number>();
  /** When a call was lost last, because its coordinator knows no more than what came back. */
  lostAtMs = Number.NEGATIVE_INFINITY;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Whether a call may reach this server now; else it is lost. */
  mayMeet(server: Server, call: Pick<Call, "changing" | "isOfStep" | "place" | "clockAheadMs">): boolean {
    if (!call.isOfStep) return true;
    return this.#mayMeetInTime(server, call.clockAheadMs) && this.#mayAct(server, call);
  }

  /** Whether these keys may be put back into the running server: a coordinator must remember more, or recovery be due anyway. */
  mayPutBack(server: Server, contents: Contents): boolean {
    if (this.#isLifted("forgotten-rollback") || !this.#isBelieved(server, contents)) return true;
    return this.#world.hosts.some(({ memory }) => remembersMore(memory, contents));
  }

  notePutBack(server: Server): void {
    this.#blank.clear();
    this.#rollbacks.set(server, { epoch: server.epoch, forgottenMark: server.markLeased });
  }

  /** A coordinator was started at a place. */
  noteStart(place: number, isBlank: boolean): void {
    this.#blank.delete(place);
    if (isBlank && this.#noRollbackLooksAttended()) this.#blank.add(place);
  }

  /**
   * Whether a coordinator may lose what it remembers: not the last one that knows of a rollback, unless it forgets all and no rollback
   * looks attended.
   */
  mayForget(host: Host, forgetsAll: boolean): boolean {
    if (this.#isLifted("forgotten-rollback")) return true;
    if (forgetsAll && this.#noRollbackLooksAttended()) return true;
    const others = this.#world.hosts.filter((other) => other !== host);
    return [...this.#rollbacks.keys()].every((server) => {
      if (this.#rollbackOf(server) === undefined || server.contents.record === undefined) return true;
      return others.some(({ memoryOfProcess }) => remembersMore(memoryOfProcess, server.contents));
    });
  }

  #isLifted(name: LimitName): boolean {
    return this.#world.rules.lifted.has(name);
  }

  #mayMeetInTime(server: Server, clockAheadMs: number): boolean {
    if (this.#isLifted("clocks-wrong-together")) return true;
    const areAhead = Math.min(clockAheadMs, server.clockAheadMs) > BOUNDS.epsMs;
    const areBehind = Math.max(clockAheadMs, server.clockAheadMs) < -BOUNDS.epsMs;
    return !areAhead && !areBehind;
  }

  /** A heartbeat, too: it makes a forgotten rollback look attended. */
  #mayAct(server: Server, { changing, place }: Pick<Call, "changing" | "place">): boolean {
    const acting = changing?.commands.flatMap((one) => (one.step === "lease" || one.step === "heartbeat" ? [one] : []));
    if (acting === undefined || acting.length === 0) return true;
    if (this.#rollbackOf(server) === undefined || this.#blank.has(place)) return true;
    if (this.#isLifted("forgotten-rollback")) return true;
    if (!this.#isBelieved(server, server.contents)) return true;
    const ledgerId = Math.max(...acting.map(({ floor }) => floor));
    const generation = Math.max(...acting.map(({ generationMin }) => generationMin));
    const mayAct = remembersMore({ ledgerId, generation }, server.contents);
    if (!mayAct) this.lostAtMs = this.#world.time.nowMs;
    return mayAct;
  }

  /** By each of two clocks that are wrong by up to eps. */
  #noRollbackLooksAttended(): boolean {
    const attendedSinceMs = this.#world.time.nowMs - BOUNDS.attendedMs - 2 * BOUNDS.epsMs;
    return [...this.#rollbacks.keys()].every((server) => {
      const isInForce = this.#rollbackOf(server) !== undefined && server.contents.record !== undefined;
      return !isInForce || Number(server.contents.record?.["t"]) < attendedSinceMs;
    });
  }

  #rollbackOf(server: Server): Rollback | undefined {
    const rollback = this.#rollbacks.get(server);
    if (rollback === undefined) return undefined;
    const isOver = server.epoch !== rollback.epoch || markIdIn(server.contents) >= rollback.forgottenMark;
    if (isOver) this.#rollbacks.delete(server);
    return isOver ? undefined : rollback;
  }

  /** Whether nothing in the record itself, in its age or in the ledger shows that it is not the latest. */
  #isBelieved(server: Server, contents: Contents): boolean {
    const { record, expires, ledgerMark } = contents;
    if (record === undefined || expires || isRefusal(readRecord(record, record["ns"] ?? ""))) return false;
    if (ledgerMark > markIdIn(contents)) return false;
    const isYoung = this.#world.time.nowMs - BOUNDS.epsMs - Number(record["t"]) <= BOUNDS.gapMs;
    return isYoung && Number(record["p"]) === PHASES.open && record["ep"] === server.epoch;
  }
}

function remembersMore(memory: Pick<Checkpoint, "ledgerId" | "generation"> | undefined, contents: Contents): boolean {
  const { record } = contents;
  if (memory === undefined || record === undefined) return false;
  return memory.ledgerId > markIdIn(contents) || memory.generation > Number(record["g"]);
}

function markIdIn({ record }: Contents): number {
  return ledgerIdOf(Number(record?.["ver"] ?? 0), Number(record?.["c"] ?? 0));
}
