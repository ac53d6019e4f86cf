/**
 * What lies between the places: messages that fast-check's scheduler delivers in any order, cuts, stopped processes, delayed messages,
 * and time. Knows nothing of what the messages contain.
 */
import type { Scheduler } from "fast-check";

/** A server, a host or the operator, by number. */
export type Place = number;

export const HOST_PLACE = 8;
export const OPERATOR_PLACE = 15;
const PLACE_COUNT = 16;

interface Message {
  readonly from: Place;
  readonly to: Place;
  readonly label: string;
  readonly arrive: () => void;
}

const NOW = Promise.resolve();

export class Network {
  readonly #scheduler: Scheduler;
  readonly #cuts = new Set<number>();
  readonly #stopped = new Set<Place>();
  /** Waits for a cut to heal or a process to go on. */
  #stuck: Message[] = [];
  /** Delayed for nothing but lateness. */
  #late: Message[] = [];

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  get waitingCount(): number {
    return this.#scheduler.count();
  }

  deliverOne(): Promise<void> {
    return this.#scheduler.waitOne();
  }

  carry(from: Place, to: Place, label: string, arrive: () => void): void {
    this.#send({ from, to, label, arrive });
  }

  /** Until `release`. */
  holdBack(from: Place, to: Place, label: string, arrive: () => void): void {
    this.#late.push({ from, to, label, arrive });
  }

  release(): boolean {
    const late = this.#late;
    this.#late = [];
    for (const message of late) this.#send(message);
    return late.length > 0;
  }

  cut(one: Place, other: Place): void {
    this.#cuts.add(pairOf(one, other));
  }

  isCut(one: Place, other: Place): boolean {
    return this.#cuts.has(pairOf(one, other));
  }

  heal(): boolean {
    const wasCut = this.#cuts.size > 0;
    this.#cuts.clear();
    this.#resend();
    return wasCut;
  }

  repair(one: Place, other: Place): void {
    if (this.#cuts.delete(pairOf(one, other))) this.#resend();
  }

  /** SIGSTOP. */
  stop(place: Place): boolean {
    if (this.#stopped.has(place)) return false;
    this.#stopped.add(place);
    return true;
  }

  /** SIGCONT. */
  goOn(place: Place): boolean {
    if (!this.#stopped.delete(place)) return false;
    this.#resend();
    return true;
  }

  isStopped(place: Place): boolean {
    return this.#stopped.has(place);
  }

  #resend(): void {
    const stuck = this.#stuck;
    this.#stuck = [];
    for (const message of stuck) this.#send(message);
  }

  #send(message: Message): void {
    if (this.#isHeldUp(message)) {
      this.#stuck.push(message);
      return;
    }
    void this.#scheduler.schedule(NOW, message.label).then(() => {
      // Cut while it was in flight.
      if (this.#isHeldUp(message)) this.#stuck.push(message);
      else message.arrive();
    });
  }

  #isHeldUp({ from, to }: Message): boolean {
    return this.#cuts.has(pairOf(from, to)) || this.#stopped.has(from) || this.#stopped.has(to);
  }
}

function pairOf(one: Place, other: Place): number {
  return Math.min(one, other) * PLACE_COUNT + Math.max(one, other);
}

/**
 * The simulation's time: moves only when a history says so. Clocks of servers and hosts are this time and an error of their own.
 */
interface Timer {
  readonly atMs: number;
  readonly run: () => void;
  isCanceled: boolean;
}

/** Later than the release, before which no clock is believed. */
export const BEGIN_MS = Date.UTC(2026, 11, 1);

export class Time {
  nowMs = BEGIN_MS;
  /** By rising instant. */
  readonly #timers: Timer[] = [];

  /** Runs it when so much time has passed, unless what this returns is called before. */
  after(waitMs: number, run: () => void): () => void {
    const timer = { atMs: this.nowMs + Math.ceil(waitMs), run, isCanceled: false };
    const before = this.#timers.findLastIndex(({ atMs }) => atMs <= timer.atMs);
    this.#timers.splice(before + 1, 0, timer);
    return () => {
      timer.isCanceled = true;
    };
  }

  /** Moves on to the next timer that is due by `untilMs`, and runs it; false when there is none. */
  ring(untilMs: number): boolean {
    while (this.#timers[0]?.isCanceled) this.#timers.shift();
    const [next] = this.#timers;
    if (next === undefined || next.atMs > untilMs) return false;
    this.#timers.shift();
    this.nowMs = Math.max(this.nowMs, next.atMs);
    next.run();
    return true;
  }

  moveTo(instantMs: number): void {
    this.nowMs = Math.max(this.nowMs, instantMs);
  }
}
