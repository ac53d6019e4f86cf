/**
 * The handshakes that have begun and not ended. A caller may let the server begin many, and then go on with all of them in one moment; so there
 * are few at a time, and when one more begins, one goes: of the network that has most of them, the one that began first.
 */
import type { Socket } from "node:net";
import { networkOf } from "./asker.js";

export class HandshakesUnderWay {
  readonly #countMax: number;
  /** By network, the first to begin first. */
  readonly #crowds = new Map<string, Set<Socket>>();
  readonly #networks = new Map<Socket, string>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Closes another one when this is one too many. */
  begin(socket: Socket): void {
    const network = networkOf(socket.remoteAddress ?? "");
    const crowd = this.#crowds.get(network);
    if (crowd === undefined) this.#crowds.set(network, new Set([socket]));
    else crowd.add(socket);
    this.#networks.set(socket, network);
    socket.once("close", () => this.end(socket));
    if (this.#networks.size > this.#countMax) this.#closeOne();
  }

  /** It is over, well or not. */
  end(socket: Socket): void {
    const network = this.#networks.get(socket);
    if (network === undefined) return;
    this.#networks.delete(socket);
    const crowd = this.#crowds.get(network);
    crowd?.delete(socket);
    if (crowd?.size === 0) this.#crowds.delete(network);
  }

  #closeOne(): void {
    let largest = new Set<Socket>();
    for (const crowd of this.#crowds.values()) if (crowd.size > largest.size) largest = crowd;
    const [first] = largest;
    if (first === undefined) return;
    this.end(first);
    first.destroy();
  }
}
