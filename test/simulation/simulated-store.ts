/**
 * The Store port of one coordinator process: its calls go over the simulated network to the server that the process is pointed at.
 * Requests and answers may be lost, late or doubled, as the history says; when the process is killed, nothing reaches it any more.
 */
import { type Answer, type Call, LOST } from "./calls.js";
import type { Place } from "./network.js";
import {
  type Applied,
  type Change,
  CoordinatorError,
  type Decide,
  decide,
  type Expected,
  isRefusal,
  type NamespaceRecord,
  namespaceRecordIn,
  type Observed,
  type Retention,
  type StepCommand,
  type Store,
} from "./product.js";
import type { Server } from "./server.js";
import { NAMESPACE, type World } from "./world.js";

/** What happens to the next call on a connection. */
export const MISHAPS = [
  "request lost",
  "request late",
  "request doubled",
  "answer lost",
  "answer late",
  "answer doubled",
] as const;
export type Mishap = (typeof MISHAPS)[number];

/** How long a call may take, as in the product; then its connection is dropped. What was asked may still be done, at any later time. */
const CALL_TIMEOUT_MS = 5_000;

/** Where a process is, by which clock it goes, and which server it is pointed at. */
interface Whereabouts {
  readonly place: Place;
  readonly clock: () => number;
  /** Index of the server. */
  readonly route: () => number;
}

export class SimulatedStore implements Store {
  readonly kind = "simulated";
  readonly isExclusive = false;
  /** How many changes it has asked for: each is a try. */
  changeCount = 0;
  readonly #world: World;
  readonly #at: Whereabouts;
  #isDead = false;
  #nonce = 0;
  #mishap: Mishap | undefined;
  /** Answers that came twice, and are taken for the ones to the next calls: reads and changes have a connection each. */
  readonly #strays: { read?: Answer | undefined; change?: Answer | undefined } = {};
  /** The steps that were granted since the last call: what the next change is for. */
  #granted: StepCommand[] = [];
  /** By how much answers to reads are late, ms. */
  #readLagMs = 0;
  readonly #lagging = new Set<() => void>();
  #foundLast: Observed | undefined;

  constructor(world: World, at: Whereabouts) {
    this.#world = world;
    this.#at = at;
  }

  /** Decides for the coordinator of this store, as the variant says. */
  readonly decide: Decide = (context, command) => {
    const decided = (this.#world.rules.variant.decide ?? decide)(context, command);
    if (!isRefusal(decided)) this.#granted.push(command);
    return decided;
  };

  /** For the next call; undefined: no mishap after all. */
  befall(mishap: Mishap | undefined): void {
    this.#mishap = mishap;
  }

  /** From now on answers to reads are late, by minutes, say: no time-out ends that. 0: no more, and those that were late arrive. */
  lagReads(lagMs: number): boolean {
    if (lagMs === this.#readLagMs) return false;
    this.#readLagMs = lagMs;
    if (lagMs > 0) return true;
    for (const arrive of this.#lagging) arrive();
    return true;
  }

  /** The process is killed: its promises never settle. */
  kill(): void {
    this.#isDead = true;
  }

  async read(namespace: string): Promise<Observed> {
    const { believesStale = false } = this.#world.rules.variant;
    const last = this.#foundLast;
    if (believesStale && last !== undefined && !this.#isDead) {
      this.#granted = [];
      return { ...last, server: { ...last.server, timeMs: this.#at.clock() } };
    }
    const { found } = await this.#call(undefined, true);
    if (found === undefined) throw unavailable(namespace);
    this.#foundLast = found;
    return found;
  }

  async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    this.changeCount++;
    const { applied, found } = await this.#call({ expected, change, commands: this.#granted }, true);
    this.#foundLast = found;
    const answer = applied ?? found;
    if (answer === undefined) throw unavailable(namespace);
    return answer;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const { found } = await this.#call(undefined, false);
    if (found === undefined) throw unavailable(namespace);
    return namespaceRecordIn(found, namespace);
  }

  /** Resolves to the answer, which is `LOST` where none comes that is meant for this call. */
  #call(changing: Call["changing"], isOfStep: boolean): Promise<Answer> {
    const mishap = this.#mishap;
    this.#mishap = undefined;
    this.#granted = [];
    const { network, calls, time } = this.#world;
    const { place, clock } = this.#at;
    const server = this.#server;
    const nonce = this.#nonce++;
    const connection = changing === undefined ? "read" : "change";
    const lagMs = changing === undefined ? this.#readLagMs : 0;
    return new Promise((resolve) => {
      if (this.#isDead) return;
      let isAnswered = false;
      const stopWaiting = lagMs > 0 ? () => {} : time.after(CALL_TIMEOUT_MS, () => settle(LOST));
      const settle = (own: Answer) => {
        if (this.#isDead || isAnswered) return;
        isAnswered = true;
        stopWaiting();
        const answer = this.#strays[connection] ?? own;
        this.#strays[connection] = mishap === "answer doubled" ? own : undefined;
        // As the Redis adapter: an answer with another nonce is none.
        const isOwn = answer.nonce === nonce;
        if (isOwn) this.#handOutCounter(answer);
        this.#world.wake();
        resolve(isOwn ? answer : LOST);
      };
      const arrive = (answer: Answer) => {
        if (lagMs === 0 || this.#readLagMs === 0) return settle(answer);
        const late = () => {
          this.#lagging.delete(late);
          settle(answer);
        };
        this.#lagging.add(late);
        time.after(lagMs, late);
      };
      const call: Call = {
        nonce,
        changing,
        isOfStep,
        place,
        clockAheadMs: clock() - time.nowMs,
        reply: (answer) => {
          if (mishap === "answer late") network.holdBack(server.index, place, "late answer", () => arrive(answer));
          else if (mishap === "answer lost") network.carry(server.index, place, "reset", () => settle(LOST));
          else network.carry(server.index, place, "answer", () => arrive(answer));
        },
      };
      if (mishap === "request lost") return network.carry(place, place, "reset", () => settle(LOST));
      if (mishap === "request late") {
        return network.holdBack(place, server.index, "late request", () => calls.receive(server, call));
      }
      network.carry(place, server.index, "request", () => calls.receive(server, call));
      if (mishap === "request doubled")
        network.holdBack(place, server.index, "doubled", () => calls.receive(server, call));
    });
  }

  async listNamespaces(): Promise<readonly string[]> {
    return [NAMESPACE];
  }

  async setProgress(): Promise<boolean> {
    return true;
  }

  async hasHolder(): Promise<boolean> {
    return false;
  }

  async leases(): Promise<readonly []> {
    return [];
  }

  async preflight(): Promise<readonly []> {
    return [];
  }

  async appendLeases(): Promise<boolean> {
    return true;
  }

  async readRetention(): Promise<Retention> {
    return { days: 0, through: 0, leasedAtMs: 0 };
  }

  async setRetentionDays(): Promise<void> {}

  async trimLedger(): Promise<never> {
    throw new Error("a simulated store keeps no ledger");
  }

  async close(): Promise<void> {}

  get #server(): Server {
    return this.#world.group.at(this.#at.route());
  }

  #handOutCounter({ counter, applied }: Answer): void {
    if (counter === undefined) return;
    this.#world.tally.receiveCounter(counter, applied !== undefined && applied.acknowledgedCount > 0);
  }
}

function unavailable(namespace: string): CoordinatorError {
  return new CoordinatorError(
    "store_unavailable",
    `the connection broke: not known what was done in namespace "${namespace}"`,
  );
}
