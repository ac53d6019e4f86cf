/**
 * When a network may begin its next handshake, where callers are asked for a certificate. OpenSSL verifies what a caller shows, signature by
 * signature, before it finds that nobody believed has signed any of it: a long chain of a stranger's own making is dear, and comes in one piece that
 * nobody here sees. So of one network few handshakes are under way at a time, and behind one that failed the network waits, the longer the
 * more it said.
 */
import type { Socket } from "node:net";

/** Of one network; all of them may go on in one moment. */
const AT_ONCE_MAX = 4;
/** When another one waits, one that takes longer makes room: twice the way to a caller a quarter of a second away. */
const PATIENCE_MS = 500;
/** Several times what the dearest certificates cost: the rest of the time is for others. */
const REST_MS_PER_BYTE = 0.02;

interface Begun {
  readonly socket: Socket;
  readonly atMs: number;
  /** What was read before it began: no certificate. */
  readonly firstBytes: number;
}

export interface HandshakePaceOptions {
  /** A network that may not have begun may now. */
  readonly onFree: () => void;
  /** Default 500. */
  readonly patienceMs?: number;
}

export class HandshakePace {
  readonly #options: HandshakePaceOptions;
  readonly #begun = new Map<string, Set<Begun>>();
  readonly #restsUntilMs = new Map<string, number>();
  readonly #ends = new WeakMap<Socket, () => void>();

  constructor(options: HandshakePaceOptions) {
    this.#options = options;
  }

  mayBegin(network: string): boolean {
    if (this.#restsUntilMs.has(network)) return false;
    const crowd = this.#begun.get(network) ?? new Set();
    const [first] = crowd;
    return first === undefined || crowd.size < AT_ONCE_MAX || performance.now() - first.atMs >= this.#patienceMs;
  }

  /** Closes the one that began first when this is one too many. */
  begin(socket: Socket, network: string): void {
    const crowd = this.#begun.get(network) ?? new Set();
    const begun = { socket, atMs: performance.now(), firstBytes: socket.bytesRead };
    this.#begun.set(network, crowd.add(begun));
    const end = () => {
      crowd.delete(begun);
      if (crowd.size === 0) this.#begun.delete(network);
      this.#ends.delete(socket);
      this.#options.onFree();
    };
    const fail = () => {
      this.#rest(network, (socket.bytesRead - begun.firstBytes) * REST_MS_PER_BYTE);
      end();
    };
    socket.once("close", fail);
    this.#ends.set(socket, () => {
      socket.off("close", fail);
      end();
    });
    setTimeout(this.#options.onFree, this.#patienceMs).unref();
    const [first] = crowd;
    if (crowd.size > AT_ONCE_MAX) first?.socket.destroy();
  }

  /** Its caller is believed. */
  letIn(socket: Socket): void {
    this.#ends.get(socket)?.();
  }

  get #patienceMs(): number {
    return this.#options.patienceMs ?? PATIENCE_MS;
  }

  #rest(network: string, ms: number): void {
    const nowMs = performance.now();
    const untilMs = (this.#restsUntilMs.get(network) ?? nowMs) + ms;
    if (untilMs <= nowMs) return;
    this.#restsUntilMs.set(network, untilMs);
    const wake = () => {
      if (this.#restsUntilMs.get(network) !== untilMs) return;
      this.#restsUntilMs.delete(network);
      this.#options.onFree();
    };
    setTimeout(wake, untilMs - nowMs).unref();
  }
}
