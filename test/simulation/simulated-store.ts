/**
 * The Store port of one coordinator process: its calls go over the simulated network to the server that the process is pointed at.
 * Requests and answers may be lost, late or doubled, as the history says; when the process is killed, nothing reaches it any more.
 */
import type { Answer, Call } from "./calls.js";
import type { Place } from "./network.js";
import {
  CoordinatorError,
  type NamespaceRecord,
  namespaceRecordIn,
  type Outcome,
  type Retention,
  refused,
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
  readonly #world: World;
  readonly #at: Whereabouts;
  #isDead = false;
  #mishap: Mishap | undefined;
  /** An answer that came twice, and is taken for the one to the next call. */
  #stray: Answer | undefined;

  constructor(world: World, at: Whereabouts) {
    this.#world = world;
    this.#at = at;
  }

  /** For the next step; undefined: no mishap after all. */
  befall(mishap: Mishap | undefined): void {
    this.#mishap = mishap;
  }

  /** The process is killed: its promises never settle. */
  kill(): void {
    this.#isDead = true;
  }

  step(_namespace: string, command: StepCommand): Promise<Outcome> {
    const mishap = this.#mishap;
    this.#mishap = undefined;
    const { network, calls, time } = this.#world;
    const { place, clock } = this.#at;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      if (this.#isDead) return;
      let isAnswered = false;
      const stopWaiting = time.after(CALL_TIMEOUT_MS, () => settle({ isLost: true }));
      const settle = (own: Answer) => {
        if (this.#isDead || isAnswered) return;
        isAnswered = true;
        stopWaiting();
        const answer = this.#stray ?? own;
        this.#stray = mishap === "answer doubled" ? own : undefined;
        this.#handOutCounter(command, answer);
        this.#world.wake();
        if (answer.outcome !== undefined) resolve(answer.outcome);
        else if (answer.refusal !== undefined) {
          reject(refused(answer.refusal.code, answer.refusal.detail, NAMESPACE));
        } else reject(unavailable());
      };
      const call: Call = {
        command,
        place,
        stampMs: clock(),
        clockAheadMs: clock() - time.nowMs,
        reply: (answer) => {
          if (mishap === "answer late") network.holdBack(server.index, place, "late answer", () => settle(answer));
          else if (mishap === "answer lost")
            network.carry(server.index, place, "reset", () => settle({ isLost: true }));
          else network.carry(server.index, place, "answer", () => settle(answer));
        },
      };
      if (mishap === "request lost") return network.carry(place, place, "reset", () => settle({ isLost: true }));
      if (mishap === "request late") {
        return network.holdBack(place, server.index, "late request", () => calls.receive(server, call));
      }
      network.carry(place, server.index, "request", () => calls.receive(server, call));
      if (mishap === "request doubled")
        network.holdBack(place, server.index, "doubled", () => calls.receive(server, call));
    });
  }

  readNamespace(namespace: string): Promise<NamespaceRecord> {
    const { network } = this.#world;
    const { place } = this.#at;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      if (this.#isDead) return;
      network.carry(place, server.index, "read", () => {
        const { isUp } = server;
        const { record } = server.contents;
        network.carry(server.index, place, "answer", () => {
          if (this.#isDead) return;
          this.#world.wake();
          if (!isUp) return reject(unavailable());
          if (record === undefined) return reject(refused("EMPTY", "no record", namespace));
          try {
            resolve(namespaceRecordIn(record, namespace));
          } catch (error) {
            reject(error);
          }
        });
      });
    });
  }

  async listNamespaces(): Promise<readonly string[]> {
    return [NAMESPACE];
  }

  async report(): Promise<void> {}

  async leases(): Promise<readonly []> {
    return [];
  }

  async preflight(): Promise<readonly []> {
    return [];
  }

  async importLeases(): Promise<void> {}

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

  #handOutCounter({ step }: StepCommand, { counter, outcome }: Answer): void {
    if (step !== "lease" || counter === undefined) return;
    this.#world.tally.receiveCounter(counter, outcome !== undefined && outcome.acknowledgedCount > 0);
  }
}

function unavailable(): CoordinatorError {
  return new CoordinatorError("store_unavailable", "the connection broke: not known whether the step was done");
}
