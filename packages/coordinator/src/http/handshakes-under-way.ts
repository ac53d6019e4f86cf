/**
 * The handshakes that have begun and not ended. A caller may let the server begin many, and then go on with all of them in one moment; so there
 * are few at a time, and when one more begins, one goes: of the network that has most of them, the one that began first.
 */
import type { Socket } from "node:net";
import { networkOf } from "./asker.js";
import { ByNetwork } from "./by-network.js";

export class HandshakesUnderWay {
  readonly #countMax: number;
  readonly #crowds = new ByNetwork<Socket>();
  readonly #networks = new Map<Socket, string>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Closes another one when this is one too many. */
  begin(socket: Socket): void {
    const network = networkOf(socket.remoteAddress ?? "");
    this.#crowds.add(network, socket);
    this.#networks.set(socket, network);
    socket.once("close", () => this.end(socket));
    if (this.#networks.size > this.#countMax) this.#closeOne();
  }

  /** It is over, well or not. */
  end(socket: Socket): void {
    const network = this.#networks.get(socket);
    if (network === undefined) return;
    this.#networks.delete(socket);
    this.#crowds.delete(network, socket);
  }

  #closeOne(): void {
    const [first] = this.#crowds.largest();
    if (first === undefined) return;
    this.end(first);
    first.destroy();
  }
}
