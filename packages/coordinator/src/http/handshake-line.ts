/**
 * Connections that want to be encrypted, in line before their handshake: one a turn of the event loop, of each network in turn. The answer to a
 * caller's first message costs the server a signature and the caller nothing, who may have recorded that message: two thousand of them that came in
 * one turn made everybody else wait for all of them. So a connection that has not said all of it yet is not in line, and what it has said is kept.
 * What comes behind the first message goes to the platform as it comes: of those there are few at a time (handshakes-under-way.ts).
 */
import type { Socket } from "node:net";
import { networkOf } from "./asker.js";
import { ByNetwork } from "./by-network.js";

const HANDSHAKE_RECORD = 0x16;
const RECORD_HEAD_BYTES = 5;
/** As much as a record may hold; what is more is nobody's first message. */
const FIRST_BYTES_MAX = RECORD_HEAD_BYTES + 16_384;

export interface HandshakeLineOptions {
  /** The connection's turn has come; what it has said so far can be read from it. */
  readonly begin: (socket: Socket, network: string) => void;
  /** Whether one of this network may. While nobody may, the line stands until `goOn`. */
  readonly mayBegin: (network: string) => boolean;
  /** It did not say all of its first message in time, or too much, and is closed. */
  readonly onRefused: (reason: string) => void;
  /** How long a connection may take to say its first message. */
  readonly timeoutMs: number;
}

interface Waiting {
  readonly socket: Socket;
  readonly network: string;
  said: Buffer;
  readonly leave: () => void;
}

export class HandshakeLine {
  readonly #options: HandshakeLineOptions;
  /** Whose turn it is first, and in each network who came first. */
  readonly #line = new ByNetwork<Waiting>();
  #isTurnAhead = false;

  constructor(options: HandshakeLineOptions) {
    this.#options = options;
  }

  /** A connection that has just been made, and that nobody reads from. */
  add(socket: Socket): void {
    const listen = () => this.#listen(waiting);
    const timer = setTimeout(() => this.#refuse(waiting, "ERR_TLS_HANDSHAKE_TIMEOUT"), this.#options.timeoutMs);
    const leave = () => {
      clearTimeout(timer);
      socket.off("readable", listen).off("close", leave);
      this.#line.delete(waiting.network, waiting);
    };
    const waiting: Waiting = { socket, network: networkOf(socket.remoteAddress ?? ""), said: Buffer.alloc(0), leave };
    // One that is cut off is closed, and that is all there is to say of it.
    socket.on("error", () => {});
    socket.on("readable", listen).on("close", leave);
  }

  /** Somebody may begin who might not before. */
  goOn(): void {
    this.#awaitTurn();
  }

  #listen(waiting: Waiting): void {
    const { socket } = waiting;
    for (let bytes = socket.read(); bytes !== null; bytes = socket.read()) {
      waiting.said = Buffer.concat([waiting.said, bytes as Buffer]);
    }
    if (waiting.said.length > FIRST_BYTES_MAX) this.#refuse(waiting, "ERR_SSL_EXCESSIVE_MESSAGE_SIZE");
    else if (isWhole(waiting.said)) this.#enterLine(waiting);
  }

  #enterLine(waiting: Waiting): void {
    this.#line.add(waiting.network, waiting);
    this.#awaitTurn();
  }

  #awaitTurn(): void {
    if (this.#isTurnAhead || this.#line.size === 0) return;
    this.#isTurnAhead = true;
    setImmediate(() => {
      this.#isTurnAhead = false;
      if (this.#beginNext()) this.#awaitTurn();
    });
  }

  /** Answers whether anybody did. */
  #beginNext(): boolean {
    for (const [network, crowd] of this.#line.crowds()) {
      if (!this.#options.mayBegin(network)) continue;
      // For its next.
      this.#line.putLast(network);
      for (const { socket, said, leave } of crowd) {
        leave();
        // Told to go, or gone: either is told a moment later.
        if (socket.destroyed || socket.readableEnded) continue;
        socket.unshift(said);
        this.#options.begin(socket, network);
        return true;
      }
    }
    return false;
  }

  #refuse({ socket, leave }: Waiting, reason: string): void {
    leave();
    socket.destroy();
    this.#options.onRefused(reason);
  }
}

/** Whether the first record is there, or what begins as none: that is for whoever shakes hands to refuse. */
function isWhole(said: Buffer): boolean {
  if (said.length === 0) return false;
  if (said[0] !== HANDSHAKE_RECORD) return true;
  return (
    said.length >= RECORD_HEAD_BYTES &&
    said.length >= Math.min(RECORD_HEAD_BYTES + said.readUInt16BE(3), FIRST_BYTES_MAX)
  );
}
