/**
 * Connections that are not read for a while: who was turned away, and asks again at once in spite of what it was told, is heard when the pause
 * is over. What it sends meanwhile waits at its own end. So turning away costs a bounded time for each connection that says nothing of a proxy,
 * however fast it asks, and leaves the rest to serve those who are let in.
 */
import type { Socket } from "node:net";

const ANSWERED_BEFORE_PAUSE = 2;

/** In milliseconds. */
export interface Pause {
  readonly leastMs: number;
  /** Each pause lasts anything up to this: those who were turned away together would else come back together, and others wait for all of them. */
  readonly mostMs: number;
}

export class HeldBack {
  readonly #pause: Pause;
  readonly #held = new Map<Socket, ReturnType<typeof setTimeout>>();
  /** How often they were turned away since they were read last. */
  readonly #countOf = new WeakMap<Socket, number>();

  constructor(pause: Pause) {
    this.#pause = pause;
  }

  /**
   * This one is turned away, and will be held. Answers whether it sends on without waiting for its answers: what came with them is parsed already,
   * and not reading on would not stop it. One who waits for each can be before the pause once, when its answer was out before we heard of it.
   */
  sendsOn(socket: Socket): boolean {
    const count = (this.#countOf.get(socket) ?? 0) + 1;
    this.#countOf.set(socket, count);
    return count > ANSWERED_BEFORE_PAUSE;
  }

  /** To be called when an answer is out. */
  hold(socket: Socket): void {
    // Node reads on for the rest of a body when the answer is out: it stops after that.
    setImmediate(() => {
      if (socket.destroyed || this.#held.has(socket)) return;
      socket.pause();
      const { leastMs, mostMs } = this.#pause;
      const pauseMs = leastMs + Math.random() * (mostMs - leastMs);
      this.#held.set(socket, setTimeout(() => this.#readOn(socket), pauseMs).unref());
    });
  }

  /** All are read again. */
  end(): void {
    for (const socket of [...this.#held.keys()]) this.#readOn(socket);
  }

  #readOn(socket: Socket): void {
    clearTimeout(this.#held.get(socket));
    this.#held.delete(socket);
    this.#countOf.delete(socket);
    socket.resume();
  }
}
