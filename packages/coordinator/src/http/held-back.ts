/**
 * Connections that are not read for a while: who was turned away, and asks again at once in spite of what it was told, is heard when the pause
 * is over. What it sends meanwhile waits at its own end. So turning away costs a bounded time for each connection that says nothing of a proxy,
 * however fast it asks, and leaves the rest to serve those who are let in.
 */
import type { Socket } from "node:net";

const ANSWERED_BEFORE_PAUSE = 2;

export class HeldBack {
  readonly #pauseMs: number;
  /** Those that are read again first stand first: all pauses are alike. */
  #held: { readonly socket: Socket; readonly untilMs: number }[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** How often they were turned away since they were read last. */
  readonly #countOf = new WeakMap<Socket, number>();

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
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
      if (socket.destroyed) return;
      socket.pause();
      this.#held.push({ socket, untilMs: performance.now() + this.#pauseMs });
      this.#timer ??= setTimeout(() => this.#release(), this.#pauseMs).unref();
    });
  }

  /** All are read again. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { socket } of this.#held.splice(0)) this.#readOn(socket);
  }

  #release(): void {
    const nowMs = performance.now();
    const stillHeld = this.#held.findIndex(({ untilMs }) => untilMs > nowMs);
    for (const { socket } of this.#held.splice(0, stillHeld < 0 ? this.#held.length : stillHeld)) this.#readOn(socket);
    const [next] = this.#held;
    this.#timer = next && setTimeout(() => this.#release(), next.untilMs - nowMs).unref();
  }

  #readOn(socket: Socket): void {
    this.#countOf.delete(socket);
    socket.resume();
  }
}
