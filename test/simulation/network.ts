/**
 * What lies between the places: messages that fast-check's scheduler delivers in any order, cuts, stopped processes, and messages
 * that somebody holds back. Knows nothing of what the messages say.
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
  /** Held back for nothing but lateness. */
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

  mend(one: Place, other: Place): void {
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
      // Cut while it was under way.
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
