/**
 * What the adversary may not do, because the guard does not claim to survive it; each with its reason. A limit can be lifted by name: then
 * the suite finds the repeats that the limit is about, which shows that it is no wider than it must be.
 *
 * Besides those below, by the way the simulated world is made: importers pin the store id, and `init` is never typed for an archive that has one
 * ("An operator who makes a new store for an old archive"). Every data node counts in `init --nodes`, and in `recover --nodes`
 * ("Every promotable node counts"). Data of a node come back on nodes of the group only, one life at a time ("Two live copies of one store").
 * Who edits the record by hand does not compute its checksum ("Root on the Redis host"). The run space of version 0 is the only one.
 */
import type { Host } from "./host.js";
import { type FoundFields, PHASES } from "./product.js";
import type { Server } from "./server.js";
import type { Time } from "./time.js";

/** Each limit's reason, as the guard's own list of what remains says it, or as the simulation taught it. */
export const LIMITS = {
  "clocks-wrong-together":
    "Clocks of coordinator and server wrong in the same direction by more than eps are outside. A request that is long under way counts as a " +
    "clock that is behind: what the script sees of the coordinator's clock is as old as the request.",
  "rollback-nobody-remembers":
    "A record rolled back inside one server process, to a state younger than the gap, is seen only by who remembers more: so every coordinator " +
    "that may lease must remember more than the state that came back, until one of them has settled it.",
} as const;

export type LimitName = keyof typeof LIMITS;

export interface LimitsOptions {
  readonly time: Time;
  readonly bounds: { readonly epsMs: number; readonly gapMs: number };
  readonly lifted: ReadonlySet<LimitName>;
  readonly hosts: () => readonly Host[];
}

interface RolledBack {
  readonly server: Server;
  readonly epoch: string;
  readonly generation: string | undefined;
}

export class Limits {
  readonly #options: LimitsOptions;
  #rolledBack: RolledBack | undefined;

  constructor(options: LimitsOptions) {
    this.#options = options;
  }

  /** Whether a call that bears this clock may reach this server now; else it is lost. */
  mayMeet(server: Server, stampMs: number): boolean {
    const { time, bounds, lifted } = this.#options;
    if (lifted.has("clocks-wrong-together")) return true;
    const callAheadMs = stampMs - time.nowMs;
    const { epsMs } = bounds;
    const serverAheadMs = server.clockAheadMs;
    // Clocks that disagree are refused, however wrong they are.
    if (Math.abs(callAheadMs - serverAheadMs) > epsMs) return true;
    const isAhead = Math.min(callAheadMs, serverAheadMs) > epsMs;
    const isBehind = Math.max(callAheadMs, serverAheadMs) < -epsMs;
    return !isAhead && !isBehind;
  }

  /** Whether a record may be put back into the running server. */
  mayPutBack(server: Server, record: FoundFields): boolean {
    const { time, bounds, lifted, hosts } = this.#options;
    if (lifted.has("rollback-nobody-remembers")) return true;
    if (Number(record["p"]) !== PHASES.open || record["ep"] !== server.epoch) return true;
    if (time.nowMs - bounds.epsMs - Number(record["t"]) > bounds.gapMs) return true;
    return hosts().every(({ memory }) => {
      if (memory === undefined) return false;
      return memory.ledgerId > Number(record["c"]) || memory.generation > Number(record["g"]);
    });
  }

  notePutBack(server: Server): void {
    this.#rolledBack = { server, epoch: server.epoch, generation: server.contents.record?.["g"] };
  }

  /** Whether a coordinator may lose what it remembers. */
  mayForget(): boolean {
    if (this.#options.lifted.has("rollback-nobody-remembers") || this.#rolledBack === undefined) return true;
    const { server, epoch, generation } = this.#rolledBack;
    const isSettled = server.epoch !== epoch || server.contents.record?.["g"] !== generation;
    if (isSettled) this.#rolledBack = undefined;
    return isSettled;
  }
}
