/**
 * The HTTP servers of Node under the web framework: their limits, their TLS, and the requests in flight. There is one for each address of
 * `localhost`. A malformed request gets an error body here, and its connection ends.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, STATUS_CODES } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { ErrorCode } from "@callnumber/protocol/wire";
import type { Log } from "../log.js";
import { errorResponse, SAME_ORIGIN_HEADERS } from "./error-response.js";
import { contextOf, type TlsMaterial } from "./tls.js";

const HTTP_OPTIONS = {
  /** Bytes of request line and headers together. */
  maxHeaderSize: 8_192,
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 1_000,
  /** Longer than proxies keep an idle connection: a request on one that is just closed gets no response. */
  keepAliveTimeout: 72_000,
} as const;
/** So that the clients behind a load balancer spread over the coordinators again, now and then. */
const REQUESTS_PER_CONNECTION_MAX = 10_000;
/**
 * Nothing goes in or out: the client of an export is gone. Event streams send more often. Node checks a second time before it closes a connection
 * on which bytes wait to be read, so that is after twice this time at most.
 */
const SOCKET_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** How long a stop waits for requests in flight. One that takes longer will not end. */
const DRAIN_TIMEOUT_MS = 10_000;
/** How long it waits for requests that have begun to arrive: a request of ours is one packet, or two. */
const ARRIVAL_TIMEOUT_MS = 1_000;
const DRAIN_POLL_MS = 10;
/** On each address. Each costs a file descriptor and some kilobytes. */
export const CONNECTIONS_DEFAULT = 2_048;

const MESSAGES = {
  headers_too_large: `request line and headers may hold ${HTTP_OPTIONS.maxHeaderSize / 1_024} KiB together`,
  request_timed_out: "the request did not arrive whole in time",
  invalid_request: "this is no well-formed HTTP request",
} as const satisfies Readonly<Partial<Record<ErrorCode, string>>>;

const CODES_OF_NODE: Readonly<Record<string, keyof typeof MESSAGES>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timed_out",
};

export interface NodeServersOptions {
  /** Undefined: HTTP is spoken. */
  readonly tls: TlsMaterial | undefined;
  /** Connections at a time; further ones are closed at once. */
  readonly maxConnections: number;
  readonly log: Log;
}

export class NodeServers {
  readonly #options: NodeServersOptions;
  readonly #servers = new Set<Server | TlsServer>();
  readonly #sockets = new Set<Socket>();
  readonly #requests = new Set<IncomingMessage>();
  #tls: TlsMaterial | undefined;
  #isClosed = false;

  constructor(options: NodeServersOptions) {
    this.#options = options;
    this.#tls = options.tls;
  }

  /** The certificate in use; undefined where HTTP is spoken. */
  get material(): TlsMaterial | undefined {
    return this.#tls;
  }

  readonly create = (handler: RequestListener): Server | TlsServer => {
    const server =
      this.#tls === undefined ? createServer(HTTP_OPTIONS, handler) : this.#createEncrypted(this.#tls, handler);
    server.maxConnections = this.#options.maxConnections;
    server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX;
    server.setTimeout(SOCKET_TIMEOUT_MS);
    server.on("connection", (socket: Socket) => this.#keep(socket));
    server.on("request", (request, response) => {
      this.#requests.add(request);
      response.once("close", () => this.#requests.delete(request));
    });
    server.on("clientError", (error: NodeJS.ErrnoException, socket) => this.#rejectMalformed(error, socket as Socket));
    this.#servers.add(server);
    return server;
  };

  /**
   * New connections get this certificate. Open ones go on with the old one, unless the client CA has changed: then all are closed, as their clients
   * may not be trusted any more.
   */
  useTls(material: TlsMaterial): void {
    const isCaChanged = material.clientCa !== this.#tls?.clientCa;
    this.#tls = material;
    for (const server of this.#servers) if ("setSecureContext" in server) server.setSecureContext(contextOf(material));
    if (isCaChanged) this.#closeConnections();
  }

  /**
   * Resolves when no request is in flight, or after 10 s. A request that has not arrived whole after one second is cut off: nothing was begun
   * for it, and a slow client would hold up the stop.
   */
  async drain(): Promise<void> {
    const startedMs = performance.now();
    while (this.#requests.size > 0) {
      const waitedMs = performance.now() - startedMs;
      if (waitedMs >= DRAIN_TIMEOUT_MS) return;
      if (waitedMs >= ARRIVAL_TIMEOUT_MS) {
        for (const request of this.#requests) if (!request.complete) request.destroy();
      }
      await delay(DRAIN_POLL_MS);
    }
  }

  /** Closes every connection, also those that are not encrypted yet, and those that come from now on. */
  close(): void {
    this.#isClosed = true;
    this.#closeConnections();
  }

  #createEncrypted(material: TlsMaterial, handler: RequestListener): TlsServer {
    const needsCertificate = material.clientCa !== undefined;
    const server = createTlsServer(
      {
        ...HTTP_OPTIONS,
        ...contextOf(material),
        requestCert: needsCertificate,
        rejectUnauthorized: needsCertificate,
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      },
      handler,
    );
    // Node would pass it on as `clientError`, and be sent a response that the client can't read.
    server.removeAllListeners("tlsClientError");
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      socket.destroy();
      this.#options.log.debug({ reason: error.code ?? error.message }, "handshake_refused");
    });
    return server;
  }

  #keep(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #closeConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #rejectMalformed({ code: nodeCode = "" }: NodeJS.ErrnoException, socket: Socket): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const code = CODES_OF_NODE[nodeCode] ?? "invalid_request";
    const { remoteAddress } = socket;
    this.#options.log.debug({ code, reason: MESSAGES[code], remoteAddress }, "request_rejected");
    socket.end(responseText(code));
  }
}

function responseText(code: keyof typeof MESSAGES): string {
  const { status, headers, answer } = errorResponse({ code, message: MESSAGES[code] });
  const body = JSON.stringify(answer);
  const lines = Object.entries({
    ...SAME_ORIGIN_HEADERS,
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(body),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`;
}
