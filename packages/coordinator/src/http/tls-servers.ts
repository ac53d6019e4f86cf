/**
 * HTTP servers behind TLS, and new certificates for them while they run. There may be several: `localhost` is two addresses.
 * A connection that does not begin as TLS should is no request: it ends, and only the debug log tells of it.
 */
import { constants } from "node:crypto";
import type { RequestListener, ServerOptions } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Log } from "../log.js";
import { HandshakeLine } from "./handshake-line.js";
import { HandshakePace } from "./handshake-pace.js";
import { HandshakesUnderWay } from "./handshakes-under-way.js";
import { endsOf } from "./socket-ends.js";
import { contextOf, type TlsMaterial } from "./tls-files.js";

/** How long a caller may take until the connection is encrypted; the platform's default is two minutes. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Enough for callers who are a quarter of a second away while a thousand begin in a second; all of them in one turn of the event loop take tenths of a second. */
const HANDSHAKES_MAX = 256;

export interface TlsServersOptions {
  /** Half of it until the first message is there, half for the rest. Default 10,000. */
  readonly handshakeTimeoutMs?: number;
  /** Handshakes under way at a time, beyond the first message. Default 256. */
  readonly handshakesMax?: number;
}

export class TlsServers {
  readonly #servers = new Set<Server>();
  readonly #sockets = new Set<Socket>();
  readonly #log: Log;
  readonly #handshakeTimeoutMs: number;
  #material: TlsMaterial;
  /** How often the client CA has changed; and how often it had when a connection was let in. */
  #caChanges = 0;
  readonly #letInAt = new WeakMap<Socket, number>();
  /** The same for connections by their ends, from before they are encrypted: by then it is settled who is believed. */
  readonly #begun = new Map<string, { readonly socket: Socket; readonly caChanges: number }>();
  readonly #underWay: HandshakesUnderWay;
  readonly #lines = new Set<HandshakeLine>();
  /** Only where callers are asked for a certificate. */
  readonly #pace = new HandshakePace({
    onFree: () => {
      for (const line of this.#lines) line.goOn();
    },
  });
  #isEnded = false;

  constructor(
    material: TlsMaterial,
    log: Log,
    { handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, handshakesMax = HANDSHAKES_MAX }: TlsServersOptions = {},
  ) {
    this.#material = material;
    this.#log = log;
    this.#handshakeTimeoutMs = handshakeTimeoutMs;
    this.#underWay = new HandshakesUnderWay(handshakesMax);
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** As `createServer` of node:http, which it stands for. */
  readonly createServer = (options: ServerOptions, handler?: RequestListener): Server => {
    const isCallerAsked = this.#material.clientCa !== undefined;
    const server = createServer(
      {
        ...options,
        ...contextOf(this.#material),
        secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
        requestCert: isCallerAsked,
        rejectUnauthorized: isCallerAsked,
        // The other half is for what comes before.
        handshakeTimeout: this.#handshakeTimeoutMs / 2,
      },
      handler,
    );
    // The platform would hand it to whoever answers malformed HTTP, and that one would write an answer nobody can read.
    server.removeAllListeners("tlsClientError");
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      socket.destroy();
      this.#log.debug({ reason: error.code ?? error.message }, "handshake_refused");
    });
    server.on("secureConnection", (socket) => this.#letIn(socket));
    server.prependListener("request", ({ socket }, response) => {
      // Let in by an authority that is believed no more: this is its last answer.
      if (!this.believes(socket)) response.shouldKeepAlive = false;
    });
    this.#lineUp(server, isCallerAsked);
    this.#servers.add(server);
    return server;
  };

  /** Whether who was let in on this connection still would be, by the client CA. For answers that have no end. */
  believes(socket: Socket): boolean {
    return this.#letInAt.get(socket) === this.#caChanges;
  }

  /**
   * From now on new connections get this certificate, and open ones go on. When the client CA is another they end: idle ones now, the
   * others with the answer to the request that is under way, event streams with their next word.
   */
  use(material: TlsMaterial): void {
    const isCaChanged = material.clientCa !== this.#material.clientCa;
    this.#material = material;
    if (isCaChanged) this.#caChanges++;
    for (const server of this.#servers) {
      server.setSecureContext({ ...contextOf(material), secureOptions: constants.SSL_OP_NO_RENEGOTIATION });
      if (isCaChanged) server.closeIdleConnections();
    }
  }

  /** Ends every connection, also those that are not encrypted yet: these the platform does not count as its own. */
  endConnections(): void {
    this.#isEnded = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The platform would begin each handshake when its connection comes, and all that is said to it when it is said. */
  #lineUp(server: Server, isCallerAsked: boolean): void {
    const [shakeHands, ...others] = server.listeners("connection");
    if (shakeHands === undefined || others.length > 0) throw new Error("nobody shakes hands, or more than one does");
    server.removeAllListeners("connection");
    const line = new HandshakeLine({
      timeoutMs: this.#handshakeTimeoutMs / 2,
      onRefused: (reason) => this.#log.debug({ reason }, "handshake_refused"),
      mayBegin: (network) => !isCallerAsked || this.#pace.mayBegin(network),
      begin: (socket, network) => {
        this.#noteBegun(socket);
        if (isCallerAsked) this.#pace.begin(socket, network);
        shakeHands.call(server, socket);
      },
    });
    this.#lines.add(line);
    server.on("connection", (socket: Socket) => {
      if (this.#keep(socket)) line.add(socket);
    });
  }

  /** Answers whether it may stay. */
  #keep(socket: Socket): boolean {
    if (this.#isEnded) {
      socket.destroy();
      return false;
    }
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    return true;
  }

  #noteBegun(socket: Socket): void {
    const ends = endsOf(socket);
    this.#begun.set(ends, { socket, caChanges: this.#caChanges });
    socket.once("close", () => this.#begun.delete(ends));
    this.#underWay.begin(socket);
  }

  #letIn(encrypted: Socket): void {
    const begun = this.#begun.get(endsOf(encrypted));
    this.#letInAt.set(encrypted, begun?.caChanges ?? -1);
    if (begun === undefined) return;
    this.#underWay.end(begun.socket);
    this.#pace.letIn(begun.socket);
  }
}
