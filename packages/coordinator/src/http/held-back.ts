/**
 * Connections that are not read for a while: who was turned away, and asks again at once in spite of what it was told, is heard when the pause
 * is over. What it sends meanwhile waits at its own end. So turning away costs a bounded time for each connection that says nothing of a proxy,
 * however fast it asks, and leaves the rest to serve those who are let in.
 */
import type { Socket } from "node:net";

export class HeldBack {
  readonly #pauseMs: number;
  /** Those that are read again first stand first: all pauses are alike. */
  #held: { readonly socket: Socket; readonly untilMs: number }[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** From the moment in which they are turned away. */
  readonly #expected = new WeakSet<Socket>();

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  /** This one will be held. What it has sent at once behind its request is still read. */
  expect(socket: Socket): void {
    this.#expected.add(socket);
  }

  isExpected(socket: Socket): boolean {
    return this.#expected.has(socket);
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
    this.#expected.delete(socket);
    socket.resume();
  }
}
