/**
 * Connections that are not read for a while: who was turned away, and asks again at once in spite of what it was told, is heard when the pause
 * is over. What it sends meanwhile waits at its own end. So turning away costs a bounded time for each connection that says nothing of a proxy,
 * however fast it asks, and leaves the rest to serve those who are let in.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import { OVERLOADED_RETRY_AFTER_MS } from "../limits/under-way.js";
import { readOn, stopReading } from "./socket-reading.js";

/** Less than those who are turned away are told to wait: who keeps to that is never met. */
const PAUSE_LEAST_MS = OVERLOADED_RETRY_AFTER_MS * 0.5;
/** Each pause lasts anything up to this: those who were turned away together would else come back together, and others wait for all of them. */
const PAUSE_MOST_MS = OVERLOADED_RETRY_AFTER_MS * 0.9;
const ANSWERED_BEFORE_PAUSE = 2;
/** What proxies say of themselves. */
const FORWARDED = ["x-forwarded-for", "forwarded", "via"];

export class HeldBack {
  readonly #isLetIn: (request: FastifyRequest) => boolean;
  readonly #held = new Map<Socket, ReturnType<typeof setTimeout>>();
  /** How often they were turned away since they were read last. */
  readonly #countOf = new WeakMap<Socket, number>();

  /** @param isLetIn whether anybody was let in on the request's connection. */
  constructor(isLetIn: (request: FastifyRequest) => boolean) {
    this.#isLetIn = isLetIn;
  }

  /** A proxy's connection serves many callers: all would wait for one of them. One that only strangers come through can be anybody's. */
  isSpared(request: FastifyRequest): boolean {
    return FORWARDED.some((name) => request.headers[name] !== undefined) && this.#isLetIn(request);
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

  /** Unless it is spared, the connection is not read from when this answer is out until its pause is over. */
  holdBehind(request: FastifyRequest, response: ServerResponse): void {
    if (this.isSpared(request)) return;
    const { socket } = request.raw;
    response.once("finish", () => this.#hold(socket));
  }

  #hold(socket: Socket): void {
    // Before anything else is read, also from this connection: but Node reads on for the rest of a body when the answer is out, and starts to in this
    // very moment.
    queueMicrotask(() => {
      if (socket.destroyed || this.#held.has(socket)) return;
      stopReading(socket);
      const pauseMs = PAUSE_LEAST_MS + Math.random() * (PAUSE_MOST_MS - PAUSE_LEAST_MS);
      this.#held.set(socket, setTimeout(() => this.#readOn(socket), pauseMs).unref());
    });
    setImmediate(() => {
      if (this.#held.has(socket)) socket.pause();
    });
  }

  /** All are read again. */
  end(): void {
    for (const socket of this.#held.keys()) this.#readOn(socket);
  }

  #readOn(socket: Socket): void {
    clearTimeout(this.#held.get(socket));
    this.#held.delete(socket);
    this.#countOf.delete(socket);
    readOn(socket);
  }
}
