/**
 * The open connections, and which of them must go when there are too many. First those that never got a good answer to what not
 * everybody may ask, of the network that has most of them, oldest first; then those that have been idle for longest; the newest only when
 * there is no other; never one for whose request somebody was let in who is not answered yet: a run may be leased for it. So neither a flood of
 * sockets stops those who work, nor one of strangers who ask and do not read what they are told.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "./asker.js";
import { ByNetwork } from "./by-network.js";

/** What is known of one connection. */
export class Connection {
  /** Nothing more of it is looked at: what follows a refused request may be a part of it. */
  isRefused = false;
  requestCount = 0;
  /** Had come when the newest request began; raw, below any encryption. */
  bytesBefore = 0;
  /** When the newest answer was over, by the clock that never goes back; undefined while there was none. */
  answeredAtMs: number | undefined;
  /** Whoever asks on it was let in, with this request or an earlier one, where not everybody is. */
  isLetIn = false;
  hasProved = false;
  /** Told to go, and not closed yet. */
  isDropped = false;
  /** Where answers are written; undefined while the connection is not ready for them. */
  speaking: Socket | undefined;
  /** The request whose answer goes on until somebody ends it. */
  stream: IncomingMessage | undefined;
  readonly #underWay = new Map<IncomingMessage, ServerResponse>();
  readonly #letIn = new WeakSet<IncomingMessage>();
  /** What begins each request that waits for the one before it. */
  readonly #waiting: (() => void)[] = [];
  #onAnswered: (() => void) | undefined;

  constructor(
    /** The connection itself, below any encryption. */
    readonly socket: Socket,
    /** Whose crowd it is one of while nobody knows more of it. */
    readonly network: string,
  ) {}

  /** A request that arrived whole is not answered yet. */
  get isBusy(): boolean {
    for (const { complete } of this.#underWay.keys()) if (complete) return true;
    return false;
  }

  /** One that arrived whole, and for which somebody was let in, has no answer yet; whether one that has is read is the reader's business. */
  get isWorking(): boolean {
    for (const [request, { writableEnded }] of this.#underWay) {
      if (request.complete && this.#letIn.has(request) && !writableEnded) return true;
    }
    return false;
  }

  /** How many requests are not answered yet. */
  get underWayCount(): number {
    return this.#underWay.size;
  }

  /** One after the other: the answer to the one before may be the last of the connection, and nobody would hear of this one. */
  begin(request: IncomingMessage, response: ServerResponse, act: () => void): void {
    this.requestCount++;
    this.bytesBefore = this.socket.bytesRead;
    this.#underWay.set(request, response);
    if (this.#underWay.size === 1) act();
    else this.#waiting.push(act);
  }

  letIn(request: IncomingMessage): void {
    this.isLetIn = true;
    this.#letIn.add(request);
  }

  end(request: IncomingMessage): void {
    this.#underWay.delete(request);
    this.answeredAtMs = performance.now();
    if (this.stream === request) this.stream = undefined;
    if (!this.isBusy) this.#onAnswered?.();
    if (request.socket.writable) this.#waiting.shift()?.();
  }

  /** As soon as each request that arrived whole is answered; at once when there is none. */
  whenAnswered(act: () => void): void {
    if (this.isBusy) this.#onAnswered = act;
    else act();
  }
}

export interface ConnectionsOptions {
  readonly countMax: number;
  /** The connection is one too many. Whoever is told ends it. */
  readonly drop: (connection: Connection) => void;
}

export class Connections {
  readonly #options: ConnectionsOptions;
  /** By socket, also by the encrypted one above it. */
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** By network, oldest first. */
  readonly #unproved = new ByNetwork<Connection>();
  /** Those that have been idle for longest first. */
  readonly #proved = new Set<Connection>();
  #count = 0;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** @param speaks whether answers are written on the socket itself, and not on one that encrypts them. */
  open(socket: Socket, speaks: boolean): Connection {
    const connection = new Connection(socket, networkOf(socket.remoteAddress ?? ""));
    if (speaks) connection.speaking = socket;
    this.#bySocket.set(socket, connection);
    this.#count++;
    this.#unproved.add(connection.network, connection);
    socket.once("close", () => this.#close(connection));
    if (this.#count > this.#options.countMax) this.#drop(this.#weakestBut(connection) ?? connection);
    return connection;
  }

  /** The connection answers through `socket` from now on, which encrypts it. */
  speak(connection: Connection, socket: Socket): void {
    connection.speaking = socket;
    this.#bySocket.set(socket, connection);
  }

  get count(): number {
    return this.#count;
  }

  *all(): Iterable<Connection> {
    for (const [, crowd] of this.#unproved.crowds()) yield* crowd;
    yield* this.#proved;
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /** Lets `act` answer the request as soon as those before it on the same connection are answered. */
  begin(connection: Connection, request: IncomingMessage, response: ServerResponse, act: () => void): void {
    response.once("close", () => {
      connection.end(request);
      const isGood = request.complete && response.writableFinished && response.statusCode < 400;
      if (isGood && connection.isLetIn) this.#prove(connection);
    });
    connection.begin(request, response, act);
  }

  #prove(connection: Connection): void {
    if (connection.socket.destroyed) return;
    if (connection.hasProved) this.#proved.delete(connection);
    else this.#unproved.delete(connection.network, connection);
    connection.hasProved = true;
    this.#proved.add(connection);
  }

  #close(connection: Connection): void {
    this.#count--;
    if (connection.hasProved) this.#proved.delete(connection);
    else this.#unproved.delete(connection.network, connection);
  }

  #drop(connection: Connection): void {
    connection.isDropped = true;
    this.#options.drop(connection);
  }

  /** Who has only just come could not ask yet, and would never get in beside those who work. */
  #weakestBut(newest: Connection): Connection | undefined {
    const others = Array.from(this.#unproved.crowds(), ([, crowd]) => crowd);
    const crowds = [this.#unproved.largest(), ...others, this.#proved];
    for (const crowd of crowds) {
      for (const connection of crowd) {
        // One that was dropped makes room once.
        const isClosing = connection.isDropped || connection.socket.destroyed;
        if (connection !== newest && !connection.isWorking && !isClosing) return connection;
      }
    }
    return undefined;
  }
}
